"""The import steps of orders, their coupon uses, notes, refunds and downloads."""

from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import bindparam, delete, update

from app.db.session import run_statement
from app.models import ORDER_NOTES, ORDERS
from app.plugins.woocommerce.importer.context import ImportContext, redemption
from app.plugins.woocommerce.importer.convert import orders as convert_orders
from app.plugins.woocommerce.importer.convert.converted import Converted
from app.plugins.woocommerce.importer.convert.items import Items, items_of_order
from app.plugins.woocommerce.importer.convert.stored_values import Alterations, whole
from app.plugins.woocommerce.importer.kinds import ORDER_USE
from app.plugins.woocommerce.importer.source.item_meta import Products
from app.plugins.woocommerce.importer.source.order_layouts import SourceOrder
from app.plugins.woocommerce.importer.source.staging import MetaRows, Pages, Rows
from app.services.orders.items import COUPON_ID, cents

_PRODUCTS = {"_product_id", "_variation_id"}


def orders(context: ImportContext, page: Pages) -> Iterator[list[Converted]]:
    """Convert orders with all their items, and import the coupon uses in their coupon lines."""
    layout = context.source.layout
    items, altered = _items(context, list(page))
    sources = {each.id: each for each in layout.read(layout.orders, page)}

    def convert(order_id: int) -> Converted:
        return convert_orders.order(
            sources[order_id],
            items[order_id],
            altered[order_id],
            context.catalog.order_statuses,
            context.source.currency,
            metadata=context.metadata,
        )

    found = context.converted("orders", layout.orders.partition(":")[0], page, convert)
    customers = context.targets("customer", found, "customer")
    for each in found:
        account = each.references.get("customer", 0)
        each.resolved["customer_id"] = customers.get(account)
        if account and account not in customers:
            each.altered.append(f"account {account} does not exist, so it is a guest order")
    _find_parents(context, found)
    _make_keys_unique(context, found)
    _keep_coupons(context, found, items)
    yield found
    _find_parents(context, found, is_stored=True)
    _uses(context, found, sources, items, customers)


def _find_parents(
    context: ImportContext, orders: Sequence[Converted], *, is_stored: bool = False
) -> None:
    """Store the new IDs of parents. A parent of the same page has one when the page is stored."""
    children = [each for each in orders if "parent" in each.references]
    for child in () if is_stored else orders:
        child.resolved["parent_id"] = None
    parents = context.targets("order", children, "parent") if children else {}
    if not is_stored:
        for child in children:
            child.resolved["parent_id"] = parents.get(child.references["parent"])
        return
    records = context.writer.records
    late = [
        child
        for child in children
        if child.resolved["parent_id"] is None and child.references["parent"] in parents
    ]
    if not late or records.dry_run:
        return
    targets = records.targets("order", [child.source_id for child in late])
    links = [
        {"child": targets[child.source_id], "parent": parents[child.references["parent"]]}
        for child in late
        if child.source_id in targets and child.source_id != child.references["parent"]
    ]
    if links:
        run_statement(_LINK, links)


_LINK = (
    update(ORDERS)
    .where(ORDERS.c.id == bindparam("child"), ORDERS.c.parent_id.is_(None))
    .values(parent_id=bindparam("parent"))
)


def _keep_coupons(
    context: ImportContext, orders: Sequence[Converted], all_items: Mapping[int, Items]
) -> None:
    """Store the coupon of each coupon line: a line has no redemption before its first use."""
    found = [
        (order, coupons) for order in orders if (coupons := all_items[order.source_id].coupons)
    ]
    codes = {code for _, coupons in found for _, code, _ in coupons}
    sources = context.index.coupons_of(codes) if codes else {}
    targets = context.writer.records.targets("coupon", list(sources.values()))
    for order, coupons in found:
        kept = {
            str(item_id): {**order.values["item_details"][str(item_id)], COUPON_ID: target}
            for item_id, code, _ in coupons
            if (target := targets.get(sources.get(code, 0)))
        }
        order.resolved["item_details"] = order.values["item_details"] | kept


def _make_keys_unique(context: ImportContext, orders: Sequence[Converted]) -> None:
    owners = context.index.add_values(
        "order_key", [(key, o.source_id) for o in orders if (key := o.values["order_key"])]
    )
    for order in orders:
        key = order.values["order_key"]
        if key and owners[key] != order.source_id:
            order.values["order_key"] = ""
            order.altered.append(
                f"order {owners[key]} also has the order key {key!r}, so "
                "the later order got a new key"
            )


def _items(
    context: ImportContext, order_ids: Sequence[int]
) -> tuple[dict[int, Items], dict[int, Alterations]]:
    """Return the items of orders, and the alterations of the items."""
    rows, metas, products = item_rows(context, order_ids)
    altered = {order_id: Alterations() for order_id in order_ids}
    items = {
        order_id: items_of_order(
            rows.get(order_id, []), metas, products, altered[order_id], context.metadata
        )
        for order_id in order_ids
    }
    return items, altered


def item_rows(
    context: ImportContext, ids: Sequence[int]
) -> tuple[dict[int, Rows], dict[int, MetaRows], Products]:
    """Return the items of orders or refunds, their metadata by their ID, and their products."""
    rows = context.staging.by_id("woocommerce_order_items", ids)
    item_ids = [int(row[0]) for items in rows.values() for row in items]
    metas = context.staging.meta_rows("woocommerce_order_itemmeta", item_ids)
    products = context.source.products(
        number
        for stored in metas.values()
        for key, value in zip(stored[::3], stored[1::3], strict=True)
        if key in _PRODUCTS and (number := whole(value))
    )
    return rows, metas, products


def _uses(
    context: ImportContext,
    orders: Sequence[Converted],
    sources: Mapping[int, SourceOrder],
    all_items: Mapping[int, Items],
    customers: Mapping[int, int],
) -> None:
    """Import the uses of coupons by some orders."""
    effects = context.catalog.redemption_effects
    found = [
        use
        for order in orders
        if all_items[order.source_id].coupons
        for use in convert_orders.uses(
            sources[order.source_id], order, all_items[order.source_id], effects
        )
    ]
    if not found:
        return
    coupons = context.index.coupons_of({use.values["code"] for use in found})
    targets = context.writer.records.targets("coupon", list(coupons.values()))
    order_ids = context.targets("order", found, "order")
    written = []
    for use in found:
        source_coupon = coupons.get(use.values["code"], 0)
        target, order_id = targets.get(source_coupon), order_ids.get(use.references["order"])
        if target is None or order_id is None:
            continue  # a code that matches no coupon has no redemption (redemptions 6)
        account = use.references.get("customer", 0)
        use.resolved = redemption(target, customers.get(account), order_id, f"order-{order_id}")
        written.append(use)
        if use.values["status"] == "confirmed":
            key = str(account) if account else use.values["email_normalized"]
            context.index.add_order_uses([(source_coupon, key)])
    written.sort(key=lambda use: use.source_id)
    context.report.counts_of("redemptions").read += len(written)
    context.writer.write(ORDER_USE, "redemptions", written)


DOWNLOADS = "woocommerce_downloadable_product_permissions"


def refunds(context: ImportContext, page: Pages) -> Iterator[list[Converted]]:
    """Convert refunds, and add up the refunded amounts."""
    layout = context.source.layout
    sources = {each.id: each for each in layout.read(layout.refunds, page)}
    rows, metas, products = item_rows(context, list(page))

    def convert(refund_id: int) -> Converted:
        return convert_orders.refund(
            sources[refund_id], rows.get(refund_id, []), metas, products, context.metadata
        )

    found = context.converted("refunds", layout.refunds.partition(":")[0], page, convert)
    users = context.targets("customer", found, "user")
    for each in (written := context.of_orders("refunds", found)):
        each.resolved["refunded_by"] = users.get(each.references.get("user", 0))
        currency = sources[each.source_id].texts["currency"] or context.source.currency
        refunded = context.report.refunded
        refunded[currency] = refunded.get(currency, 0) + cents(each.values["amount"])
    yield written


def remove_notes_of_refunds(context: ImportContext) -> None:
    """Delete the notes of orders that an earlier version imported in place of refunds."""
    records = context.writer.records
    if records.dry_run:
        return
    for ids in records.all_of(FORMER_REFUND):
        notes = list(records.targets(FORMER_REFUND, ids).values())
        of_refunds = ORDER_NOTES.c.note.startswith("Refunded ", autoescape=True)
        run_statement(delete(ORDER_NOTES).where(ORDER_NOTES.c.id.in_(notes), of_refunds))
        records.forget(FORMER_REFUND, ids)


FORMER_REFUND = "refund"
"""Kind of the notes in the record map."""


def notes(context: ImportContext, page: Pages) -> Iterator[list[Converted]]:
    """Convert the notes of orders."""
    rows = {
        int(row[0]): (order_id, row)
        for order_id, found in page.items()
        for row in found
        if row[5] not in {"trash", "spam"}
    }
    metas = context.staging.meta_of("commentmeta", list(rows))

    def convert(note_id: int) -> Converted:
        return convert_orders.note(*rows[note_id], metas.get(note_id, {}), context.source.clock)

    found = context.converted("order notes", "comments", rows, convert)
    yield context.of_orders("order notes", found)


def downloads(context: ImportContext, page: Pages) -> Iterator[list[Converted]]:
    """Convert the download permissions of orders."""
    rows = {int(row[0]): (order_id, row) for order_id, found in page.items() for row in found}
    files = context.source.files(abs(whole(row[2])) for _, row in rows.values())

    def convert(row_id: int) -> Converted:
        return convert_orders.download(*rows[row_id], files, context.source.home)

    yield context.of_orders("downloads", context.converted("downloads", DOWNLOADS, rows, convert))
