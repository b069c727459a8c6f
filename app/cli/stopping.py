"""Clean stop of a long command between two batches, so that it can be continued."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(Exception):
    """The command received a signal. ``exit_code`` is 130 for Ctrl-C and 143 for SIGTERM."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


@contextmanager
def stopping_between_batches() -> Iterator[Callable[[], None]]:
    """Stop a command after its batch on Ctrl-C or SIGTERM. A second signal stops it immediately.

    Yields a function that the command calls after each batch. It raises Stopped after a signal.
    """
    received: list[int] = []

    def note(number: int, _frame: object) -> None:
        if received:
            sys.exit(128 + number)
        received.append(number)
        click.echo("Stopping after this batch …", err=True)

    def check() -> None:
        if received:
            raise Stopped(received[0])

    before = {}
    try:
        for number in SIGNALS:
            try:
                before[number] = signal.signal(number, note)
            except ValueError:  # not in the main thread
                break
        yield check
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
