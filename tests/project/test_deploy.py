"""The files for systemd, Docker, load balancers and Patroni match the service and its defaults."""

import gc
import json
import re
import runpy
import sys
from configparser import ConfigParser
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from app.cli import COMMANDS, SCRIPT
from app.config.settings import SettingsSchema
from app.db.deadline import COMMIT_SECONDS
from app.outbound.client import TOTAL_SECONDS
from app.pricing.evaluation import REASONS
from app.services.common.pagination import MAX_LINK_BYTES
from tests.api_client import Client, refusal, reply

ROOT = Path(__file__).parents[2]
SETTINGS = SettingsSchema._declared_fields
LONGEST_REQUEST = SETTINGS["SHOP_REQUEST_TIMEOUT_SECONDS"].load_default + COMMIT_SECONDS


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
    counters = SimpleNamespace(start=lambda: None)
    extensions = {"shop_api_refusals": counters}
    app = SimpleNamespace(config={"DATABASE_URL": "sqlite://"}, extensions=extensions)
    gunicorn["post_worker_init"](SimpleNamespace(wsgi=app))
    try:
        assert all(each is not loaded for each in gc.get_objects())
        gc.unfreeze()
        assert any(each is loaded for each in gc.get_objects())
    finally:
        gc.freeze()  # as tests/selection.py does


def test_image_is_made_of_files_that_are_there_and_let_through():
    let_through = set(re.findall(r"^!(.+)$", read(".dockerignore"), re.MULTILINE))
    copied = {
        name
        for line in re.findall(r"^COPY (?!--from)(.+)$", read("Dockerfile"), re.MULTILINE)
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


def test_unit_starts_again_until_the_database_is_there(unit):
    """By default, systemd gives up after 5 starts within 10 seconds."""
    assert unit["Restart"] == "on-failure"
    assert 5 * int(unit["RestartSec"]) > 10


def test_unit_of_the_worker_runs_beside_the_service(unit):
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read_string(read("deploy/shop-api-worker.service"))
    worker = parser["Service"]
    assert worker["ExecStart"] == f"{unit['WorkingDirectory']}/.venv/bin/shop-api worker"
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
    assert worker["command"][0] == SCRIPT
    assert worker["command"][1] in COMMANDS
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
    limits = re.findall(r"client_max_body_size (\d+)m;", text)
    for mebibytes, name in zip(
        limits, ("SHOP_MAX_BODY_BYTES", "SHOP_IMPORT_MAX_BYTES"), strict=True
    ):
        assert int(mebibytes) * 1024**2 > SETTINGS[name].load_default
    (seconds,) = re.findall(r"proxy_read_timeout (\d+)s;", text)
    assert LONGEST_REQUEST < int(seconds) < gunicorn["timeout"]
    port = SETTINGS["PORT"].load_default
    assert re.findall(r"^    server [\d.]+:(\d+) ", text, re.MULTILINE) == [str(port)] * 2


def test_haproxy_waits_longer_than_the_service(gunicorn):
    text = read("deploy/haproxy.cfg")
    (seconds,) = re.findall(r"timeout server (\d+)s$", text, re.MULTILINE)
    assert LONGEST_REQUEST < int(seconds) < gunicorn["timeout"]
    port = SETTINGS["PORT"].load_default
    assert re.findall(r"^    server .*:(\d+) check$", text, re.MULTILINE) == [str(port)] * 2


def test_unit_drains_the_machine_until_the_load_balancer_has_noticed(unit):
    """The interval and the number of checks are those of haproxy.cfg."""
    text = read("deploy/haproxy.cfg")
    (interval, checks) = re.findall(r"inter (\d+)s .*fall (\d+)", text)[0]
    (seconds,) = re.findall(r"sleep (\d+)", unit["ExecStop"])
    assert int(seconds) > int(interval) * int(checks) + 1
    assert f"touch {unit['WorkingDirectory']}/instance/draining" in unit["ExecStop"]
    assert f"rm -f {unit['WorkingDirectory']}/instance/draining" in read("deploy/shop-api.service")


def test_readyz_of_a_machine_that_is_being_drained_is_503(make_app, tmp_path):
    """All other requests are served, and the machine is ready again without a restart."""
    client = Client(make_app(INSTANCE_PATH=str(tmp_path)))
    assert reply(client.get("/readyz")) == (200, {"status": "ok"})
    (tmp_path / "draining").touch()
    response = client.get("/readyz")
    reason = "The machine is being drained."
    assert reply(response) == refusal("shop_api_unavailable", reason=reason)
    assert response.headers["Retry-After"] == "5"
    assert [client.get(path).status_code for path in ("/healthz", "/")] == [200, 200]
    (tmp_path / "draining").unlink()
    assert reply(client.get("/readyz")) == (200, {"status": "ok"})


def test_haproxy_stops_using_a_primary_before_patroni_replaces_it():
    settings = yaml.safe_load(read("deploy/patroni.yml"))["bootstrap"]["dcs"]
    text = read("deploy/haproxy-postgresql.cfg")
    (interval, checks) = map(int, re.findall(r"inter (\d+)s fall (\d+)", text)[0])
    (timeout,) = map(int, re.findall(r"timeout check (\d+)s", text))
    assert checks * (interval + timeout) < settings["ttl"] - settings["loop_wait"]
    assert settings["loop_wait"] + 2 * settings["retry_timeout"] <= settings["ttl"]
    assert settings["synchronous_mode"] is settings["synchronous_mode_strict"] is True
    assert "on-marked-down shutdown-sessions" in text


def test_every_file_for_the_cluster_names_the_same_machines():
    addresses = {f"192.0.2.{number}" for number in (21, 22, 23)}
    for name in ("patroni.yml", "etcd.env", "haproxy-postgresql.cfg"):
        text = read(f"deploy/{name}").replace("192.0.2.0/24", "")
        assert set(re.findall(r"192\.0\.2\.\d+", text)) == addresses, name


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
    "name",
    [
        "Dockerfile",
        "deploy/shop-api.service",
        "deploy/haproxy.cfg",
        "deploy/nginx.conf",
        "SECURITY.md",
    ],
)
def test_settings_that_are_named_exist(name):
    assert sorted(set(re.findall(r"\bSHOP_[A-Z_]+\b", read(name))) - SETTINGS.keys()) == []


def expressions():
    """The PromQL expressions of the alerts and of the dashboard, by their titles."""
    (group,) = yaml.safe_load(read("deploy/alerts.yml"))["groups"]
    found = {rule["alert"]: rule["expr"] for rule in group["rules"]}
    for panel in json.loads(read("deploy/grafana.json"))["panels"]:
        for target in panel["targets"]:
            found[f"{panel['title']} {target['refId']}"] = target["expr"]
    return found


def test_dashboard_and_alerts_use_metrics_that_exist_with_their_labels(make_app):
    page = make_app(SHOP_METRICS=True).test_client().get("/metrics").get_data(as_text=True)
    kinds = dict(re.findall(r"^# TYPE (\w+) (\w+)$", page, re.MULTILINE))
    rows = re.findall(r"^\| `(shop_\w+)` \| (.*?) \|", read("docs/monitoring.md"), re.MULTILINE)
    labels = {name: set(re.findall(r"`(\w+)`", row)) for name, row in rows}
    used = set()
    for title, expression in expressions().items():
        assert expression.count("(") == expression.count(")"), title
        of_expression = {"instance", "job", "le"}
        for name in re.findall(r"\bshop_\w+", expression):
            metric = name.removesuffix("_bucket")
            assert metric in kinds, (title, name)
            assert (kinds[metric] == "histogram") == (name != metric), (title, name)
            # Only counters can be compared with rate, which takes a fall for a restart.
            is_counter = kinds[metric] in {"counter", "histogram"}
            assert not re.search(rf"(?:rate|increase)\({name}\b", expression) or is_counter, title
            of_expression |= labels[metric]
            used.add(metric)
        named = re.findall(r"[{,]\s*(\w+)=", expression)
        for group in re.findall(r"\bby \(([^)]*)\)", expression):
            named += group.split(", ")
        assert set(named) <= of_expression, title
    assert set(kinds) - used == set(), "deploy/grafana.json and alerts.yml show all metrics"


def test_alerts_say_what_is_wrong():
    (group,) = yaml.safe_load(read("deploy/alerts.yml"))["groups"]
    for rule in group["rules"]:
        assert rule["labels"]["severity"] in {"critical", "warning"}
        assert rule["annotations"]["summary"].endswith(".")
    reasons = re.findall(r'reason="(\w+)"', read("deploy/alerts.yml"))
    assert set(reasons) <= set(REASONS)
