"""The import steps of the notes, refunds and downloads of orders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.woocommerce.context import PAGE, Advance, ImportContext
from app.woocommerce.convert import orders as convert_orders
from app.woocommerce.convert.converted import Converted
from app.woocommerce.convert.stored_values import whole
from app.woocommerce.kinds import DOWNLOAD, ORDER_NOTE, REFUND
from app.woocommerce.source.staging import Metas
from app.woocommerce.steps.orders import Sources

Children = Mapping[int, tuple[int, list[Any]]]


def refunds(context: ImportContext, advance: Advance) -> None:
    """Import refunds as notes of their orders, and add up the refunded amounts."""
    layout = context.source.layout
    table = layout.refunds.partition(":")[0]
    for page in context.staging.pages(layout.refunds, PAGE):
        sources = {each.id: each for each in layout.read(layout.refunds, page)}
        amounts: dict[int, int] = {}

        def convert(
            refund_id: int, sources: Sources = sources, amounts: dict[int, int] = amounts
        ) -> Converted:
            refund, amounts[refund_id] = convert_orders.refund(
                sources[refund_id], context.source.currency
            )
            return refund

        found = context.converted("refunds", table, page, convert)
        for each in (written := context.of_orders("refunds", found)):
            currency = sources[each.source_id].texts["currency"] or context.source.currency
            refunded = context.report.refunded
            refunded[currency] = refunded.get(currency, 0) + amounts[each.source_id]
        context.writer.write(REFUND, "refunds", written)
        advance(len(page))


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
