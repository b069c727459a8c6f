"""A PostgreSQL server: a primary, or a standby that streams from one."""

import signal
import time
from contextlib import suppress

import psutil
import psycopg

from qa.cluster import programs
from tests.serving import reserved_port

PATIENCE = 300  # seconds; nothing takes five on an idle machine
DATABASE, USER, PASSWORD = "shop", "shop", "a-password-for-tests-only"
SUPERUSER = "postgres"

_CONFIGURATION = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
shared_buffers = 64MB
wal_keep_size = 512MB
hot_standby_feedback = on
wal_retrieve_retry_interval = 200ms
wal_receiver_status_interval = 1s
log_min_messages = warning
"""


class PostgreSQL:
    """A server from the installed package, on a port of the loopback interface.

    Args:
        folder: the folder of the data and the log.
        name: the name of the server among others, also as a standby.
        settings: more lines of postgresql.conf.
    """

    def __init__(self, folder, name, settings=""):
        self.name = name
        self.data = folder / name
        self.log = folder / f"{name}.log"
        self._settings = settings
        self._folder = folder
        self._reserved = reserved_port()
        self.port = self._reserved.getsockname()[1]
        self.process = None

    def url(self, user=USER, database=DATABASE):
        """Return the URL of a database of the server."""
        return f"postgresql://{user}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def create(self):
        """Create a primary with an empty database, whose owner is not a superuser, and start it."""
        password = self._folder / "password"
        password.write_text(PASSWORD)
        programs.give(password)
        programs.run(
            "initdb", "-D", self.data, "-U", SUPERUSER, f"--pwfile={password}", "--no-sync",
            "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8",
        )  # fmt: skip
        self._configure(_CONFIGURATION + self._settings)
        self.start()
        self.query(f"CREATE ROLE {USER} LOGIN PASSWORD '{PASSWORD}'")
        self.query(f"CREATE DATABASE {DATABASE} OWNER {USER}")

    def clone(self, primary):
        """Copy a primary, replacing earlier data, and start as its standby."""
        programs.run("rm", "-rf", self.data)
        programs.run(
            "pg_basebackup", "-D", self.data, "-c", "fast", "-X", "stream", "--no-sync",
            "-d", primary.url(SUPERUSER, "postgres"),
        )  # fmt: skip
        self._configure("")
        self.follow(primary)
        self.start()

    def follow(self, primary):
        """Configure the server, which is not running or is reloaded, as a standby of a primary."""
        target = f"{primary.url(SUPERUSER, 'postgres')}?application_name={self.name}"
        self._configure(f"primary_conninfo = '{target}'\nrecovery_target_timeline = 'latest'\n")
        (self.data / "standby.signal").touch()
        programs.give(self.data / "standby.signal")
        if self.is_running():
            self.query("SELECT pg_reload_conf()")

    def _configure(self, lines):
        file = self.data / "postgresql.conf"
        file.write_text(f"{file.read_text()}\n{lines}\nport = {self.port}\n")

    def configure(self, **settings):
        """Change settings of the running server, which do not need a restart."""
        for name, value in settings.items():
            self.query(f"ALTER SYSTEM SET {name} = '{value}'")
        self.query("SELECT pg_reload_conf()")

    # --- processes ---

    def is_running(self):
        """Return whether the main process runs."""
        return self.process is not None and self.process.poll() is None

    def start(self):
        """Start the server, and wait until it accepts connections."""
        if not self.is_running():
            self.process = programs.start("postgres", "-D", self.data, log=self.log)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(psycopg.OperationalError):
                return self.query("SELECT 1")
            assert self.is_running(), self.log.read_text()[-3000:]
            time.sleep(0.05)
        raise AssertionError(f"{self.name} does not start: {self.log.read_text()[-3000:]}")

    def stop(self):
        """Stop the server and end its connections ("fast")."""
        if self.is_running():
            self.process.send_signal(signal.SIGINT)
            self.process.wait(PATIENCE)

    def kill(self):
        """Kill all processes of the server at the same time, as in a failure of the machine."""
        processes = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        self.process.wait()
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=PATIENCE)

    def close(self):
        """Stop the server and release the port."""
        self.stop()
        self._reserved.close()

    def cpu_seconds(self):
        """Return the CPU time of all processes of the server that are alive."""
        main = psutil.Process(self.process.pid)
        return sum(cpu_of(process.pid) for process in [main, *main.children(recursive=True)])

    # --- statements of the superuser ---

    def query(self, statement, database="postgres"):
        """Run a statement as the superuser and return the rows, if it has any."""
        with psycopg.connect(
            self.url(SUPERUSER, database), autocommit=True, connect_timeout=10
        ) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def value(self, statement, database="postgres"):
        """Return the first value that a statement returns."""
        return self.query(statement, database)[0][0]

    def promote(self):
        """Make a standby the primary."""
        assert self.value(f"SELECT pg_promote(true, {PATIENCE})")

    def pause_replay(self):
        """Let a standby receive changes without applying them."""
        self.query("SELECT pg_wal_replay_pause()")
        while self.value("SELECT pg_get_wal_replay_pause_state()") != "paused":
            time.sleep(0.01)

    def resume_replay(self):
        """Let a standby apply changes again."""
        self.query("SELECT pg_wal_replay_resume()")

    def wait_for(self, primary):
        """Wait until a standby has applied all writes of a primary."""
        wanted = primary.value("SELECT pg_current_wal_flush_lsn()")
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.value(f"SELECT pg_last_wal_replay_lsn() >= '{wanted}'"):
                return
            time.sleep(0.02)
        raise AssertionError(f"{self.name} does not catch up: {self.log.read_text()[-3000:]}")


def cpu_of(pid):
    """Return the CPU time of a process, read from its Linux CPU-time clock, or 0 if it has ended."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return 0.0
