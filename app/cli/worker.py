"""``shop-api worker``: deliver webhooks, import files and remove expired records."""

import click
from flask import current_app
from flask.cli import with_appcontext

from app.cli.keys import require_schema


@click.command("worker")
@click.option(
    "--parent",
    type=int,
    envvar="SERVE_PID",  # set by server/supervisor.py
    metavar="PID",
    help="Stop when this process, which started the worker, ends, as under `shop-api serve`.",
)
@with_appcontext
def worker(*, parent: int | None) -> None:
    """Deliver webhooks, import files and remove expired records.

    Any number of workers on any number of machines share the work. SIGTERM finishes the deliveries
    in flight.
    """
    require_schema()
    run_worker(parent)


def run_worker(parent: int | None) -> None:
    """Run a worker until it is stopped, or until its parent process ends."""
    from app.import_export.stored_files import import_next_part  # slow imports,
    from app.worker.loop import DeliveryWorker  # for this command only

    app = current_app._get_current_object()  # type: ignore[attr-defined] # as Flask documents it
    DeliveryWorker(app, parent=parent, import_part=import_next_part).run()
