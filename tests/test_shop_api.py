"""The console script ``shop-api``, in a checkout and in an installed wheel."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from base64 import b64encode
from contextlib import closing
from pathlib import Path

import pytest

from tests.databases import SECRET
from tests.serving import PATIENCE, reserved_port
from tools.install_script import write_script

ROOT = Path(__file__).parent.parent


@pytest.fixture
def environment(tmp_path):
    return {
        "PATH": os.environ["PATH"],
        "DATABASE_URL": f"sqlite:///{tmp_path}/shop.db",
        "SECRET_KEY": SECRET,
    }


@pytest.fixture
def checkout(tmp_path):
    """The script of a checkout, in a folder with a blank in its name."""
    folder = tmp_path / "virtual environment"
    folder.mkdir()
    return write_script(folder, Path(sys.prefix, "bin", "python"))


@pytest.fixture
def installed(tmp_path, environment):
    """The script of an installed wheel, without the checkout."""
    # hatchling reads the ignored files of a checkout, but builds from a copy all the same.
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheels, target = tmp_path / "wheels", tmp_path / "installed"
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", wheels, ROOT]
    subprocess.run([*pip, *build], check=True, timeout=300, cwd=tmp_path)
    (wheel,) = wheels.iterdir()
    install = ["install", "--no-deps", "--no-index", "--target", target, wheel]
    subprocess.run([*pip, *install], check=True, timeout=300, cwd=tmp_path)
    environment["PYTHONPATH"] = str(target)
    return target / "bin" / "shop-api"


@pytest.fixture
def reserved():
    """A socket that keeps a port from other programs."""
    with closing(reserved_port()) as reserved:
        yield reserved


def run(script, environment, cwd, *arguments):
    return subprocess.run(
        [script, *arguments], check=False, capture_output=True, text=True, env=environment,
        cwd=cwd, timeout=120,
    )  # fmt: skip


@pytest.mark.slow
def test_script_of_a_checkout(checkout, environment, tmp_path):
    shown = run(checkout, environment, tmp_path, "--help")
    assert shown.returncode == 0, shown.stderr
    commands = {
        line.split()[0] for line in shown.stdout.partition("Commands:")[2].splitlines() if line
    }
    assert {"db", "demo", "doctor", "keys", "serve", "worker"} <= commands
    assert "--app" not in shown.stdout
    early = run(checkout, environment, tmp_path, "keys", "list")
    assert early.returncode == 1
    assert early.stderr == (
        f"Error: The database schema is not current. Run: {checkout} db upgrade\n"
    )
    assert run(checkout, environment, tmp_path, "db", "upgrade").returncode == 0
    options = ["--login", "erp", "--role", "shop_manager", "--json"]
    created = run(checkout, environment, tmp_path, "keys", "create", *options)
    assert json.loads(created.stdout)["role"] == "shop_manager"


@pytest.mark.slow
def test_script_reports_a_wrong_setting(checkout, environment, tmp_path):
    result = run(checkout, environment | {"SHOP_PAGE_SIZE": "0"}, tmp_path, "keys", "list")
    assert result.returncode == 3
    assert result.stderr == (
        "The service cannot start: SHOP_PAGE_SIZE: Must be greater than or equal to 1.\n"
    )


@pytest.mark.slow
def test_script_of_a_wheel_migrates_creates_keys_and_serves(
    installed, environment, tmp_path, reserved
):
    upgraded = run(installed, environment, tmp_path, "db", "upgrade")
    assert upgraded.returncode == 0, upgraded.stderr
    options = ["--login", "erp", "--role", "shop_manager", "--json"]
    key = json.loads(run(installed, environment, tmp_path, "keys", "create", *options).stdout)
    demo = run(installed, environment, tmp_path, "demo", "--customers", "5", "--orders", "5")
    assert demo.returncode == 0, demo.stderr
    port = reserved.getsockname()[1]
    environment |= {"PORT": str(port), "WEB_CONCURRENCY": "1"}
    server = subprocess.Popen(
        [installed, "serve"], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout.readline() == "2 API keys exist. Create another:\n"
        suggested = f"  {installed} keys create --login NAME --role ROLE --permission read_write\n"
        assert server.stdout.readline() == suggested
        pair = f"{key['consumer_key']}:{key['consumer_secret']}"
        headers = {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}
        assert get(port, "/readyz", {}) == (200, {"status": "ok"})
        assert get(port, "/customers/count", headers) == (200, {"count": 5})
    finally:
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=PATIENCE)
    assert server.returncode == 0


def get(port, path, headers):
    """The status and the body of a response, once the server listens."""
    for _ in range(120):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request("GET", path, headers=headers)
        except ConnectionRefusedError:
            time.sleep(0.5)
            continue
        with closing(connection):
            response = connection.getresponse()
            return response.status, json.loads(response.read())
    raise TimeoutError
