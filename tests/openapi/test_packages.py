"""The client packages in clients/, built as `make clients` does, with a running service."""

import json
import shutil
import threading
import time
import zipfile
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from app.outbound.signatures import new_secret, sign
from app.schemas.examples.events import event_data
from tests.npm import install, needs_node
from tests.openapi.test_clients import CLIENTS, run
from tests.serving import ROOT

PACKAGES = ROOT / "clients"
IGNORED = shutil.ignore_patterns("node_modules", "generated", "dist", "schema.ts")

pytestmark = pytest.mark.slow


@pytest.fixture
def env(shop):
    """The environment of a program whose first request loses its response and is rejected twice."""
    target = urlsplit(shop["SHOP_URL"])
    posts = []

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.command == "POST":
                posts.append(self.headers["Idempotency-Key"])
            if self.command == "POST" and len(posts) in {2, 3}:
                self.respond(501 + len(posts), {"Retry-After": "1"}, b"{}")
                return
            upstream = HTTPConnection(target.hostname, target.port)
            upstream.request(self.command, self.path, body, dict(self.headers))
            response = upstream.getresponse()
            content = response.read()
            upstream.close()
            if self.command == "POST" and len(posts) == 1:
                self.close_connection = True  # without a response
                return
            self.respond(response.status, dict(response.getheaders()), content)

        def respond(self, status, headers, content):
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in {"connection", "content-length", "transfer-encoding"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = forward  # noqa: N815  # names of the base class

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    yield {**shop, "SHOP_URL": url}
    server.shutdown()
    server.server_close()
    assert len(set(posts[:4])) == 1, "a retry has another key"
    assert len(set(posts)) == len(posts) - 3, "two requests have the same key"


def signed():
    """A variable with the headers, the body and the secret of a delivery of now.

    A client rejects it after five minutes, which a busy machine can take to build the client.
    """
    data = event_data("order.created")
    data = {"order": {**data["order"], "order_number": "ERP-1"}}
    body = {"type": "order.created", "timestamp": "2026-11-20T09:38:00Z", "data": data}
    text, secret, now = json.dumps(body), new_secret(), int(time.time())
    signature = sign([secret], "evt_7", now, text.encode())
    headers = {"webhook-id": "evt_7", "webhook-timestamp": str(now), "webhook-signature": signature}
    return {"DELIVERY": json.dumps((headers, text, secret))}


def copied(name, folder):
    """Copy a package and the document, from which it is generated, to a folder."""
    shutil.copytree(PACKAGES / name, folder / "clients" / name, ignore=IGNORED)
    shutil.copy(ROOT / "openapi.json", folder)
    return folder / "clients" / name


def test_python_package(env, tmp_path):
    package = copied("python", tmp_path)
    run(
        *["openapi-python-client", "generate", "--path", "../../openapi.json", "--meta", "none"],
        *["--output-path", "shop_api_client/generated", "--overwrite", "--fail-on-warning"],
        cwd=package,
    )
    run("hatchling", "build", "-t", "wheel", cwd=package)
    (wheel,) = (package / "dist").glob("shop_api_client-1.1.0-*.whl")
    folder = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder)
        names = file.namelist()
    assert {"shop_api_client/py.typed", "shop_api_client/generated/models/coupon.py"} <= set(names)
    shutil.copy(CLIENTS / "packages" / "exchange.py", folder)
    (folder / "readme.py").write_text(examples(package, "python"))
    run(
        *["mypy", "--strict", "--config-file=", "--python-version=3.11"],
        *["--follow-imports=silent", "exchange.py", "readme.py"],
        *["shop_api_client/__init__.py", "shop_api_client/retries.py"],
        cwd=folder,
    )
    run("python", "-W", "error", "exchange.py", cwd=folder, env=env | signed())


@needs_node
def test_typescript_package(env, tmp_path):
    package = copied("typescript", tmp_path)
    (package / "node_modules").symlink_to(install(PACKAGES / "typescript"))
    run("npm", "run", "build", cwd=package)
    packed = json.loads(run("npm", "pack", "--ignore-scripts", "--json", cwd=package))
    names = {file["path"] for file in packed[0]["files"]}
    assert {"dist/index.js", "dist/index.d.ts", "dist/schema.d.ts", "LICENSE"} <= names
    assert not any(name.startswith("src/") for name in names)
    folder = tmp_path / "program"
    modules = folder / "node_modules"
    (modules / "@shop-api").mkdir(parents=True)
    (modules / "@shop-api" / "client").symlink_to(package)
    (modules / "@types").symlink_to(install(PACKAGES / "typescript") / "@types")
    (folder / "package.json").write_text('{"type": "module"}')
    shutil.copy(CLIENTS / "packages" / "exchange.ts", folder)
    (folder / "readme.ts").write_text(
        "declare const body: string, headers: Record<string, string>;\n"
        + examples(package, "typescript")
    )
    tsc = install(PACKAGES / "typescript") / ".bin" / "tsc"
    options = ["--strict", "--target", "es2022", "--module", "nodenext", "--types", "node"]
    run(tsc, *options, "--skipLibCheck", "exchange.ts", "readme.ts", cwd=folder)
    run("node", "exchange.js", cwd=folder, env=env | signed())


def examples(package, language):
    """Return the examples of a README as one program."""
    text = (package / "README.md").read_text()
    parts = text.split(f"```{language}\n")[1:]
    return "\n".join(part.partition("\n```")[0] for part in parts)
