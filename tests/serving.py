"""The service as its users meet it: gunicorn, a port and a key."""

import http.client
import os
import socket
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from flask_migrate import upgrade

from app import create_app
from app.auth.principals import Permission
from app.db.session import db
from app.services.api_keys import create_key

ROOT = Path(__file__).parent.parent
SECRET = "a secret for tests only"
PATIENCE = 30  # seconds; nothing here takes three


class Service(NamedTuple):
    """Where a running service is, a key that may do everything, and gunicorn's main process."""

    url: str
    consumer_key: str
    consumer_secret: str
    pid: int


@contextmanager
def running_service(folder, certificate=None, **settings):
    """Serve an empty shop on a free port of the loopback interface.

    With a certificate, a file that holds its private key too, over TLS.
    """
    shop = {"DATABASE_URL": f"sqlite:///{folder}/shop.db", "SECRET_KEY": SECRET}
    key = new_shop(shop | {"INSTANCE_PATH": str(folder)})
    with socket.socket() as reserved, (folder / "gunicorn.log").open("w+") as log:
        # gunicorn shares the port (reuse_port); nobody else is given it. Only who listens is called.
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        gunicorn = subprocess.Popen(
            [
                *[Path(sys.executable).with_name("gunicorn"), "wsgi:app"],
                *(["--certfile", certificate] if certificate else []),
            ],
            cwd=ROOT,
            env=os.environ
            | shop
            | {"HOST": "127.0.0.1", "PORT": str(port), "WEB_CONCURRENCY": "1"}
            | settings,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_until_ready(gunicorn, port, log, certificate)
            origin = f"{'https' if certificate else 'http'}://127.0.0.1:{port}"
            yield Service(origin, key.consumer_key, key.consumer_secret, gunicorn.pid)
        finally:
            gunicorn.terminate()
            try:
                code = gunicorn.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                gunicorn.kill()
                gunicorn.wait()
                raise
        assert code == 0, _read(log)


def new_shop(settings):
    app = create_app(settings)
    with app.app_context():
        upgrade()
        key = create_key("admin", "administrator", Permission.READ_WRITE, "")
        for engine in db.engines.values():
            engine.dispose()
    return key


def _wait_until_ready(gunicorn, port, log, certificate):
    connect = http.client.HTTPConnection
    if certificate:
        trusted = ssl.create_default_context(cafile=certificate)
        connect = partial(http.client.HTTPSConnection, context=trusted)
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert gunicorn.poll() is None, _read(log)
        connection = connect("127.0.0.1", port, timeout=PATIENCE)
        try:
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return
        except ConnectionError:
            pass
        finally:
            connection.close()
        time.sleep(0.05)
    raise AssertionError(f"not ready after {PATIENCE} seconds: {_read(log)}")


def _read(log):
    log.seek(0)
    return log.read()
