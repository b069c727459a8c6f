"""Progress of an import: a bar or plain lines for each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from app.cli.progress import showing_progress

Advance = Callable[[int], None]


class ImportProgress:
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
