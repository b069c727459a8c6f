"""The service of a campaign: gunicorn, which is killed and started again on the same address."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from tests.serving import ROOT, SECRET, new_shop, reserved_port

WORKERS = 2
PATIENCE = 120  # seconds; a start takes two, but for a machine that does much else


class Service:
    """A gunicorn on a port of the loopback interface."""

    def __init__(self, database_url, folder):
        self._shop = {"DATABASE_URL": database_url, "SECRET_KEY": SECRET}
        self.key = new_shop(self._shop | {"INSTANCE_PATH": str(folder)})
        self._reserved = reserved_port()
        self.port = self._reserved.getsockname()[1]
        self.log = Path(folder) / "gunicorn.log"
        self.process = None

    def start(self, folder=ROOT, **settings):
        """Start gunicorn with the code in a folder, without waiting for it."""
        given = {
            "HOST": "127.0.0.1",
            "PORT": str(self.port),
            "WEB_CONCURRENCY": str(WORKERS),
            "SHOP_PAGE_SIZE": "1000000",  # one page shows the whole store
            **settings,
        }
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [Path(sys.executable).with_name("gunicorn"), "wsgi:app"],
                cwd=folder,
                env=os.environ | self._shop | given,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def workers(self):
        """Return the workers' processes, the oldest first."""
        return psutil.Process(self.process.pid).children()

    def kill_worker(self, random):
        """Kill one worker; the main process starts another one."""
        if workers := self.workers():
            random.choice(workers).kill()

    def kill_master(self):
        """Kill the main process; its workers notice, and finish what they do."""
        orphans = self.workers()
        self.process.kill()
        self.process.wait()
        return orphans

    def kill_everything(self):
        """Kill all processes at once, as a machine that fails does."""
        orphans = self.kill_master()
        for orphan in orphans:
            orphan.kill()
        return orphans

    def wait_until_ready(self, caller):
        """Return when the service and its database answer."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            try:
                if caller.send("GET", "/readyz")[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.02)
        raise AssertionError(f"not ready after {PATIENCE} seconds: {self.log.read_text()[-3000:]}")

    def close(self):
        """Stop gunicorn."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(PATIENCE)
        self._reserved.close()
