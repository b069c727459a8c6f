"""How gunicorn serves: it reads this file by itself (``gunicorn wsgi:app``)."""

import os
from pathlib import Path

import server

host = os.environ.get("HOST") or "127.0.0.1"
bind = f"{f'[{host}]' if ':' in host else host}:{os.environ.get('PORT') or '8000'}"
worker_class = server.Worker
workers = int(os.environ.get("WEB_CONCURRENCY") or os.cpu_count() or 1)
threads = int(os.environ.get("WEB_THREADS") or 4)
# A listening socket for each worker: without it the one that wakes first takes all keep-alive
# connections.
on_starting = server.open_listeners
pre_fork = server.place_worker
on_reload = server.handover.begin
keepalive = 30
# Requests in flight finish after TERM and HUP.
graceful_timeout = 30
timeout = 60
# The heartbeat file belongs in memory: on a slow disk it would stall a worker.
worker_tmp_dir = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  # the heartbeat only
control_socket_disable = True
# Room for a search or a list of ids in the address.
limit_request_line = 8190
# The app logs each request itself, in JSON (app/logs.py).
accesslog = None
loglevel = "warning"
