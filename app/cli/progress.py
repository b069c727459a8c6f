"""Progress of long commands: a bar on a terminal, plain lines elsewhere. Both on standard error."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from app.services.common.progress import NoteProgress, Progress

SECONDS_BETWEEN_LINES = 10


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
    with Bars(*columns, console=console) as progress:
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


def stoppable_progress(check: Callable[[], None]) -> Progress:
    """Return ``showing_progress`` with a function that can end the operation by an exception."""

    @contextmanager
    def progress(label: str, total: int) -> Iterator[NoteProgress]:
        with showing_progress(label, total) as show:

            def note(done: int) -> None:
                show(done)
                check()

            yield note

    return progress
