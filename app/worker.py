"""gunicorn's threaded worker, which hands its queue over when it stops, and gunicorn's log."""

from __future__ import annotations

import json
import socket
import uuid
from typing import Any

from gunicorn import glogging, util
from gunicorn.workers.gthread import ThreadWorker

from app import headers, logs
from app.errors import InvalidParams, ShopError


def write_error(connection: socket.socket, status: int, reason: str, message: str) -> None:
    """Answer what is no request for the app, a line or a header too long, as the app would.

    Takes the place of ``gunicorn.util.write_error``, which answers with a page.
    """
    error = (
        ShopError("shop_api_internal_error")
        if status >= 500
        else InvalidParams({"request": message or reason})
    )
    body = json.dumps({"errors": error.entries}).encode()
    lines = {
        "Connection": "close",
        "Content-Type": "application/json",
        "Content-Length": len(body),
        "X-Request-Id": uuid.uuid4().hex,
        **headers.ALWAYS,
    }
    head = [f"HTTP/1.1 {status} {reason}", *(f"{name}: {value}" for name, value in lines.items())]
    text = "\r\n".join([*head, "", ""])
    util.write_nonblock(connection, text.encode("latin-1", "replace") + body)


class Logger(glogging.Logger):
    """gunicorn's own log, in lines like those of the app."""

    def setup(self, cfg: Any) -> None:
        """Open the log."""
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(logs.server_formatter())


class Worker(ThreadWorker):
    """A worker with a listening socket of its own (``reuse_port``).

    While a stopping worker finishes its requests, the kernel would go on giving it connections,
    which nobody would accept. So it takes those that wait already, and closes the socket.
    """

    def init_process(self) -> None:
        """Start the worker."""
        util.write_error = write_error
        super().init_process()

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
