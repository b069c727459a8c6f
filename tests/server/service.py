"""A service for tests of the server: gunicorn, which is killed and restarted on the same address."""

from tests.serving import ShopServer
from tests.webhooks.receivers import LOOPBACK

WORKERS = 2
PATIENCE = 120  # seconds; a start takes two seconds on an idle machine


class Service(ShopServer):
    """A gunicorn with two workers that can be killed."""

    def __init__(self, database_url, folder):
        super().__init__(
            database_url,
            folder,
            WEB_CONCURRENCY=str(WORKERS),
            SHOP_PAGE_SIZE="1000000",  # one page contains the whole store
            SHOP_WEBHOOK_ALLOWED_NETWORKS=LOOPBACK,
        )
        self.patience = PATIENCE

    def wait_until_ready(self, caller):
        """Wait until the service and its database respond. The caller opens a new connection.

        Its old connection can lead to a killed process.
        """
        super().wait_until_ready()
        caller.close()

    def kill_master(self):
        """Kill the main process. Its workers detect this and finish their requests."""
        orphans = self.workers()
        self.process.kill()
        self.process.wait()
        return orphans

    def kill_everything(self):
        """Kill all processes at the same time, as in a failure of the machine."""
        orphans = self.kill_master()
        for orphan in orphans:
            orphan.kill()
        return orphans
