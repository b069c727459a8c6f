"""``shop-api demo``: load a reproducible demo shop in bulk."""

from collections.abc import Iterator
from contextlib import contextmanager

import click
from flask.cli import with_appcontext

from app.cli import program
from app.cli.keys import require_schema, show_new
from app.cli.progress import showing_progress
from app.conversions import dates
from app.conversions.numbers import MAX_COUNT
from app.services.common.progress import NoteProgress
from app.services.maintenance.demo.loading import DemoError, UnfinishedDemoError, load_demo_shop

_FIRST, _LAST = 1000, 9900
"""Years of ``--now``. Records of the demo are up to ten years older or newer."""


@click.command("demo")
@click.option("--customers", default=1000, show_default=True, type=click.IntRange(min=0))
@click.option("--coupons", default=200, show_default=True, type=click.IntRange(min=0))
@click.option("--orders", default=3000, show_default=True, type=click.IntRange(min=0))
@click.option(
    "--seed", default=1, show_default=True, help="Random seed. The same seed creates the same shop."
)
@click.option("--now", "at", metavar="ISO", help="Current time of the shop. Default: now.")
@click.option("--add", is_flag=True, help="Add another demo shop to an existing one.")
@with_appcontext
def demo(
    customers: int, coupons: int, orders: int, seed: int, at: str | None, *, add: bool
) -> None:
    """Load a demo shop into the database and print an API key for it.

    Run the same command again to resume an interrupted run.
    """
    require_schema()
    try:
        present = dates.parse_timestamp(at).replace(microsecond=0) if at else None
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--now") from None
    if present and not _FIRST <= present.year <= _LAST:
        message = f"must be between the years {_FIRST} and {_LAST}."
        raise click.BadParameter(message, param_hint="--now")
    lengths = {"customers": customers, "coupons": coupons, "orders": orders}
    if any(abs(number) > MAX_COUNT for number in (*lengths.values(), seed)):
        raise click.UsageError(f"A number is above {MAX_COUNT}.")
    try:
        key = load_demo_shop(
            lengths, seed, present, add=add, progress=_progress, note_resumed=_note_resumed
        )
    except UnfinishedDemoError as error:
        options = " ".join(f"--{name} {error.run[name]}" for name in (*lengths, "seed"))
        resume = program.command(f"demo {options} --now {error.run['present'].isoformat()}")
        raise click.ClickException(
            f"A demo run was interrupted. Resume it with `{resume}`, or use --add to load another "
            "shop."
        ) from None
    except DemoError as error:
        raise click.ClickException(str(error)) from None
    if key:
        show_new(key)


def _note_resumed() -> None:
    click.echo("Resuming the interrupted run.", err=True)


@contextmanager
def _progress(name: str, length: int) -> Iterator[NoteProgress]:
    """Show the progress of one kind of records, and its end."""
    with showing_progress(name, length) as note:
        yield note
    click.echo(f"{name:>10}: {length:,} loaded", err=True)
