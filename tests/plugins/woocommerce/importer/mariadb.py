"""A MariaDB server of its own, on the loopback interface, as an unprivileged user."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pymysql
import pytest

from tests.dumps.schemas import create_table
from tests.serving import PATIENCE, reserved_port

PROGRAMS = ("mariadbd", "mariadb-install-db", "mariadb-dump")
PATH = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/usr/local/sbin"])
MISSING = [name for name in PROGRAMS if not shutil.which(name, path=PATH)]
READER = "reader", "read only: @/#"

needs_mariadb = pytest.mark.skipif(
    bool(MISSING),
    reason=f"{', '.join(MISSING)}: not installed (Debian: apt install mariadb-server-core mariadb-client)",
)


class MariaDB:
    """A running server.

    Attributes:
        port: on 127.0.0.1.
    """

    def __init__(self, folder, port):
        self.folder, self.port = folder, port

    def connect(self, **options):
        """Return a connection of the administrator."""
        return pymysql.connect(
            unix_socket=str(self.folder / "socket"), user="root", charset="utf8mb4",
            autocommit=True, **options,
        )  # fmt: skip

    def load(self, name, shop, *, prefix="wp_", charset="utf8mb4", engine="InnoDB"):
        """Create a database with the rows of a shop."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")  # zero dates, as in old shops
            cursor.execute(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
            cursor.execute(f"USE `{name}`")
            for table, columns in shop.tables.items():
                created = create_table(prefix + table, columns, charset=charset, engine=engine)
                cursor.execute(created.replace("decimal(26,8)", "varchar(30)"))
                rows = [tuple(map(_utf8, row)) for row in shop.rows(table)]
                marks = ", ".join(["%s"] * len(columns))
                if rows:
                    cursor.executemany(f"INSERT INTO `{prefix}{table}` VALUES ({marks})", rows)
            user, password = READER
            cursor.execute(
                f"GRANT SELECT ON `{name}`.* TO %s@'%%' IDENTIFIED BY %s", (user, password)
            )

    def dump(self, name, file, *options):
        """Write a dump with the program of the server."""
        with Path(file).open("wb") as output:
            subprocess.run(
                [shutil.which("mariadb-dump", path=PATH), "--no-defaults", "--user=root",
                 f"--socket={self.folder}/socket", *options, name],
                stdout=output, check=True,
            )  # fmt: skip


def _utf8(value):
    # The connection sends text, so the bytes of hostile rows are encoded as text.
    return value.decode("latin-1").replace("\0", "") if isinstance(value, bytes) else value


@contextmanager
def mariadb():
    """Run a server for as long as the block lasts."""
    account = [] if os.geteuid() else [f"--user={pwd.getpwnam('nobody').pw_name}"]
    # A short path, because the name of a socket has at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="mariadb-"))
    reserved = reserved_port()
    try:
        data = folder / "data"
        data.mkdir()
        if account:
            for path in (folder, data):
                shutil.chown(path, "nobody")
        subprocess.run(
            [shutil.which("mariadb-install-db", path=PATH), "--no-defaults", "--skip-test-db",
             "--auth-root-authentication-method=normal", f"--datadir={data}", *account],
            check=True, capture_output=True,
        )  # fmt: skip
        port = reserved.getsockname()[1]
        reserved.close()
        log = (folder / "log").open("wb")
        process = subprocess.Popen(
            [shutil.which("mariadbd", path=PATH), "--no-defaults", f"--datadir={data}",
             f"--socket={folder}/socket", f"--port={port}", "--bind-address=127.0.0.1",
             f"--pid-file={folder}/pid", "--innodb-flush-log-at-trx-commit=0", *account],
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            server = MariaDB(folder, port)
            _wait(server, process)
            yield server
        finally:
            process.terminate()
            process.wait(PATIENCE)
            log.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait(server, process):
    end = time.monotonic() + PATIENCE
    while True:
        log = (server.folder / "log").read_text(errors="replace")
        if "ready for connections" in log:
            return
        assert process.poll() is None, log
        assert time.monotonic() < end, log
        time.sleep(0.1)
