"""The import steps of the notes, refunds and downloads of orders."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from sqlalchemy import Delete, delete
from sqlalchemy.orm import Session

from app.db.session import run_in_transaction
from app.models import ORDER_NOTES
from app.services.orders.sums import cents
from app.woocommerce.context import PAGE, Advance, ImportContext
from app.woocommerce.convert import orders as convert_orders
from app.woocommerce.convert.converted import Converted
from app.woocommerce.convert.stored_values import whole
from app.woocommerce.kinds import DOWNLOAD, ORDER_NOTE, REFUND
from app.woocommerce.source.staging import Metas
from app.woocommerce.steps.orders import Sources, item_rows

Children = Mapping[int, tuple[int, list[Any]]]


def refunds(context: ImportContext, advance: Advance) -> None:
    """Import refunds, and add up the refunded amounts."""
    layout = context.source.layout
    table = layout.refunds.partition(":")[0]
    _remove_notes_of_refunds(context)
    for page in context.staging.pages(layout.refunds, PAGE):
        sources = {each.id: each for each in layout.read(layout.refunds, page)}
        of_items = item_rows(context, list(page))

        def convert(
            refund_id: int, sources: Sources = sources, of_items: Any = of_items
        ) -> Converted:
            rows, metas, products = of_items
            return convert_orders.refund(
                sources[refund_id], rows.get(refund_id, ()), metas, products, context.metadata
            )

        found = context.converted("refunds", table, page, convert)
        users = context.targets("customer", found, "user")
        for each in (written := context.of_orders("refunds", found)):
            each.resolved["refunded_by"] = users.get(each.references.get("user", 0))
            currency = sources[each.source_id].texts["currency"] or context.source.currency
            refunded = context.report.refunded
            refunded[currency] = refunded.get(currency, 0) + cents(each.values["amount"])
        context.writer.write(REFUND, "refunds", written)
        advance(len(page))


def _remove_notes_of_refunds(context: ImportContext) -> None:
    """Delete the notes of orders that an earlier version imported in place of refunds."""
    records = context.writer.records
    if records.dry_run:
        return
    for ids in records.all_of(FORMER_REFUND):
        notes = list(records.targets(FORMER_REFUND, ids).values())
        of_refunds = ORDER_NOTES.c.note.startswith("Refunded ", autoescape=True)
        statement = delete(ORDER_NOTES).where(ORDER_NOTES.c.id.in_(notes), of_refunds)
        run_in_transaction(partial(_execute, statement))
        records.forget(FORMER_REFUND, ids)


def _execute(statement: Delete, session: Session) -> None:
    session.execute(statement)


FORMER_REFUND = "refund"
"""Kind of the notes in the record map."""


def notes(context: ImportContext, advance: Advance) -> None:
    """Import the notes of orders."""
    for page in context.staging.pages("comments", PAGE):
        rows = {
            int(row[0]): (order_id, row)
            for order_id, found in page.items()
            for row in found
            if row[5] not in {"trash", "spam"}
        }
        metas = context.staging.meta_of("commentmeta", list(rows))

        def convert(note_id: int, rows: Children = rows, metas: Metas = metas) -> Converted:
            meta = metas.get(note_id, {})
            return convert_orders.note(*rows[note_id], meta, context.source.clock)

        found = context.converted("order notes", "comments", rows, convert)
        context.writer.write(ORDER_NOTE, "order notes", context.of_orders("order notes", found))
        advance(len(page))


def downloads(context: ImportContext, advance: Advance) -> None:
    """Import the download permissions of orders."""
    table = "woocommerce_downloadable_product_permissions"
    for page in context.staging.pages(table, PAGE):
        rows = {int(row[0]): (order_id, row) for order_id, found in page.items() for row in found}
        files = context.source.files(abs(whole(row[2])) for _, row in rows.values())

        def convert(row_id: int, rows: Children = rows, files: Any = files) -> Converted:
            return convert_orders.download(*rows[row_id], files, context.source.home)

        found = context.converted("downloads", table, rows, convert)
        context.writer.write(DOWNLOAD, "downloads", context.of_orders("downloads", found))
        advance(len(page))
