"""A PgBouncer in transaction mode, in front of any PostgreSQL server."""

import time
from contextlib import suppress

import psycopg

from qa.cluster import programs
from qa.cluster.postgresql import PASSWORD, PATIENCE, USER
from tests.serving import reserved_port

ADMINISTRATOR = "bouncer"

_CONFIGURATION = """
[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen_port}
unix_socket_dir =
auth_type = scram-sha-256
auth_file = {users}
admin_users = {administrator}
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 500
query_wait_timeout = 10
server_connect_timeout = 5
server_login_retry = 1
log_connections = 0
log_disconnections = 0
"""


class PgBouncer:
    """A PgBouncer from the installed package, on a port of the loopback interface.

    It has the settings that the documentation recommends. Startup options are not ignored, so a
    client that sends them is rejected.

    Args:
        folder: the folder of the configuration and the log.
        pool_size: server connections per database and user.
        user: the database user of clients, whose password is PASSWORD.
        owner: the user of the process, if it is not the user of all servers.
    """

    def __init__(self, folder, pool_size=10, user=USER, owner=None):
        self._owner = owner
        self._folder, self._pool_size = folder, pool_size
        self._reserved = reserved_port()
        self.port = self._reserved.getsockname()[1]
        self.log = folder / "pgbouncer.log"
        self.users = {user: PASSWORD, ADMINISTRATOR: PASSWORD}
        self.process = None

    def url(self, database, user=None):
        """Return the URL of a database behind PgBouncer."""
        user = user or next(iter(self.users))
        return f"postgresql://{user}:{self.users[user]}@127.0.0.1:{self.port}/{database}"

    def lead_to(self, host, port):
        """Configure the server behind PgBouncer. A running PgBouncer is reloaded."""
        users = self._folder / "users.txt"
        lines = (f'"{name}" "{password}"\n' for name, password in self.users.items())
        users.write_text("".join(lines))
        file = self._folder / "pgbouncer.ini"
        file.write_text(
            _CONFIGURATION.format(
                host=host,
                port=port,
                listen_port=self.port,
                users=users,
                administrator=ADMINISTRATOR,
                pool_size=self._pool_size,
            )
        )
        for each in (users, file):
            programs.give(each, self._owner)
        if self.is_running():
            self.command("RELOAD")

    def is_running(self):
        """Return whether the process runs."""
        return self.process is not None and self.process.poll() is None

    def start(self):
        """Start PgBouncer, and wait until it accepts connections."""
        file = self._folder / "pgbouncer.ini"
        self.process = programs.start("pgbouncer", file, log=self.log, owner=self._owner)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(psycopg.OperationalError):
                return self.command("SHOW VERSION")
            assert self.is_running(), self.log.read_text()[-3000:]
            time.sleep(0.02)
        raise AssertionError(f"PgBouncer does not start: {self.log.read_text()[-3000:]}")

    def command(self, command):
        """Run a command of the admin console and return its rows as dicts."""
        url = self.url("pgbouncer", ADMINISTRATOR)
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            cursor = connection.execute(command)
            names = [column.name for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor] if names else []

    def kill(self):
        """Kill PgBouncer."""
        self.process.kill()
        self.process.wait()

    def close(self):
        """Stop PgBouncer and release the port."""
        if self.is_running():
            self.process.terminate()
            self.process.wait(PATIENCE)
        self._reserved.close()
