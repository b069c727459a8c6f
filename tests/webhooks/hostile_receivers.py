"""Receivers that respond in ways that cost their client time: ``python -m tests.webhooks.hostile_receivers``.

They run in a process of their own, so that their work does not delay the client. The process prints
the port of each receiver as JSON and ends when its standard input is closed.
"""

import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

from tests.serving import ROOT

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def endless(piece, first=b"", pause=0.0):
    """Yield the start of a response, then the same piece without end."""
    if first:
        yield first
    while True:
        yield piece
        if pause:
            time.sleep(pause)


RESPONSES = {
    "processing": lambda: endless(b"HTTP/1.1 102 Processing\r\n\r\n" * 4000),
    "short processing": lambda: endless(b"HTTP/1.1 102 \r\n\r\n" * 4000),
    "early hints": lambda: endless(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 4000),
    "slow header": lambda: endless(b"X", OK, pause=0.001),
    "headers": lambda: endless(b"X: y\r\n" * 10_000, OK),
    "long header": lambda: endless(b"y" * 65_536, OK + b"X: "),
    "folded header": lambda: endless(b" y\r\n" * 10_000, OK + b"X: y\r\n"),
    "chunks": lambda: endless(b"1\r\nx\r\n" * 10_000, CHUNKED),
    "slow chunks": lambda: endless(b"1\r\nx\r\n", CHUNKED, pause=0.001),
    "trailers": lambda: endless(b"X: y\r\n" * 10_000, CHUNKED + b"0\r\n"),
    "endless body": lambda: endless(b"x" * 65_536, OK + b"\r\n"),
    "compressed": lambda: endless(
        b"\x1f\x8b" + b"\0" * 65_536, OK + b"Content-Encoding: gzip\r\n\r\n"
    ),
}
"""What each receiver sends in response to every request, without end."""


def serve(server, respond):
    while True:
        connection, _ = server.accept()
        threading.Thread(target=answer, args=(connection, respond), daemon=True).start()


def answer(connection, respond):
    with connection:
        try:
            connection.recv(65_536)
            for piece in respond():
                connection.sendall(piece)
        except OSError:  # the client has closed the connection
            return


def main():
    ports = {}
    for name, respond in RESPONSES.items():
        server = socket.create_server(("127.0.0.1", 0), backlog=128)
        ports[name] = server.getsockname()[1]
        threading.Thread(target=serve, args=(server, respond), daemon=True).start()
    sys.stdout.write(json.dumps(ports) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


@contextmanager
def hostile_receivers():
    """Run the receivers and return the URL of each by its name."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.webhooks.hostile_receivers"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        ports = json.loads(process.stdout.readline())
        try:
            yield {name: f"http://127.0.0.1:{port}/" for name, port in ports.items()}
        finally:
            process.stdin.close()


if __name__ == "__main__":
    main()
