"""gunicorn's threaded worker, which hands its queue over when it stops."""

from __future__ import annotations

from gunicorn.workers.gthread import ThreadWorker


class Worker(ThreadWorker):
    """A worker with a listening socket of its own (``reuse_port``).

    While a stopping worker finishes its requests, the kernel would go on giving it connections,
    which nobody would accept. So it takes those that wait already, and closes the socket.
    """

    def set_accept_enabled(self, enabled: bool) -> None:
        """Start or stop accepting connections."""
        super().set_accept_enabled(enabled)
        if enabled or self.alive:
            return
        for listener in self.sockets:
            waiting = True
            while waiting:
                before = self.nr_conns
                self.accept(listener)
                waiting = self.nr_conns > before
            listener.close()
