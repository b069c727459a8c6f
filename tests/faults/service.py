"""The service of a campaign: gunicorn, which is killed and started again on the same address."""

from tests.serving import ShopServer

WORKERS = 2
PATIENCE = 120  # seconds; a start takes two, but for a machine that does much else


class Service(ShopServer):
    """A gunicorn with two workers that can be killed."""

    def __init__(self, database_url, folder):
        super().__init__(
            database_url,
            folder,
            WEB_CONCURRENCY=str(WORKERS),
            SHOP_PAGE_SIZE="1000000",  # one page shows the whole store
        )
        self.patience = PATIENCE

    def wait_until_ready(self, caller):
        """Return when the service and its database answer; the caller connects anew.

        Its connection may be one to a process that was killed.
        """
        super().wait_until_ready()
        caller.close()

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
