"""The import steps of orders, with their items and the coupon uses in their coupon lines."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from sqlalchemy import bindparam, select, update

from app.catalog import TRASH, RedemptionEffect
from app.db.read_pool import fetch
from app.db.search import email_key
from app.db.session import run_statement
from app.db.sql.functions import is_one_of
from app.db.sql.types import IdList
from app.models import ORDERS, REDEMPTIONS
from app.plugins.woocommerce.importer.context import (
    ImportContext,
    Uses,
    imported_uses,
    redemption,
    released,
)
from app.plugins.woocommerce.importer.convert import Alterations, Converted, LeftOut, is_yes, whole
from app.plugins.woocommerce.importer.convert.items import Items, StoredItems, items_of_order
from app.plugins.woocommerce.importer.kinds import ORDER, ORDER_USE
from app.plugins.woocommerce.importer.source.clock import EPOCH, from_unix
from app.plugins.woocommerce.importer.source.order_layouts import NUMBER_KEYS, SourceOrder
from app.plugins.woocommerce.importer.source.staging import Pages, entries_in
from app.plugins.woocommerce.stored_keys import ADDRESS_KEYS, ORDER_TEXTS
from app.services.orders.columns import derived_columns
from app.services.orders.item_changes import MAX_CENTS
from app.services.orders.items import COUPON_ID, MAX_TOTAL, amount_text

_PRODUCTS = {"_product_id", "_variation_id"}
_PREFIX = "wc-"
DRAFTS = {"auto-draft", "draft", "checkout-draft", "inherit"}
_SUMS = ("total", "cart_tax", "shipping_tax", "total_shipping", "total_discount", "discount_tax")
_TEXTS = ORDER_TEXTS.keys() - {*_SUMS, "order_key", "currency", "prices_include_tax"}
_CURRENCY = re.compile("[A-Za-z]{3}")


def orders(context: ImportContext, page: Pages) -> Iterator[list[Converted]]:
    """Convert orders with all their items, and import the coupon uses in their coupon lines."""
    layout = context.source.layout
    stored = stored_items(context, list(page))
    sources = {each.id: each for each in layout.read(layout.orders, page)}
    items: dict[int, Items] = {}

    def convert(order_id: int, source: SourceOrder) -> Converted:
        altered = Alterations()
        items[order_id] = items_of_order(stored, order_id, altered)
        return _order(context, source, items[order_id], altered)

    given = {order_id: (source,) for order_id, source in sources.items()}
    found = context.converted(ORDER, layout.orders.partition(":")[0], given, convert)
    for each in found:
        account = each.references.get("customer", 0)
        if account and each.resolved["customer_id"] is None:
            each.altered.append(f"account {account} does not exist, so it is a guest order")
    _make_keys_unique(context, found)
    kept = _uses_here(context, list(page))
    _keep_coupons(context, found, items, kept)
    yield found
    _link_parents(context, found)
    _uses(context, found, sources, items, kept)


def _uses_here(context: ImportContext, ids: Collection[int]) -> Uses:
    """Return the coupon uses that earlier imports have stored for orders, by their line."""
    targets = context.writer.records.targets("order", list(ids), erased=True)
    references = [f"order-{order_id}" for order_id in targets.values()]
    # Only their references have an index of all uses.
    of_orders = REDEMPTIONS.c.reference.in_(references)
    return imported_uses(context, ORDER_USE, of_orders) if references else {}


def count_kept_uses(context: ImportContext, ids: Collection[int]) -> None:
    """Count the uses of orders that only this shop has, so that ``_used_by`` adds no further ones.

    Args:
        ids: the IDs of the orders at the source.
    """
    uses = [each for each in _uses_here(context, ids).values() if each.status != "released"]
    records = context.writer.records
    coupons = records.sources("coupon", [each.coupon_id for each in uses])
    accounts = records.sources("customer", [each.customer_id for each in uses])
    context.index.add_order_uses(
        [
            (coupons[each.coupon_id], str(accounts.get(each.customer_id) or each.email_normalized))
            for each in uses
            if each.coupon_id in coupons
        ]
    )


def _link_parents(context: ImportContext, orders: Sequence[Converted]) -> None:
    """Store the new IDs of parents of the same page, which have one when the page is stored."""
    records = context.writer.records
    late = [
        each
        for each in orders
        if each.resolved["parent_id"] is None and each.references.get("parent", 0) != each.source_id
    ]
    parents = context.targets("order", late, "parent")
    if not parents or records.dry_run:
        return
    targets = records.targets("order", [each.source_id for each in late])
    links = [
        {"child": targets[each.source_id], "parent": parents[each.references["parent"]]}
        for each in late
        if each.source_id in targets and each.references.get("parent") in parents
    ]
    if links:
        run_statement(_LINK, links)


_LINK = (
    update(ORDERS)
    .where(ORDERS.c.id == bindparam("child"), ORDERS.c.parent_id.is_(None))
    .values(parent_id=bindparam("parent"))
)


def _keep_coupons(
    context: ImportContext,
    orders: Sequence[Converted],
    all_items: Mapping[int, Items],
    kept: Uses,
) -> None:
    """Store the coupon of each coupon line: a line has no redemption before its first use.

    A use keeps its coupon, also if another coupon of the source has the code now.
    """
    found = [
        (order, coupons) for order in orders if (coupons := all_items[order.source_id].coupons)
    ]
    known = _coupons(context, {code for _, coupons in found for _, code, _ in coupons})
    for order, coupons in found:
        here = {item_id: known[code][1] for item_id, code, _ in coupons if code in known}
        here |= {item_id: kept[item_id].coupon_id for item_id, _, _ in coupons if item_id in kept}
        details = order.values["item_details"]
        order.resolved["item_details"] = details | {
            str(item_id): {**details[str(item_id)], COUPON_ID: coupon_id}
            for item_id, coupon_id in here.items()
        }


def _coupons(context: ImportContext, codes: Collection[str]) -> dict[str, tuple[int, int]]:
    """Return the ID at the source and the new ID of the coupons that were imported, by code."""
    sources = context.index.coupons_of(codes) if codes else {}
    targets = context.writer.records.targets("coupon", list(sources.values()))
    return {code: (each, targets[each]) for code, each in sources.items() if each in targets}


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


def stored_items(context: ImportContext, ids: Sequence[int]) -> StoredItems:
    """Return the items of orders or refunds."""
    rows = context.staging.by_id("woocommerce_order_items", ids)
    item_ids = [int(row[0]) for items in rows.values() for row in items]
    metas = context.staging.meta_rows("woocommerce_order_itemmeta", item_ids)
    products = context.source.products(
        number
        for stored in metas.values()
        for key, value, _ in entries_in(stored)
        if key in _PRODUCTS and (number := whole(value))
    )
    return StoredItems(rows, metas, products, context.metadata)


def _status_of(order: SourceOrder, statuses: Mapping[str, object]) -> tuple[str, str | None]:
    """Return the status of an order, and its status before it was moved to the trash.

    Raises:
        LeftOut: this shop has no such status.
    """
    status = order.status.removeprefix(_PREFIX)
    if status == TRASH:
        before = (order.meta.get("_wp_trash_meta_status") or "").removeprefix(_PREFIX)
        return TRASH, before if before in statuses else "pending"
    if status in DRAFTS:
        raise LeftOut(f"the order is a draft ({status})")
    if status not in statuses:
        raise LeftOut(f"the status {status!r} is unknown")
    return status, None


def _order(
    context: ImportContext, source: SourceOrder, items: Items, altered: Alterations
) -> Converted:
    """Return an order with the amounts that the source stores. No amount is computed again.

    Args:
        altered: alterations of its items. Alterations of the order are added.

    Raises:
        LeftOut: its status is unknown, or its total cannot be stored.
    """
    status, before = _status_of(source, context.catalog.order_statuses)
    texts = source.texts
    currency = _currency(source, context.source.currency, altered)
    number = next((source.meta[key] for key in NUMBER_KEYS if source.meta.get(key)), None)
    values = {
        **{key: altered.text(source.address.get(key)) for key in ADDRESS_KEYS},
        **{name: altered.text(texts[name]) for name in _TEXTS},
        **_sums(source, items, altered),
        **_times(source, status, altered),
        **items.lists,
        "order_number": altered.text(number)[:191] or str(source.id),
        "order_key": altered.text(texts["order_key"])[:191],
        "status": status,
        "status_before_trash": before,
        "currency": currency.upper(),
        "payment_paid": source.paid is not None,
        "prices_include_tax": is_yes(texts["prices_include_tax"]),
        "items": items.units,
        "item_details": items.details,
        "next_item_id": items.next_id,
    }
    altered.currency(currency)
    values |= derived_columns(values)
    references = {"customer": abs(whole(source.customer_id)), "parent": source.parent_id}
    return Converted(
        source.id,
        values,
        altered,
        references={name: each for name, each in references.items() if each},
        metadata=context.metadata.entries(meta_table(source), source.rows, source.fields, altered),
        items_metadata=items.metadata,
    )


def _sums(source: SourceOrder, items: Items, altered: Alterations) -> dict[str, Decimal]:
    """Return the sums of an order, or raise LeftOut if one cannot be stored."""
    cents = {name: altered.cents(source.texts[name], name) for name in _SUMS}
    require_storable("total", cents["total"], MAX_TOTAL)
    require_storable("subtotal", items.subtotal, MAX_CENTS)
    cents |= {"fees": items.fees, "subtotal": items.subtotal}
    return {name: Decimal(value).scaleb(-2) for name, value in cents.items()}


def _times(source: SourceOrder, status: str, altered: Alterations) -> dict[str, datetime | None]:
    if source.created is None:
        altered.append("the time of creation is missing")
    created = source.created or EPOCH
    updated = source.updated or created
    trashed = from_unix(source.meta.get("_wp_trash_meta_time")) or updated
    return {
        "created_at": created,
        "updated_at": updated,
        "completed_at": source.completed,
        "paid_at": source.paid,
        "trashed_at": trashed if status == TRASH else None,
    }


def meta_table(source: SourceOrder) -> str:
    """Return the table with the metadata of an order or of a refund."""
    return "postmeta" if source.table == "posts" else "wc_orders_meta"


def require_storable(name: str, cents: int, most: int) -> None:
    """Raise LeftOut if an amount is too large to be stored."""
    if abs(cents) > most:
        raise LeftOut(f"the {name} is above {amount_text(most)}")


def _currency(source: SourceOrder, default: str, altered: Alterations) -> str:
    currency = source.texts["currency"] or default
    if _CURRENCY.fullmatch(currency):
        return currency
    altered.append(f"the currency {currency!r} was replaced by {default}")
    return default


def _uses(
    context: ImportContext,
    orders: Sequence[Converted],
    sources: Mapping[int, SourceOrder],
    all_items: Mapping[int, Items],
    kept: Uses,
) -> None:
    """Import the uses of coupons by some orders, and release those without a line any more."""
    effects = context.catalog.redemption_effects
    found = [
        use
        for order in orders
        if all_items[order.source_id].coupons
        for use in _uses_of(sources[order.source_id], order, all_items[order.source_id], effects)
    ]
    count_kept_uses(context, sources.keys() - {order.source_id for order in orders})
    if not found and not kept:
        return
    context.resolve(ORDER_USE, found)
    edited = _edited_here(context, [order.source_id for order in orders])
    coupons = _coupons(context, {use.values["code"] for use in found})
    of_kept = context.writer.records.sources("coupon", [use.coupon_id for use in kept.values()])
    lines = {
        order.source_id: {line for line, _, _ in all_items[order.source_id].coupons}
        for order in orders
        if order.source_id not in edited
    }
    written = _without_line(context, lines, kept)
    for use in found:
        order_id, here = use.resolved["order_id"], kept.get(use.source_id)
        source_coupon, coupon_id = coupons.get(use.values["code"], (0, None))
        if here and here.coupon_id in of_kept:  # also if another coupon has the code now
            source_coupon, coupon_id = of_kept[here.coupon_id], here.coupon_id
        if coupon_id is None:
            continue  # a code that matches no coupon has no redemption (redemptions 6)
        if use.values["status"] == "confirmed":
            account = use.references.get("customer", 0)
            key = str(account) if account else use.values["email_normalized"]
            context.index.add_order_uses([(source_coupon, key)])
        if order_id is None or use.references["order"] in edited:
            # Its entry in ``_used_by`` is not a further use: the order was erased here, or it keeps
            # its edits, and its use follows it.
            continue
        use.resolved |= redemption(coupon_id, f"order-{order_id}")
        written.append(use)
    # An order has one live use of a coupon, so a use is released before another line takes it.
    written.sort(key=lambda use: (use.values["status"] == "confirmed", use.source_id))
    context.report.counts_of("redemptions")["read"] += len(written)
    context.writer.write(ORDER_USE, written)


def _without_line(
    context: ImportContext, lines: Mapping[int, Collection[int]], kept: Uses
) -> list[Converted]:
    """Return the live uses of orders that have no coupon line at the source any more, released.

    Args:
        lines: the IDs of the coupon lines of orders, by the ID of the order at the source.
    """
    live = {line: use for line, use in kept.items() if use.status != "released"}
    orders = context.writer.records.sources("order", [use.order_id for use in live.values()])
    return [
        released(line, use, {"order": order}, "woocommerce_order_items")
        for line, use in live.items()
        if line not in lines.get(order := orders[use.order_id], {line})
    ]


def _edited_here(context: ImportContext, ids: Sequence[int]) -> set[int]:
    """Return the orders that were edited in this shop, by their ID at the source."""
    known = context.writer.records.known(fetch, ORDER.name, list(set(ids)))
    targets = [each.target_id for each in known.values()]
    of_orders = is_one_of(ORDERS.c.id, bindparam(None, targets, type_=IdList))
    rows = fetch(select(ORDERS.c.id, ORDERS.c.updated_at).where(of_orders))
    stored = {row.id: dict(row._mapping) for row in rows}
    return {
        source_id
        for source_id, each in known.items()
        if each.target_id in stored and each.is_edited(stored[each.target_id])
    }


def _uses_of(
    source: SourceOrder, converted: Converted, items: Items, effects: Mapping[str, RedemptionEffect]
) -> list[Converted]:
    """Return the coupon uses of an order, one for each coupon line.

    A use that the source does not count is released. It is written only if an earlier import
    created it.
    """
    values = converted.values
    is_counted = source.is_counted
    if is_counted is None:
        is_counted = effects.get(values["status"]) != RedemptionEffect.RELEASE
    if values["status"] == TRASH:
        is_counted = False
    found: dict[str, Converted] = {}
    for item_id, code, amount in items.coupons:
        if code in found:
            continue  # an order has at most one live use of a coupon
        record = {
            "code": code,
            "email": values["billing_email"],
            "email_normalized": email_key(values["billing_email"]),
            "amount": Decimal(amount).scaleb(-2),
            "status": "confirmed" if is_counted else "released",
            "created_at": values["created_at"],
            "updated_at": values["updated_at"],
            "confirmed_at": values["created_at"] if is_counted else None,
        }
        found[code] = Converted(
            item_id,
            record,
            references={"order": source.id, **converted.references},
            is_absent=not is_counted,
            table="woocommerce_order_items",
        )
    return list(found.values())
