"""The files for systemd, Docker and nginx match the service and its defaults."""

import gc
import re
import runpy
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

from app.config.settings import SettingsSchema
from app.outbound.client import TOTAL_SECONDS
from app.services.pagination import MAX_LINK_BYTES

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).parent.parent
SETTINGS = SettingsSchema._declared_fields


def read(name):
    return (ROOT / name).read_text()


@pytest.fixture(scope="module")
def gunicorn():
    modules = {name: each for name, each in sys.modules.items() if name.startswith("server")}
    settings = runpy.run_path(str(ROOT / "gunicorn.conf.py"))
    sys.modules.update(modules)  # it forgets them, for a reload
    return settings


@pytest.fixture(scope="module")
def unit():
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read_string(read("deploy/shop-api.service"))
    return parser["Service"]


def test_the_loaded_app_is_excluded_from_garbage_collection(gunicorn):
    loaded = object.__new__(type("Loaded", (), {}))
    assert gc.get_freeze_count() == 0
    gunicorn["post_worker_init"](None)
    try:
        assert all(each is not loaded for each in gc.get_objects())
    finally:
        gc.unfreeze()
    assert any(each is loaded for each in gc.get_objects())


def test_image_is_made_of_files_that_are_there_and_let_through():
    let_through = set(re.findall(r"^!(.+)$", read(".dockerignore"), re.MULTILINE))
    copied = {
        name
        for line in re.findall(r"^COPY (.+)$", read("Dockerfile"), re.MULTILINE)
        for name in line.split()[:-1]
    }
    assert copied == let_through
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_image_listens_where_it_says_and_is_not_root():
    text = read("Dockerfile")
    assert re.search(r"^USER shop$", text, re.MULTILINE)
    (port,) = re.findall(r"^EXPOSE (\d+)$", text, re.MULTILINE)
    assert f"PORT={port} " in text
    assert f"127.0.0.1:{port}/healthz" in text


def test_unit_waits_for_requests_in_flight(unit, gunicorn):
    assert int(unit["TimeoutStopSec"]) > gunicorn["graceful_timeout"]
    assert unit["ExecStart"] == f"{unit['WorkingDirectory']}/.venv/bin/gunicorn wsgi:app"
    assert unit["ReadWritePaths"] == f"{unit['WorkingDirectory']}/instance"


def test_unit_of_the_worker_runs_beside_the_service(unit):
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read_string(read("deploy/shop-api-worker.service"))
    worker = parser["Service"]
    assert worker["ExecStart"] == f"{unit['WorkingDirectory']}/.venv/bin/flask --app wsgi worker"
    for name in ("User", "WorkingDirectory", "EnvironmentFile", "ReadWritePaths", "UMask"):
        assert worker[name] == unit[name]
    assert int(worker["TimeoutStopSec"]) > TOTAL_SECONDS


def test_compose_file_fits_the_image_and_the_commands(app):
    compose = yaml.safe_load(read("deploy/compose.yaml"))
    service, worker, database = (
        compose["services"][name] for name in ("service", "worker", "database")
    )
    dockerfile = read("Dockerfile")
    (port,) = re.findall(r"^EXPOSE (\d+)$", dockerfile, re.MULTILINE)
    assert service["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert (ROOT / "deploy" / service["build"] / "Dockerfile").exists()
    assert service["image"] == worker["image"]
    assert service["environment"] == worker["environment"]
    assert set(service["environment"]) <= set(SETTINGS)
    # The program is in PATH, and the app has the command.
    assert "PATH=/srv/shop-api/.venv/bin:" in dockerfile
    assert worker["command"][:3] == ["flask", "--app", "wsgi"]
    assert worker["command"][3] in app.cli.commands
    # The address of the database is that of its container.
    user, name = (database["environment"][key] for key in ("POSTGRES_USER", "POSTGRES_DB"))
    url = service["environment"]["DATABASE_URL"]
    assert url.startswith(f"postgresql://{user}:${{POSTGRES_PASSWORD:?")
    assert url.endswith(f"@database/{name}")
    # The service waits for the database, and the worker for the migration.
    assert service["depends_on"]["database"]["condition"] == "service_healthy"
    assert worker["depends_on"]["service"]["condition"] == "service_healthy"
    (volume,) = (each.partition(":")[0] for each in database["volumes"])
    assert volume in compose["volumes"]


def test_nginx_waits_and_accepts_as_much_as_the_service(gunicorn):
    text = read("deploy/nginx.conf")
    (mebibytes,) = re.findall(r"client_max_body_size (\d+)m;", text)
    assert int(mebibytes) * 1024**2 > SETTINGS["SHOP_MAX_BODY_BYTES"].load_default
    (seconds,) = re.findall(r"proxy_read_timeout (\d+)s;", text)
    assert int(seconds) == gunicorn["timeout"]
    assert int(seconds) > SETTINGS["SHOP_STATEMENT_TIMEOUT_SECONDS"].load_default
    assert f"127.0.0.1:{SETTINGS['PORT'].load_default};" in text


def test_nginx_accepts_the_headers_of_the_service(make_app, client_for, make_coupon):
    origin = f"https://{'a' * 200}.example"
    client = client_for("administrator", login="proxied")
    client.http = make_app(SHOP_CORS_ORIGINS=origin, SHOP_PAGE_SIZE=1).test_client()
    for _ in range(2):
        make_coupon()
    headers = {"Origin": origin, "X-Request-Id": "r" * 128}
    short = client.get("/coupons", {"fields": "x"}, headers=headers)
    room = MAX_LINK_BYTES - len(short.headers["Link"])
    longest = "x" * (room // 2 + 1)  # it is in both links, next and last
    response = client.get("/coupons", {"fields": longest}, headers=headers)
    assert len(response.headers["Link"]) > MAX_LINK_BYTES - 2
    (kibibytes,) = re.findall(r"proxy_buffer_size (\d+)k;", read("deploy/nginx.conf"))
    # What gunicorn adds (status line, Server, Date, Connection) has less than 200 bytes.
    assert len(str(response.headers)) + 200 < int(kibibytes) * 1024


@pytest.mark.parametrize(
    "name", ["Dockerfile", "deploy/shop-api.service", "deploy/nginx.conf", "SECURITY.md"]
)
def test_settings_that_are_named_exist(name):
    assert sorted(set(re.findall(r"\bSHOP_[A-Z_]+\b", read(name))) - SETTINGS.keys()) == []
