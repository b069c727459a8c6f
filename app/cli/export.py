"""``shop-api export``: write records to a file or to standard output."""

from contextlib import ExitStack
from pathlib import Path

import click
from flask.cli import with_appcontext

from app.cli.keys import require_schema
from app.cli.progress import showing_progress
from app.errors import ShopError
from app.import_export.export_kinds import KINDS
from app.import_export.exports import (
    complete_file,
    csv_writer,
    ndjson_writer,
    number_of,
    records,
    whole_snapshot,
)
from app.import_export.filters import conditions

ALL = "all"
FORMATS = ("ndjson", "csv")
FORMAT_HELP = "Format of the file. By default, csv if its name ends with .csv, otherwise ndjson."


def format_of(given: str | None, file: str) -> str:
    """Return the format of a file: the given format, or the format of the file name."""
    return given or ("csv" if Path(file).suffix.lower() == ".csv" else "ndjson")


@click.command("export")
@click.argument("kind", type=click.Choice([*KINDS, ALL]))
@click.argument("file")
@click.option("--format", "given_format", type=click.Choice(FORMATS), help=FORMAT_HELP)
@click.option(
    "--filter",
    "filters",
    multiple=True,
    metavar="NAME=VALUE",
    help="Only records that match, as in lists of the API. Can be repeated.",
)
@click.option(
    "--password-hashes", is_flag=True, help="Include the hashes of the passwords of accounts."
)
@with_appcontext
def export(
    kind: str,
    file: str,
    given_format: str | None,
    filters: tuple[str, ...],
    *,
    password_hashes: bool,
) -> None:
    """Write records to FILE, or to standard output if FILE is -.

    KIND `all` writes all kinds into one NDJSON file, which `shop-api import restore` reads. The
    records of an export show the same state of the database. The trash is included.
    """
    require_schema()
    is_csv = format_of(given_format, file) == "csv"
    if is_csv and (kind == ALL or password_hashes):
        raise click.UsageError("A CSV file contains one kind of record and no password hashes.")
    if kind == ALL and filters:
        raise click.UsageError("--filter requires a kind of record.")
    try:
        wanted = conditions(kind, filters) if filters else []
    except ShopError as error:
        raise click.ClickException(str(error)) from None
    with ExitStack() as stack:
        output = stack.enter_context(complete_file(file))
        snapshot = stack.enter_context(whole_snapshot())
        for each in KINDS.values() if kind == ALL else [KINDS[kind]]:
            write = ndjson_writer(output)
            total = number_of(snapshot, each, wanted)
            with ExitStack() as parts:
                if is_csv:
                    write = parts.enter_context(csv_writer(output, each))
                note = parts.enter_context(showing_progress(each.name, total))
                done = 0
                for chunk in records(snapshot, each, wanted, password_hashes=password_hashes):
                    for record in chunk:
                        write(record)
                    done += len(chunk)
                    note(done)
            click.echo(f"{each.name}: {done:,} exported.", err=True)
