"""The console script ``shop-api``, in a checkout and in an installed wheel."""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from base64 import b64encode
from contextlib import closing
from pathlib import Path
from urllib.request import urlopen

import pytest

from app.config import VERSION
from app.main import main
from tests.databases import SECRET
from tests.serving import PATIENCE, reserved_port

ROOT = Path(__file__).parents[2]
PACKAGED = (
    "app", "docs", "migrations", "server", "gunicorn.conf.py", "wsgi.py",
    "pyproject.toml", "README.md", "LICENSE",
)  # fmt: skip


@pytest.fixture
def environment(tmp_path):
    return {
        "PATH": os.environ["PATH"],
        "DATABASE_URL": f"sqlite:///{tmp_path}/shop.db",
        "SECRET_KEY": SECRET,
    }


PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
OFFLINE = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index"]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """The script of a checkout with blanks in its path, and its folder."""
    folder = tmp_path_factory.mktemp("a check out")
    for name in PACKAGED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    environment = folder / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    # The locked packages are those of the process that runs the tests.
    Path(packages_of(environment), "locked.pth").write_text(f"{packages_of(sys.prefix)}\n")
    install = [
        "--python",
        environment / "bin" / "python",
        "install",
        *OFFLINE,
        "--editable",
        folder,
    ]
    without_site = os.environ | {"HATCH_BUILD_NO_HOOKS": "true"}
    subprocess.run([*PIP, *install], check=True, timeout=600, cwd=folder, env=without_site)
    return environment / "bin" / "shop-api", folder


def packages_of(environment):
    return sysconfig.get_path("purelib", vars={"base": str(environment)})


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    # hatchling reads the ignored files of a checkout, but builds from a copy all the same.
    wheels = tmp_path_factory.mktemp("wheels")
    build = ["wheel", *OFFLINE, "-w", wheels, ROOT]
    subprocess.run([*PIP, *build], check=True, timeout=600, cwd=wheels)
    (wheel,) = wheels.iterdir()
    return wheel


@pytest.fixture
def installed(tmp_path, environment, wheel):
    """The script of an installed wheel, without the checkout."""
    target = tmp_path / "installed"
    install = ["install", *OFFLINE, "--target", target, wheel]
    subprocess.run([*PIP, *install], check=True, timeout=600, cwd=tmp_path)
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
        cwd=cwd, timeout=600,
    )  # fmt: skip


@pytest.mark.slow
def test_script_of_a_checkout(checkout, environment, tmp_path):
    checkout, folder = checkout
    main = folder / "app" / "main.py"
    main.write_text(main.read_text().replace("Commands of the", "Commands of this copy of the"))
    shown = run(checkout, environment, tmp_path, "--help")
    assert shown.returncode == 0, shown.stderr
    version = run(checkout, environment, tmp_path, "--version")
    assert (version.returncode, version.stdout) == (0, f"shop-api, version {VERSION}\n")
    assert "Commands of this copy of the Shop Administration API." in shown.stdout
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
    checkout, _ = checkout
    result = run(checkout, environment | {"SHOP_PAGE_SIZE": "0"}, tmp_path, "keys", "list")
    assert result.returncode == 3
    assert result.stderr == (
        "The service cannot start: SHOP_PAGE_SIZE: Must be greater than or equal to 1."
        " The value is '0'.\n"
    )


@pytest.mark.slow
def test_script_of_a_wheel_migrates_creates_keys_and_serves(
    installed, environment, tmp_path, reserved
):
    assert (installed.parents[1] / "app" / "site" / "search" / "search_index.json").is_file()
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


@pytest.mark.slow
def test_uvx_serves_a_wheel_in_an_empty_folder(wheel, tmp_path, reserved):
    """The database is in the folder, and outlives the environment. The guides are a site."""
    uvx = [Path(sys.executable).with_name("uv"), "tool", "run", "--from", wheel, "shop-api"]
    port = reserved.getsockname()[1]
    cache = tmp_path / "cache"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("SHOP_", "DATA"))
    }
    environment |= {
        "PORT": str(port), "WEB_CONCURRENCY": "1", "UV_CACHE_DIR": str(cache), "UV_NATIVE_TLS": "1",
    }  # fmt: skip
    folder = tmp_path / "shop"
    folder.mkdir()
    version = run(uvx[0], environment, folder, *uvx[1:], "--version")
    if version.returncode:
        pytest.skip(f"the packages cannot be installed here: {version.stderr.splitlines()[-1]}")
    assert version.stdout == f"shop-api, version {VERSION}\n"
    for _ in range(2):
        with subprocess.Popen(
            [*uvx, "serve"], env=environment, cwd=folder, stdout=subprocess.PIPE, text=True
        ) as server:
            assert get(port, "/readyz", {}) == (200, {"status": "ok"})
            guides = urlopen(f"http://127.0.0.1:{port}/docs/guides/").read().decode()
            server.send_signal(signal.SIGTERM)
            shown, _ = server.communicate(timeout=PATIENCE)
        assert 'class="md-nav' in guides
        assert {file.name for file in folder.iterdir()} == {"instance"}
        assert {"secret_key", "shop.db"} <= {file.name for file in (folder / "instance").iterdir()}
        (environments,) = cache.glob("environments-*")
        shutil.rmtree(environments)  # but not the packages that were downloaded
    assert shown.startswith("1 API key exists.")


def get(port, path, headers):
    """The status and the body of a response, once the server listens."""
    for _ in range(120):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        try:
            connection.request("GET", path, headers=headers)
        except ConnectionRefusedError:
            time.sleep(0.5)
            continue
        with closing(connection):
            response = connection.getresponse()
            return response.status, json.loads(response.read())
    raise TimeoutError


def test_list_of_commands_imports_none_of_them(app, monkeypatch, capsys):
    """Both lists are equal: the quick one, and the one of an app with its commands."""
    program = [sys.executable, "-X", "importtime", "-m", "app.main", "--help"]
    shown = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"sqlalchemy", "app.services"} & set(re.findall(r"[\w.]+$", shown.stderr, re.M))
    monkeypatch.setattr("app.main.entry_points", lambda group: [group])  # a plugin is installed
    monkeypatch.setattr("app.main.create_app", lambda: app)
    monkeypatch.setattr(sys, "argv", ["shop-api", "--help"])
    with pytest.raises(SystemExit):
        main()
    assert shown.stdout == capsys.readouterr().out
