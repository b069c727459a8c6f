"""The import of a WooCommerce database, from a source to a finished report."""

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from app.auth.api_keys import note_revocation
from app.db.session import run_in_transaction
from app.models import ITEM_IDS
from app.plugins.woocommerce.importer import kinds
from app.plugins.woocommerce.importer.context import ImportContext, Step
from app.plugins.woocommerce.importer.convert.metadata import MetadataConverter, reasons_by_key
from app.plugins.woocommerce.importer.report import COUNTS, ImportReport
from app.plugins.woocommerce.importer.source.loading import Location, Say, load
from app.plugins.woocommerce.importer.source.shop import ShopSource
from app.plugins.woocommerce.importer.source.staging import staging
from app.plugins.woocommerce.importer.steps import accounts, coupons, order_parts, orders
from app.plugins.woocommerce.importer.tables import SourceError
from app.plugins.woocommerce.importer.target.record_map import RecordMap, is_empty
from app.plugins.woocommerce.importer.target.writer import RecordWriter
from app.services.common import metadata
from app.services.common.progress import Progress
from app.services.maintenance.import_runs import record_import

REPORTED = (kinds.CUSTOMER, kinds.COUPON, kinds.ORDER, kinds.REFUND, kinds.API_KEY)
"""Kinds whose records are reported if they no longer exist at the source."""

RESERVED = {
    ITEM_IDS: ("woocommerce_order_items",),
    metadata.ITEM.table: ("woocommerce_order_itemmeta",),
    metadata.CUSTOMER.table: ("usermeta",),
    **dict.fromkeys(
        [kind.table for kind in (metadata.COUPON, metadata.ORDER, metadata.REFUND)],
        ("postmeta", "wc_orders_meta"),
    ),
}
"""Tables whose new IDs are above those of tables of the source."""

COLLECT_AFTER = 100_000
"""Number of new objects after which the garbage collector runs. The default of Python is 700."""


@dataclass(frozen=True, slots=True)
class Options:
    """How records are imported.

    Args:
        new_ids: whether every record gets a new ID.
        overwrite: whether to replace records that were edited in this shop.
        same_shop: whether it is the shop of an earlier import, whose address has changed.
        keep_keys: keys of metadata that are imported although they are usually left out.
    """

    dry_run: bool = False
    new_ids: bool = False
    overwrite: bool = False
    same_shop: bool = False
    keep_keys: Sequence[str] = ()


ONE_SEQUENCE = (kinds.COUPON, kinds.ORDER, kinds.REFUND)
"""Kinds whose IDs are of one sequence at the source.

After an import into an empty shop, new records of all three get IDs above the highest one, so that
an ID of the source is not used twice.
"""


@contextmanager
def rare_collections() -> Iterator[None]:
    """Run the garbage collector less often.

    An import creates many objects and hardly any cycles. Orders then take a sixth less CPU time
    (``python -m qa.bench imports``, runs with and without it in turn).
    """
    before = gc.get_threshold()
    gc.set_threshold(COLLECT_AFTER, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def staged_shop(location: Location, progress: Progress, say: Say) -> Iterator[ShopSource]:
    """Load a source into a staging file, which is removed at the end of the context.

    Raises:
        SourceError: the source cannot be read, or is not a shop.
    """
    with staging() as staged:
        with progress("bytes read" if location.size else "rows read", location.size) as note:
            load(location, staged, note, lambda text: say(f"Warning: {text}"))
        say(f"The temporary file takes {staged.size / 1e6:,.1f} MB.")
        yield ShopSource(staged, location.prefix)


def import_shop(
    location: Location, options: Options, report: ImportReport, *, progress: Progress, say: Say
) -> None:
    """Import a shop.

    The next import completes an interrupted one, because it skips imported records.

    Args:
        say: called with a message for the operator.

    Raises:
        SourceError: the source cannot be read, or is not a shop.
    """
    with rare_collections(), staged_shop(location, progress, say) as source:
        records = _records(source, options)
        if records.is_interrupted:
            say("Resuming the interrupted import.")
        was_known = records.is_known
        records.begin()
        writer = RecordWriter(records, report, overwrite=options.overwrite, new_ids=options.new_ids)
        converter = MetadataConverter(options.keep_keys)
        context = ImportContext.of(source, writer, report, converter)
        plan = plan_of(context)
        last_ids = {step.kind.name: source.staging.last_id(step.table) for step in plan}
        if is_empty([kind.table for kind in ONE_SEQUENCE]):
            highest = max(last_ids[kind.name] for kind in ONE_SEQUENCE)
            last_ids |= {kind.name: highest for kind in ONE_SEQUENCE}
        for step in plan:
            writer.ids.advance(step.kind.name, step.kind.table, last_ids[step.kind.name])
        for table, names in RESERVED.items():
            writer.ids.reserve(table, max(map(source.staging.last_id, names)))
        for step in plan:
            # The time includes that of counting.
            with (
                report.timed(step.kind.label),
                progress(step.kind.label, step.total(context)) as note,
            ):
                step.run(context, note)
            if was_known and step.kind in REPORTED:
                context.report_missing(step.kind, step.table)
        records.finish()
        report.left_out_keys(reasons_by_key(converter.left_out))
        if rules := source.staging.count("wdr_rules"):
            why = f"{rules} discount rules without codes are not mapped"
            report.line("wdr_rules", None, "left_out", why)
        if not options.dry_run:
            note_revocation()  # roles and keys may have changed
            _record_event(records, report)


def _records(source: ShopSource, options: Options) -> RecordMap:
    """Return the map of the records of a source."""
    records = RecordMap(source.name, source.staging, dry_run=options.dry_run)
    if records.is_known or not records.others or options.new_ids:
        return records
    (other, *more), name = records.others, source.name
    if options.same_shop and not more:
        return RecordMap(name, source.staging, dry_run=options.dry_run, previous_name=other)
    raise SourceError(
        f"The database contains the shop {other.split()[0]}, and this is {name.split()[0]}. Add "
        "--new-ids to import another shop beside it. If it is the same shop and only its address "
        "has changed, add --same-shop."
    )


def plan_of(context: ImportContext) -> list[Step]:
    """Return the steps of an import, in the order of their references."""
    layout, webhooks = context.source.layout, accounts.webhooks_table(context)
    return [
        Step("users", kinds.CUSTOMER, accounts.customers),
        Step("posts:shop_coupon", kinds.COUPON, coupons.coupons, coupons.claim_codes),
        Step(layout.orders, kinds.ORDER, orders.orders),
        Step(
            "used_by",
            kinds.COUPON_USE,
            coupons.redemptions,
            coupons.release_uses,
            pages=lambda context: context.index.uses_beyond_orders(),
            count=coupons.count_redemptions,
        ),
        Step("comments", kinds.ORDER_NOTE, order_parts.notes),
        Step(
            layout.refunds, kinds.REFUND, order_parts.refunds, order_parts.remove_notes_of_refunds
        ),
        Step(order_parts.DOWNLOADS, kinds.DOWNLOAD, order_parts.downloads),
        Step("woocommerce_api_keys", kinds.API_KEY, accounts.api_keys),
        Step(webhooks, kinds.WEBHOOK, accounts.webhooks),
    ]


def _record_event(records: RecordMap, report: ImportReport) -> None:
    counts = {
        label: {**{name: each[name] for name in COUNTS}, "seconds": report.seconds.get(label, 0.0)}
        for label, each in report.counts.items()
    }
    summary = {"records": counts}
    created, updated = report.total("created"), report.total("updated")
    run_in_transaction(
        lambda session: record_import(
            session, records.name, summary, created=created, updated=updated
        )
    )


__all__ = ["Location", "Options", "SourceError", "import_shop", "staged_shop"]
