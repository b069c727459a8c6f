"""``shop-api import woocommerce``: import the database of a WooCommerce shop."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit
from flask.cli import with_appcontext

from app.cli.import_group import imports
from app.cli.keys import require_schema
from app.plugins.woocommerce.importer.report import COLUMNS, ImportReport
from app.plugins.woocommerce.importer.tables import SourceError
from app.services.orders.items import amount_text

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stopping_between_batches() -> Iterator[Callable[[], None]]:
    """Stop a command after its batch on Ctrl-C or SIGTERM. A second signal stops it immediately.

    Yields a function that the command calls after each batch. After a signal it raises Exit, whose
    ``exit_code`` is 130 for Ctrl-C and 143 for SIGTERM.
    """
    received: list[int] = []

    def note(number: int, _frame: object) -> None:
        if received:
            sys.exit(128 + number)
        received.append(number)
        click.echo("Stopping after this batch …", err=True)

    def check() -> None:
        if received:
            raise Exit(128 + received[0])

    with ExitStack() as stack:
        for number in SIGNALS:
            try:
                before = signal.signal(number, note)
            except ValueError:  # not in the main thread
                break
            stack.callback(signal.signal, number, before)
        yield check


if TYPE_CHECKING:
    from app.plugins.woocommerce.importer.source.loading import Location
    from app.plugins.woocommerce.importer.verification import Verification
    from app.services.common.progress import Progress

_ROW = "{:<12}" + " {:>10}" * len(COLUMNS) + " {:>9}"


def _of_source(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that locate a source, and pass its Location to a command."""

    @with_appcontext
    @wraps(command)
    def run(
        *,
        source: str,
        prefix: str,
        users_prefix: str | None,
        database: str | None,
        **others: object,
    ) -> None:
        # Import on first use, because only these commands need the drivers.
        from app.plugins.woocommerce.importer.source.loading import Location

        require_schema()
        command(Location(source, prefix, users_prefix, database), **others)

    for option in (
        click.option(
            "--database", metavar="NAME", help="Database of the shop, if a dump has several."
        ),
        click.option(
            "--keep-key",
            "keep_keys",
            metavar="NAME",
            multiple=True,
            help="Key of metadata that is imported, although it is usually left out. Repeatable.",
        ),
        click.option("--users-prefix", help="Prefix of the tables of users. Default: --prefix."),
        click.option(
            "--prefix", default="wp_", show_default=True, help="Prefix of the tables of the shop."
        ),
        click.argument("source"),
    ):
        run = option(run)
    return run


@contextmanager
def _running(when_stopped: Callable[[], None]) -> Iterator[Progress]:
    """Yield the progress of a command, and end it if it is stopped or cannot read the source."""
    from app.cli.progress import stoppable_progress  # its progress bars take time to import

    with stopping_between_batches() as check:
        try:
            yield stoppable_progress(check)
        except SourceError as error:
            raise click.ClickException(str(error)) from None
        except Exit:
            when_stopped()
            raise


_NOTHING_WRITTEN = "Nothing was written (--dry-run)."
_CONTINUE = "The records above are stored. Run the same command again to continue."


_say = partial(click.echo, err=True)


@imports.command("woocommerce")
@_of_source
@click.option("--dry-run", is_flag=True, help="Run the whole import and write nothing.")
@click.option(
    "--report",
    "report_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File for one line of JSON for each record that is left out, altered, kept or missing.",
)
@click.option(
    "--new-ids",
    is_flag=True,
    help="Give every record a new ID. Use it to import into a shop that has records.",
)
@click.option(
    "--same-shop", is_flag=True, help="The shop was imported before, under another address."
)
@click.option("--overwrite", is_flag=True, help="Replace records that were edited in this shop.")
def woocommerce(
    location: Location,
    *,
    report_file: Path | None,
    keep_keys: tuple[str, ...],
    dry_run: bool,
    new_ids: bool,
    same_shop: bool,
    overwrite: bool,
) -> None:
    """Import the WooCommerce database SOURCE.

    SOURCE is a dump (dump.sql or dump.sql.gz), or the URL of a MySQL or MariaDB server:
    mysql+pymysql://user:password@host/database. It is only read. Run the command again to import
    what has changed since, or to complete an interrupted import.
    """
    from app.plugins.woocommerce.importer.importer import Options, import_shop  # see above

    options = Options(
        dry_run=dry_run,
        new_ids=new_ids,
        overwrite=overwrite,
        same_shop=same_shop,
        keep_keys=keep_keys,
    )

    def show() -> None:
        _show(report, report_file)
        click.echo(f"Stopped. {_NOTHING_WRITTEN if dry_run else _CONTINUE}")

    with report_file.open("w", encoding="utf-8") if report_file else nullcontext() as lines:
        report = ImportReport(lines)
        with _running(show) as progress:
            import_shop(location, options, report, progress=progress, say=_say)
    _show(report, report_file)
    if dry_run:
        click.echo(_NOTHING_WRITTEN)


@imports.command("verify")
@_of_source
@click.option(
    "--sample",
    default=200,
    show_default=True,
    type=click.IntRange(min=0),
    help="Records of each kind that are compared field by field.",
)
@click.option("--seed", type=int, help="Seed of the random sample.")
def verify(
    location: Location, *, keep_keys: tuple[str, ...], sample: int, seed: int | None
) -> None:
    """Compare this shop with the WooCommerce database SOURCE that was imported.

    Compares numbers of records, sums of money of each status, and a random sample field by field.
    The exit status is 1 if there are differences.
    """
    from app.plugins.woocommerce.importer.verification import verify_shop  # see above

    def show() -> None:
        click.echo("Stopped. The comparison is not complete.")

    with _running(show) as progress:
        found = verify_shop(
            location, progress=progress, say=_say, sample=sample, seed=seed, keep_keys=keep_keys
        )
    _show_verification(found)


def _show(report: ImportReport, report_file: Path | None) -> None:
    click.echo(_ROW.format("", *(name.replace("_", " ") for name in COLUMNS), "seconds"))
    for label, counts in report.counts.items():
        numbers = (f"{counts[name]:,}" for name in COLUMNS)
        click.echo(_ROW.format(label, *numbers, f"{report.seconds.get(label, 0):,.1f}"))
    for currency, cents in report.refunded.items():
        click.echo(f"Refunded: {amount_text(cents)} {currency}")
    if report.keys:
        number = sum(rows for _, _, rows, _ in report.keys)
        click.echo(f"Metadata left out: {number:,} rows with {len(report.keys):,} keys.")
    if kept := report.total("kept"):
        click.echo(f"Edited in this shop and kept: {kept:,}. Replace them with --overwrite.")
    if missing := report.total("missing"):
        click.echo(f"No longer at the source, and kept: {missing:,}.")
    if report_file:
        click.echo(f"Details: {report_file}")
    elif report.total("altered") or report.total("left_out"):
        click.echo("Add --report FILE for a line about each record altered or left out.")


def _show_verification(found: Verification) -> None:
    for line in found.lines:
        click.echo(line)
    if found.differences:
        for difference in found.differences:
            click.echo(f"DIFFERENT {difference}")
        raise click.ClickException(f"{found.number:,} differences found.")
    click.echo("No differences found.")
