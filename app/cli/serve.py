"""``shop-api serve``: set up the database and run gunicorn, as in ``make run``."""

import errno
import os
import socket
import sys
from pathlib import Path

import click
from flask import current_app
from flask.cli import with_appcontext

from app.auth.principals import Permission
from app.cli import program
from app.cli.db import upgraded
from app.cli.keys import show_new, sign_in_url
from app.cli.worker import run_worker
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
    _require_free_port(current_app.config["HOST"], current_app.config["PORT"])
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
        command = [sys.executable, "-m", "server.supervisor", str(_first_worker()), *command]
    os.execv(command[0], command)  # noqa: S606  # nosec B606  # a known program without a shell


def _first_worker() -> int:
    """Start a worker as a copy of this process, and return its ID."""
    session.db.session.remove()
    for engine in session.db.engines.values():
        engine.dispose()  # a connection must not be used by two processes
    parent = os.getpid()
    child = os.fork()
    if not child:
        run_worker(parent)
        sys.exit()
    return child


def _admin(address: str) -> str:
    """Return a link that signs in, for a terminal only, because logs are kept."""
    key_id = links.newest_administrator_key() if sys.stdout.isatty() else None
    if key_id is None:
        return f"{address}/admin (to sign in: {program.command(f'keys link --url {address}')})"
    return f"{sign_in_url(key_id, address)} (signs in once within 10 minutes)"


def _require_free_port(host: str, port: int) -> None:
    """Raise ClickException if the port is in use, before creating a key and before gunicorn."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
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
            f"{host}:{port} cannot be used: {error.strerror}. "
            "Choose another port: PORT=8001 make run"
        ) from None
