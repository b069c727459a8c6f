"""``shop-api serve`` and ``worker``.

``serve`` sets up the database and runs gunicorn, as in ``make run``.
"""

import errno
import gc
import os
import signal
import socket
import sys
from contextvars import Context
from pathlib import Path
from typing import NoReturn

import click
from flask import current_app
from flask.cli import with_appcontext

from app.auth.principals import Permission
from app.cli import program
from app.cli.db import upgraded
from app.cli.keys import require_schema, show_new, sign_in_url
from app.config.files import runtime_folder
from app.config.settings import GUNICORN_SETTINGS
from app.config.urls import own_url
from app.db import session
from app.db.migrations import SchemaState
from app.services.api_keys import links
from app.services.api_keys import queries as api_key_queries
from app.services.api_keys import writes as api_keys

RUNTIME = runtime_folder()


@click.command("serve")
@with_appcontext
def serve() -> None:
    """Upgrade the database schema, create a first API key if needed, and run gunicorn.

    Also runs a worker, unless SHOP_WORKER is 0.
    """
    _listener().close()  # raises an error before a key is created
    if session.schema_state() is not SchemaState.CURRENT:
        click.echo(upgraded().description(), err=True)
    config = current_app.config
    address = own_url(config)
    if api_key_queries.has_no_users():
        first = api_keys.create_key(
            "admin", "administrator", Permission.READ_WRITE, "created by the first run"
        )
        show_new(first)
        click.echo(f"Example: curl -u $KEY {address}/coupons")
    else:
        count = api_key_queries.count_keys()
        click.echo(f"{count} API {'key exists' if count == 1 else 'keys exist'}. Create another:")
        click.echo(f"  {program.new_key()}")
    if config["SHOP_ADMIN"]:
        click.echo(f"Admin      {_admin(address)}")
    click.echo(f"API        {address}/")
    click.echo(f"Swagger UI {address}/docs")
    click.echo(f"Guides     {address}/docs/guides/")
    sys.stdout.flush()
    # gunicorn.conf.py reads only the environment, but settings can be in instance/config.py.
    for name in GUNICORN_SETTINGS:
        if config[name] is not None:
            os.environ[name] = str(config[name])
    # gunicorn.conf.py and wsgi.py are found by their folder, independent of the current folder.
    paths = [str(RUNTIME), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    gunicorn = str(Path(sys.executable).parent / "gunicorn")
    command = [gunicorn, "--config", str(RUNTIME / "gunicorn.conf.py"), "wsgi:app"]
    if config["SHOP_WORKER"]:
        command = _with_worker(command)
    os.execv(command[0], command)  # nosec B606  # a known program without a shell


def _with_worker(command: list[str]) -> list[str]:
    """Start gunicorn and a worker as copies of this process, which share the memory of the app.

    Return the command that runs both. With metrics, it starts gunicorn, because the app must be
    loaded after gunicorn has created their folder.
    """
    listener = _listener().detach()
    os.set_inheritable(listener, True)
    command = [*command, "--bind", f"fd://{listener}"]
    session.db.session.remove()
    for engine in session.db.engines.values():
        engine.dispose()  # a connection must not be used by two processes
    gc.freeze()  # a collection would copy what the processes share
    parent = os.getpid()
    worker = os.fork()
    if not worker:
        os.close(listener)
        run_worker(parent)
        sys.exit()
    has_metrics = current_app.config["SHOP_METRICS"]
    gunicorn = 0 if has_metrics else os.fork()
    if not (has_metrics or gunicorn):
        _run_gunicorn(command, parent)
    # Those that arrive before the next program can handle them would end it, or be lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    numbers = map(str, (gunicorn, worker, listener))
    return [sys.executable, "-m", "server.supervisor", *numbers, *command]


def _run_gunicorn(command: list[str], parent: int) -> NoReturn:
    """Be gunicorn's main process, with the app that is loaded already."""
    from gunicorn.app.wsgiapp import WSGIApplication  # for this command only

    os.environ["SERVE_PID"] = str(parent)
    sys.path.insert(0, str(RUNTIME))
    sys.argv = command
    gunicorn = WSGIApplication()
    gunicorn.callable = current_app._get_current_object()  # type: ignore[attr-defined] # as Flask documents it
    Context().run(gunicorn.run)  # without the app context of the command
    sys.exit()


def _admin(address: str) -> str:
    """Return a link that signs in, for a terminal only, because logs are kept."""
    key_id = links.newest_administrator_key() if sys.stdout.isatty() else None
    if key_id is None:
        return f"{address}/admin (to sign in: {program.command(f'keys link --url {address}')})"
    return f"{sign_in_url(key_id, address)} (signs in once within 10 minutes)"


def _listener() -> socket.socket:
    """Return a socket that listens on the address of the service.

    Raises:
        ClickException: the address cannot be used.
    """
    host, port = current_app.config["HOST"], current_app.config["PORT"]
    is_ipv6 = ":" in host
    family = socket.AF_INET6 if is_ipv6 else socket.AF_INET
    try:
        address = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0][4]
        # The other options are gunicorn's defaults.
        return socket.create_server(address, family=family, backlog=2048, dualstack_ipv6=is_ipv6)
    except socket.gaierror:
        raise click.ClickException(
            f"The host {host!r} cannot be resolved. Set HOST to an address of this machine: "
            "HOST=127.0.0.1 make run"
        ) from None
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise click.ClickException(
                f"{host} is not an address of this machine. Correct HOST: HOST=127.0.0.1 make run"
            ) from None
        raise click.ClickException(
            f"{host}:{port} cannot be used: {os.strerror(error.errno or 0)}. "
            "Choose another port: PORT=8001 make run"
        ) from None


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
