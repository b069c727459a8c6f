"""``flask --app wsgi serve``: set up the database and run gunicorn, as in ``make run``."""

from __future__ import annotations

import os
import socket
import sys

import click
from flask import current_app
from flask.cli import with_appcontext

from app.auth.principals import Permission
from app.cli.keys import NEW_KEY, show
from app.db import session
from app.services import api_keys


@click.command("serve")
@with_appcontext
def serve() -> None:
    """Upgrade the database schema, create a first API key if needed, and run gunicorn."""
    _require_free_port(current_app.config["HOST"], current_app.config["PORT"])
    if not session.schema_is_current():
        from flask_migrate import upgrade  # noqa: PLC0415  # slow import, rarely needed

        upgrade()
    config = current_app.config
    host = f"[{config['HOST']}]" if ":" in config["HOST"] else config["HOST"]
    address = f"http://{host}:{config['PORT']}{config['SHOP_URL_PREFIX']}"
    if api_keys.has_no_users():
        first = api_keys.create_key(
            "admin", "administrator", Permission.READ_WRITE, "created by the first run"
        )
        show(first)
        click.echo(f"Example: curl -u $KEY {address}/coupons")
    else:
        count = len(api_keys.list_keys())
        click.echo(f"{count} API {'key exists' if count == 1 else 'keys exist'}. Create another:")
        click.echo(f"  {NEW_KEY}")
    click.echo(f"API        {address}/")
    click.echo(f"Swagger UI {address}/docs")
    sys.stdout.flush()
    # gunicorn.conf.py reads only the environment, but settings can be in instance/config.py.
    for name in ("HOST", "PORT", "WEB_CONCURRENCY", "WEB_THREADS"):
        if config[name] is not None:
            os.environ[name] = str(config[name])
    gunicorn = os.path.join(os.path.dirname(sys.executable), "gunicorn")  # noqa: PTH118, PTH120  # for exec
    os.execv(gunicorn, [gunicorn, "wsgi:app"])  # noqa: S606  # nosec B606  # a known program without a shell


def _require_free_port(host: str, port: int) -> None:
    """Raise ClickException if the port is in use, before creating a key and before gunicorn."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise click.ClickException(
            f"{host}:{port} cannot be used: {error.strerror}. "
            "Choose another port: PORT=8001 make run"
        ) from None
