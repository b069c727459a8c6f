"""Progress of long commands: a bar on a terminal, plain lines elsewhere. Both on standard error."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

SECONDS_BETWEEN_LINES = 10

NoteProgress = Callable[[int], None]
"""Function that is called with the number of records that are done."""


@contextmanager
def showing_progress(label: str, total: int | None = None) -> Iterator[NoteProgress]:
    """Show how many records are done, their rate and, if the total is known, the time left."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _print_lines(label, total)
        return
    rate = TextColumn("{task.fields[rate]}/s")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        rate,
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(label, total=total, rate="0")
        begun = time.monotonic()

        def note(done: int) -> None:
            rate = done / max(time.monotonic() - begun, 1e-9)
            most = None if total is None else max(total, done)
            progress.update(task, completed=done, total=most, rate=f"{rate:,.0f}")

        yield note


def _print_lines(label: str, total: int | None) -> NoteProgress:
    begun = last = time.monotonic()

    def note(done: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= SECONDS_BETWEEN_LINES and done:
            last = now
            rate = done / (now - begun)
            line = f"{label}: {done:,}, {rate:,.0f}/s"
            if total is not None:
                left = max(total - done, 0) / rate
                line = f"{label}: {done:,} of {total:,}, {rate:,.0f}/s, {left:,.0f} s left"
            click.echo(line, err=True)

    return note


Advance = Callable[[int], None]


class ProgressDisplay:
    """Shows the progress of an import on standard error.

    Args:
        check: called after each batch. If it raises an exception, the import ends.
    """

    def __init__(self, check: Callable[[], None] = lambda: None) -> None:
        self._check = check

    @contextmanager
    def step(self, label: str, total: int) -> Iterator[Advance]:
        """Show a step, and yield a function to call with the number of records of each page."""
        with showing_progress(label, total) as show:
            done = 0

            def advance(number: int) -> None:
                nonlocal done
                done += number
                show(done)
                self._check()

            yield advance

    @contextmanager
    def loading(self, total: int) -> Iterator[Advance]:
        """Show the reading of a source, and yield a function to call with the amount read so far.

        Args:
            total: the size in bytes, or 0 for a server, whose rows are counted.
        """
        with showing_progress("bytes read" if total else "rows read", total) as show:

            def advance(done: int) -> None:
                show(done)
                self._check()

            yield advance

    def say(self, message: str) -> None:
        """Show a message."""
        click.echo(message, err=True)
