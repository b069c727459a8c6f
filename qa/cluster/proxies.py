"""HAProxy and nginx with the configuration files of ``deploy``, in which only addresses differ."""

import shlex
import socket
import subprocess
import time
from configparser import ConfigParser
from contextlib import suppress

from qa.cluster import programs
from qa.cluster.postgresql import PATIENCE
from tests.serving import ROOT, reserved_port

MACHINES = ("192.0.2.11:8000", "192.0.2.12:8000")
"""The addresses of the machines in ``deploy/haproxy.cfg`` and ``deploy/nginx.conf``."""


class Proxy:
    """A proxy on a port of the loopback interface.

    Args:
        folder: the folder of the configuration and the log.
        program: ``haproxy`` or ``nginx``.
        name: the name of the configuration and the log.
    """

    def __init__(self, folder, program, name):
        self._program = program
        self._reserved = reserved_port()
        self.port = self._reserved.getsockname()[1]
        self.file, self.log = folder / f"{name}.conf", folder / f"{name}.log"
        self.process = None

    def configure(self, text):
        """Write the configuration, without what needs a system service or a privileged port."""
        self.file.write_text(text)
        programs.give(self.file)

    def start(self):
        """Start the proxy, and wait until it accepts connections."""
        flag = "-f" if self._program == "haproxy" else "-c"
        self.log.touch()
        programs.give(self.log)  # nginx opens its log itself
        self.process = programs.start(self._program, flag, self.file, log=self.log)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5):
                return
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            time.sleep(0.02)
        raise AssertionError(f"{self._program} does not start: {self.log.read_text()[-3000:]}")

    def kill(self):
        """Kill the proxy."""
        self.process.kill()
        self.process.wait()

    def close(self):
        """Stop the proxy and release the port."""
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
        self._reserved.close()


def certificate(folder):
    """Return a file with a new certificate and its key."""
    pem, key = folder / "shop.example.pem", folder / "shop.example.key"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=shop.example"
    command = [*shlex.split(command), "-keyout", key, "-out", pem]
    subprocess.run(command, check=True, capture_output=True)
    pem.write_text(pem.read_text() + key.read_text())
    for each in (pem, key):
        programs.give(each)
    return pem


def _replaced(text, *changes):
    """Replace each text, which must occur, by another one."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def haproxy(folder, services, *, tls=True):
    """Return an HAProxy with ``deploy/haproxy.cfg`` in front of two services."""
    proxy = Proxy(folder, "haproxy", "haproxy")
    changes = [
        ("/etc/haproxy/shop.example.pem", str(certificate(folder))),
        ("bind :443 ", f"bind 127.0.0.1:{proxy.port} "),
    ]
    if not tls:
        changes = [
            (
                "bind :443 ssl crt /etc/haproxy/shop.example.pem alpn h2,http/1.1",
                f"bind 127.0.0.1:{proxy.port}",
            ),
            ("unless { ssl_fc }", "if FALSE"),
        ]
    with reserved_port() as other:
        plain = other.getsockname()[1]
    proxy.configure(
        _replaced(
            (ROOT / "deploy" / "haproxy.cfg").read_text(),
            ("log /dev/log local0", "log stdout format raw local0"),
            ("/run/haproxy/admin.sock", str(folder / "admin.sock")),
            ("bind :80\n", f"bind 127.0.0.1:{plain}\n"),
            *changes,
            *_machines(services),
        )
    )
    return proxy


def nginx(folder, services):
    """Return an nginx with ``deploy/nginx.conf`` in front of two services, over TLS."""
    proxy = Proxy(folder, "nginx", "nginx")
    with reserved_port() as other:
        plain = other.getsockname()[1]
    pem = certificate(folder)
    text = _replaced(
        (ROOT / "deploy" / "nginx.conf").read_text(),
        ("/etc/ssl/shop.example.pem", str(pem)),
        ("/etc/ssl/shop.example.key", str(pem.with_suffix(".key"))),
        ("/var/log/nginx/shop-api.log", str(folder / "nginx-access.log")),
        ("listen 80;", f"listen 127.0.0.1:{plain};"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{proxy.port} ssl;"),
        *_machines(services),
    )
    paths = "\n".join(
        f"{name}_temp_path {folder}/nginx-{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    # What nginx.conf of the package adds around the files of conf.d.
    proxy.configure(
        f"daemon off;\npid {folder}/nginx.pid;\nerror_log {proxy.log};\n"
        f"worker_processes 2;\nevents {{ worker_connections 500; }}\nhttp {{\n{paths}\n{text}\n}}\n"
    )
    return proxy


def _machines(services):
    return [
        (address, f"127.0.0.1:{service.port}")
        for address, service in zip(MACHINES, services, strict=True)
    ]


def drain(machine):
    """Run the command of the unit that drains a machine, and wait until it is done."""
    unit = ConfigParser(strict=False, interpolation=None)
    unit.read_string((ROOT / "deploy" / "shop-api.service").read_text())
    command = unit["Service"]["ExecStop"].replace("/srv/shop-api", str(machine))
    subprocess.run(shlex.split(command), check=True)


def end_draining(machine):
    """Do what the unit does before it starts the service."""
    (machine / "instance" / "draining").unlink()
