"""The import steps of what belongs to orders: notes, refunds and downloads."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from urllib.parse import quote, urlencode

from sqlalchemy import delete

from app.db.session import run_statement
from app.models import ORDER_NOTES
from app.plugins.woocommerce.importer.context import ImportContext
from app.plugins.woocommerce.importer.convert import Alterations, Converted, LeftOut, whole
from app.plugins.woocommerce.importer.convert.items import StoredItems, refunded_items
from app.plugins.woocommerce.importer.kinds import DOWNLOAD, ORDER_NOTE, REFUND
from app.plugins.woocommerce.importer.source.clock import EPOCH, ShopClock
from app.plugins.woocommerce.importer.source.order_layouts import SourceOrder
from app.plugins.woocommerce.importer.source.staging import Meta, Pages
from app.plugins.woocommerce.importer.steps.orders import meta_table, require_storable, stored_items
from app.services.orders.items import MAX_TOTAL, cents

SYSTEM = "WooCommerce"
"""Author of the notes that the old server wrote itself."""

Files = Mapping[int, Mapping[str, tuple[str, str]]]
"""Name and URL of the files of products, by product and by the ID of the download."""

DOWNLOADS = "woocommerce_downloadable_product_permissions"


def refunds(context: ImportContext, page: Pages) -> Iterator[list[Converted]]:
    """Convert refunds, and add up the refunded amounts."""
    layout = context.source.layout
    stored = stored_items(context, list(page))
    sources = {each.id: (each, stored) for each in layout.read(layout.refunds, page)}
    found = context.converted(REFUND, layout.refunds.partition(":")[0], sources, _refund)
    refunded = context.report.refunded
    for each in (written := context.of_orders(REFUND, found)):
        currency = sources[each.source_id][0].texts["currency"] or context.source.currency
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


def _refund(refund_id: int, source: SourceOrder, stored: StoredItems) -> Converted:
    """Return a refund.

    Raises:
        LeftOut: the refund has no order, or no amount.
    """
    if not source.parent_id:
        raise LeftOut("the refund has no order")
    altered = Alterations()
    total = source.meta.get("_refund_amount") or source.texts["total"]
    amount = abs(altered.cents(total, "_refund_amount"))
    if not amount:
        raise LeftOut("the amount of the refund is 0")
    require_storable("amount", amount, MAX_TOTAL)
    items, of_items = refunded_items(stored, refund_id, altered)
    altered.currency(source.texts["currency"] or "")
    created = source.created or source.updated or EPOCH
    values = {
        "created_at": created,
        "updated_at": source.updated or created,
        "amount": Decimal(amount).scaleb(-2),
        "reason": altered.text(source.meta.get("_refund_reason") or source.texts["note"]).strip(),
        "line_items": items,
    }
    references = {"order": source.parent_id}
    if user := whole(source.meta.get("_refunded_by")):
        references["user"] = user
    return Converted(
        refund_id,
        values,
        altered,
        references,
        metadata=stored.metadata.entries(meta_table(source), source.rows, source.fields, altered),
        items_metadata=of_items,
    )


def notes(context: ImportContext, page: Pages) -> Iterator[list[Converted]]:
    """Convert the notes of orders."""
    rows = {
        int(row[0]): (order_id, row)
        for order_id, found in page.items()
        for row in found
        if row[5] not in {"trash", "spam"}
    }
    metas = context.staging.meta_of("commentmeta", list(rows))

    sources = {each: (*rows[each], metas.get(each, {})) for each in rows}
    convert = partial(_note, context.source.clock)
    yield context.of_orders(ORDER_NOTE, context.converted(ORDER_NOTE, "comments", sources, convert))


def _note(
    clock: ShopClock, note_id: int, order_id: int, row: Sequence[str | None], meta: Meta
) -> Converted:
    """Return an order note, or raise LeftOut if it has no text."""
    _, local, gmt, content, _, _, author = row
    altered = Alterations()
    text = altered.text(content)
    if not text.strip():
        raise LeftOut("the note is empty")
    values = {
        "created_at": clock.utc(gmt, local) or EPOCH,
        "note": text,
        "customer_note": bool(whole(meta.get("is_customer_note"))),
        "author": "" if author == SYSTEM else altered.text(author),
    }
    return Converted(note_id, values, altered, {"order": order_id})


def downloads(context: ImportContext, page: Pages) -> Iterator[list[Converted]]:
    """Convert the download permissions of orders."""
    rows = {int(row[0]): (order_id, row) for order_id, found in page.items() for row in found}
    files = context.source.files(abs(whole(row[2])) for _, row in rows.values())

    convert = partial(_download, files, context.source.home)
    yield context.of_orders(DOWNLOAD, context.converted(DOWNLOAD, DOWNLOADS, rows, convert))


def _download(
    files: Files, home: str, permission_id: int, order_id: int, row: Sequence[str | None]
) -> Converted:
    """Return a download permission.

    Args:
        home: the URL of the shop, for the download links of customers.
        row: the columns of the permission after the ID of its order.

    Raises:
        LeftOut: the product has no such file.
    """
    _, download_id, product, key, email, remaining, expires = row
    altered = Alterations()
    product_id, file_id = abs(whole(product)), altered.text(download_id)
    name, url = files.get(product_id, {}).get(file_id, ("", ""))
    if not url:  # the source does not offer it either
        raise LeftOut("the product no longer has this file")
    query = {"download_file": product_id, "order": key or "", "email": email or "", "key": file_id}
    values = {
        "product_id": product_id,
        "download_id": file_id,
        "download_name": name,
        "download_url": f"{home.rstrip('/')}/?{urlencode(query, quote_via=quote, safe='')}",
        "file_name": name,
        "file_url": url,
        "downloads_remaining": None if not remaining else abs(whole(remaining)),
        # The legacy server reads this column as UTC.
        "access_expires": ShopClock(None, None).utc(expires),
    }
    return Converted(permission_id, values, altered, {"order": order_id})
