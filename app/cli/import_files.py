"""``shop-api import coupons|customers|restore``: read records from files."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import orjson
from flask.cli import with_appcontext

from app.auth.principals import Principal
from app.cli.coupons import author
from app.cli.export import FORMAT_HELP, FORMATS, format_of
from app.cli.import_group import imports
from app.cli.keys import require_schema
from app.cli.progress import showing_progress
from app.import_export.export_kinds import KINDS
from app.import_export.exports import STANDARD
from app.import_export.file_reader import csv_lines, ndjson_lines, opened, require_records
from app.import_export.import_kinds import TARGETS
from app.import_export.imports import FileImport, OnConflict
from app.import_export.restore import Numbered, RestoreError, restore
from app.services.maintenance import stored_texts


def _file_import(kind: str) -> click.Command:
    """Return the command that imports a kind of records."""
    key = TARGETS[kind].key.replace("email", "e-mail address")

    @click.command(
        kind,
        help=f"Import {kind} from FILE, or from standard input if FILE is -.\n\nThe rules and "
        "messages are those of a bulk request. IDs, times and unknown names are ignored, and "
        "records in the trash are skipped.",
        short_help=f"Import {kind} from a file.",
    )
    @click.argument("file")
    @click.option("--format", "given_format", type=click.Choice(FORMATS), help=FORMAT_HELP)
    @click.option(
        "--on-conflict",
        type=click.Choice([choice.value for choice in OnConflict]),
        default=OnConflict.FAIL.value,
        show_default=True,
        help=f"What to do if the {key} exists: report the line, skip it, or update the record.",
    )
    @click.option("--dry-run", is_flag=True, help="Write nothing, but report what would fail.")
    @click.option("--login", help="Username of the author. By default, records have no author.")
    @with_appcontext
    def command(
        file: str, given_format: str | None, on_conflict: str, login: str | None, *, dry_run: bool
    ) -> None:
        _run(
            kind,
            file,
            format_of(given_format, file),
            OnConflict(on_conflict),
            author(login),
            dry_run=dry_run,
        )

    return command


def _run(
    kind: str,
    path: str,
    file_format: str,
    on_conflict: OnConflict,
    actor: Principal,
    *,
    dry_run: bool,
) -> None:
    require_schema()
    target = TARGETS[kind]
    name = "standard input" if path == STANDARD else path

    def report(number: int, reason: str) -> None:
        click.echo(f"{name}, line {number}: {reason}", err=True)

    def warn(text: str) -> None:
        click.echo(f"{name}: {text}", err=True)

    try:
        with ExitStack() as stack:
            file = stack.enter_context(opened(path))
            note = stack.enter_context(showing_progress(kind))
            is_csv = file_format == "csv"
            lines = csv_lines(file, target.column_names) if is_csv else ndjson_lines(file)
            reading = FileImport(
                target,
                actor,
                on_conflict,
                is_csv,
                report=report,
                warn=warn,
                note_progress=note,
                name="" if path == STANDARD else Path(path).name,
            )
            counts = reading.run(require_records(lines, file_format), dry_run=dry_run)
    except ValueError as error:  # of the file as a whole
        raise click.ClickException(f"{name}, {error}") from None
    click.echo(
        f"{kind}: {counts.read:,} read, {counts.created:,} created, {counts.updated:,} updated, "
        f"{counts.skipped:,} skipped, {counts.failed:,} failed."
        + (" Dry run: nothing was written." if dry_run else "")
    )
    if counts.failed:
        sys.exit(1)


@click.command("restore")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@with_appcontext
def restore_files(files: Sequence[str]) -> None:
    """Restore NDJSON exports into an empty database.

    Records keep their IDs, times and status. Everything is stored, or nothing. Coupon codes of an
    earlier version are then normalized, and counts of more than 15 digits reduced.
    """
    require_schema()
    try:
        with showing_progress("records") as note_progress:
            numbers = restore(_lines(files), note_progress)
    except (RestoreError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    for kind, number in numbers.items():
        click.echo(f"{kind}: {number:,} restored.")
    for message in stored_texts.normalize_coupons():
        click.echo(message, err=True)
    if not numbers:
        click.echo("The files contain no records.")


def _lines(paths: Sequence[str]) -> Iterator[Numbered]:
    """Yield the lines of all files. Files come in the order in which their records are restored."""
    for path in sorted(paths, key=_position):
        name = "standard input" if path == STANDARD else path
        with opened(path) as file:
            try:
                yield from ((name, line) for line in ndjson_lines(file))
            except ValueError as error:
                raise ValueError(f"{name}, {error}") from None


def _position(path: str) -> int:
    """Return the position of the kind in the first line of a file."""
    if path == STANDARD or not Path(path).is_file():  # which cannot be read twice
        return 0
    with opened(path) as file:
        try:
            first: Any = orjson.loads(file.readline())
            singular = [kind.singular for kind in KINDS.values()]
            return singular.index(first["kind"])
        except (ValueError, LookupError, TypeError):
            return 0  # the error is reported when the line is read


for name in TARGETS:
    imports.add_command(_file_import(name))
imports.add_command(restore_files)
