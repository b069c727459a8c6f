"""The import steps of the notes, refunds and downloads of orders."""

from collections.abc import Iterator

from sqlalchemy import delete

from app.db.session import run_statement
from app.models import ORDER_NOTES
from app.plugins.woocommerce.importer.context import ImportContext
from app.plugins.woocommerce.importer.convert import orders as convert_orders
from app.plugins.woocommerce.importer.convert.converted import Converted
from app.plugins.woocommerce.importer.convert.stored_values import whole
from app.plugins.woocommerce.importer.source.staging import Pages
from app.plugins.woocommerce.importer.steps.orders import item_rows
from app.services.orders.sums import cents

DOWNLOADS = "woocommerce_downloadable_product_permissions"


def refunds(context: ImportContext, page: Pages) -> Iterator[list[Converted]]:
    """Convert refunds, and add up the refunded amounts."""
    layout = context.source.layout
    sources = {each.id: each for each in layout.read(layout.refunds, page)}
    rows, metas, products = item_rows(context, list(page))

    def convert(refund_id: int) -> Converted:
        return convert_orders.refund(
            sources[refund_id], rows.get(refund_id, ()), metas, products, context.metadata
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
