"""Databases with the tables of the latest schema, which are copied instead of migrated.

A process runs the migrations once per engine. They have tests of their own, which do not use this
module (``test_migrations``, ``test_upgrades``).
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import uuid
from functools import cache
from pathlib import Path

import psycopg
from flask_migrate import upgrade
from sqlalchemy import URL, make_url

from app import create_app
from app.db.session import db

_on_servers: list[tuple[str, str]] = []
"""The address of the server and the name of each template in PostgreSQL."""


def create_tables(url: str) -> None:
    """Give an empty database the tables of the latest schema.

    On PostgreSQL, the database is created again. It must not be behind a pooler. The one with the
    name ``postgres`` is migrated instead: it belongs to a server of one test, which is stopped.

    Args:
        url: the database, as in ``DATABASE_URL``. Nothing may be connected to it.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        shutil.copyfile(_sqlite_template(), str(parsed.database))
        return
    server = parsed.set(database="postgres")
    if parsed == server:
        with tempfile.TemporaryDirectory() as folder:
            _migrate(url, Path(folder))
        return
    template = _postgresql_template(server)
    with psycopg.connect(_address(server), autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{parsed.database}"')
        connection.execute(f'CREATE DATABASE "{parsed.database}" TEMPLATE "{template}"')


def drop_templates() -> None:
    """Remove what this process created on servers, which may outlive it."""
    while _on_servers:
        address, name = _on_servers.pop()
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}"')


@cache
def _sqlite_template() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="shop-schema-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _migrate(f"sqlite:///{folder}/schema.db", folder)
    return folder / "schema.db"


@cache
def _postgresql_template(server: URL) -> str:
    name = f"shop_schema_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(_address(server), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    _on_servers.append((_address(server), name))
    with tempfile.TemporaryDirectory() as folder:
        url = server.set(database=name).render_as_string(hide_password=False)
        _migrate(url, Path(folder))
    return name


def _address(url: URL) -> str:
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def _migrate(url: str, folder: Path) -> None:
    settings = {"DATABASE_URL": url, "SECRET_KEY": "a secret for tests only"}
    app = create_app(settings | {"INSTANCE_PATH": str(folder)})
    with app.app_context():
        upgrade()
        for engine in db.engines.values():
            engine.dispose()
