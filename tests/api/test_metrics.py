"""Prometheus metrics (docs/monitoring.md): disabled by default, and correct with several workers."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import text

from app.config import VERSION
from app.db.migrations import migration_head
from app.db.read_pool import RowStream, fetch
from app.db.session import run_in_transaction
from app.models import User
from app.services.coupons.refusals import refusals_of
from app.services.events.outbox import NewEvent, record
from app.services.webhooks.deliveries.statistics import count_results
from tests.api_client import Client
from tests.serving import PATIENCE, running_service, wait_for

ROOT = Path(__file__).parents[2]


def read(page):
    """The samples of a page: name and labels, in the order of their names, and the value."""
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


@pytest.fixture
def measured(make_app, admin):
    """A client of an app with metrics, and a function that reads them."""
    client = Client(make_app(SHOP_METRICS=True), admin.key)
    return client, lambda: read(client.get("/metrics").get_data(as_text=True))


def test_metrics_are_off_by_default(admin):
    assert admin.get("/metrics").status_code == 404


@pytest.mark.slow
def test_metrics_that_are_off_are_not_even_imported(tmp_path):
    asked = "import sys, wsgi; print('prometheus_client' in sys.modules)"
    for on in ("0", "1"):
        environment = os.environ | {
            "SHOP_METRICS": on,
            "DATABASE_URL": f"sqlite:///{tmp_path}/shop.db",
            "SECRET_KEY": "a secret for tests only",
        }
        done = subprocess.run(
            [sys.executable, "-c", asked],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == f"{on == '1'}\n"


def test_metrics_are_open_and_never_under_the_prefix(make_app):
    client = Client(make_app(SHOP_METRICS=True, SHOP_URL_PREFIX="/shop"))
    response = client.get("/metrics")
    assert (response.status_code, response.mimetype) == (200, "text/plain")
    assert client.get("/shop/metrics").status_code == 404


def test_metrics_in_the_newer_format(measured):
    headers = {"Accept": "application/openmetrics-text; version=1.0.0"}
    response = measured[0].get("/metrics", headers=headers)
    assert response.mimetype == "application/openmetrics-text"
    assert response.get_data().endswith(b"# EOF\n")


def test_requests_are_counted_by_method_route_and_status(measured):
    client, metrics = measured
    client.post("/coupons", {"coupon": {"code": "a"}})
    client.post("/coupons", {"coupon": {"code": "a"}})
    client.get("/coupons/code/a")
    client.get("/coupons/code/b")
    client.get("/coupons/code/b")
    client.get("/nowhere")
    client.request("CREATE", "/coupons/1")
    found = metrics()
    code = "/coupons/code/<code:code>"
    assert {key[1:]: n for key, n in found.items() if key[0] == "shop_http_requests_total"} == {
        ("POST", "/coupons", "201"): 1,
        ("POST", "/coupons", "400"): 1,
        ("GET", code, "200"): 1,
        ("GET", code, "404"): 2,
        ("GET", "unmatched", "404"): 1,
        ("other", "unmatched", "405"): 1,
    }
    name = "shop_http_request_duration_seconds"
    assert found[f"{name}_count", "GET", code] == 3
    assert found[f"{name}_bucket", "+Inf", "GET", code] == 3
    assert found[f"{name}_bucket", "0.0025", "GET", code] <= 3
    assert found[f"{name}_sum", "GET", code] > 0


@pytest.mark.slow
def test_long_list_is_counted_at_its_end(measured):
    client, metrics = measured
    name = ("shop_http_requests_total", "GET", "/customers", "200")
    query = {"filter[limit]": -1, "filter[role]": "all"}
    response = client.get("/customers", query, buffered=False)
    assert name not in metrics()
    assert len(response.get_json()["customers"]) == 1
    response.close()
    assert metrics()[name] == 1


def test_authentication_failures_are_counted(make_app, admin, client_for):
    app = make_app(SHOP_METRICS=True, SHOP_AUTH_FAILURES_PER_MINUTE=1)
    wrong = {"Authorization": "Basic eDp5"}
    Client(app).get("/coupons")
    Client(app).get("/coupons", headers=wrong)
    Client(app).get("/coupons", headers=wrong)
    # These have valid credentials, which are not enough.
    Client(app, client_for("customer").key).get("/coupons/count")
    Client(app, client_for(permission="read").key).post("/coupons", {})
    found = read(Client(app).get("/metrics").get_data(as_text=True))
    assert found["shop_authentication_failures_total", "401"] == 2
    assert found["shop_authentication_failures_total", "429"] == 1


def test_connections_are_counted(measured):
    client, metrics = measured
    name = "shop_database_connections"
    client.get("/coupons")
    client.post("/coupons", {"coupon": {"code": "a"}})
    assert [metrics()[name, engine, "in_use"] for engine in ("read", "write")] == [0, 0]
    with client.app.app_context():
        stream = RowStream(User.__table__.select())
        assert metrics()[name, "read", "in_use"] == 1
        stream.close()
    found = metrics()
    assert found[name, "read", "in_use"] == 0
    assert found[name, "read", "open"] >= 1
    assert found[name, "write", "open"] >= 1


def test_errors_of_the_database_are_counted_by_kind(make_app):
    app = make_app(SHOP_METRICS=True, SHOP_STATEMENT_TIMEOUT_SECONDS=0.2)
    endless = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000000) "
        "SELECT max(i) FROM n"
    )
    with app.app_context():
        for statement in ("SELECT nonsense", "SELECT more nonsense", endless):
            with pytest.raises(Exception, match=r"."):
                fetch(text(statement))
    found = read(Client(app).get("/metrics").get_data(as_text=True))
    assert found["shop_database_errors_total", "read", "other"] == 2
    assert found["shop_database_errors_total", "read", "timeout"] == 1


@pytest.mark.parametrize(
    "url", ["sqlite:////nowhere/at/all/shop.db", "postgresql://nobody@127.0.0.1:1/shop"]
)
def test_database_that_is_not_there_is_counted(make_app, url):
    client = Client(make_app(SHOP_METRICS=True, DATABASE_URL=url))
    assert client.get("/readyz").status_code == 503
    found = read(client.get("/metrics").get_data(as_text=True))
    assert found["shop_database_errors_total", "read", "unreachable"] >= 1


# --- several workers ---


def scrape(service):
    with urllib.request.urlopen(f"{service.url}/metrics", timeout=PATIENCE) as page:
        return read(page.read().decode())


def get(service, path):
    urllib.request.urlopen(f"{service.url}{path}", timeout=PATIENCE).close()


def two(found):
    return found if len(found) == 2 else None


def workers(service):
    listed = subprocess.run(
        ["pgrep", "-P", str(service.pid)], capture_output=True, text=True, check=True
    )
    return [int(line) for line in listed.stdout.split()]


@pytest.mark.slow
def test_every_worker_reports_the_metrics_of_all_workers(tmp_path):
    name = ("shop_http_requests_total", "GET", "/healthz", "200")
    opened = ("shop_database_connections", "read", "open")
    with running_service(tmp_path, SHOP_METRICS="1", WEB_CONCURRENCY="2") as service:
        for _ in range(40):
            get(service, "/healthz")
        first, second = wait_for(lambda: two(workers(service)), "two workers run", PATIENCE)
        for stopped in (first, second):  # idle, one of them would take every connection
            os.kill(stopped, signal.SIGSTOP)
            get(service, "/readyz")
            os.kill(stopped, signal.SIGCONT)
        assert {scrape(service)[name] for _ in range(20)} == {40}
        before = scrape(service)[opened]
        assert before >= 2

        dead, other = workers(service)
        os.kill(dead, signal.SIGKILL)
        end = time.monotonic() + PATIENCE
        while dead in workers(service) or len(workers(service)) < 2:
            assert time.monotonic() < end
            time.sleep(0.05)
        found = scrape(service)
        assert found[name] == 40
        assert found[opened] < before
        assert other in workers(service)


@pytest.mark.slow
def test_what_a_killed_main_process_left_is_removed_by_the_next_one(tmp_path):
    folder = Path("/dev/shm")  # where gunicorn.conf.py puts it
    with subprocess.Popen(["true"]) as ended:
        pass
    left = folder / f"shop-metrics-{ended.pid}-left"
    running = folder / f"shop-metrics-{os.getpid()}-running"
    for each in (left, running):
        each.mkdir()
        (each / "counter_1.db").write_bytes(b"x")
    try:
        with running_service(tmp_path, SHOP_METRICS="1"):
            assert not left.exists()
            assert running.exists()
    finally:
        shutil.rmtree(running)
    assert not [each for each in folder.glob("shop-metrics-*") if str(ended.pid) in each.name]


def test_deliveries_are_counted_in_the_database(measured):
    client, metrics = measured
    names = "pending_deliveries", "pending_events", "oldest_pending_seconds"
    before = metrics()
    assert [before[f"shop_webhook_{name}",] for name in names] == [0, 0, 0]
    new = {"topics": ["*"], "delivery_url": "https://receiver.example/"}
    client.post("/webhooks", {"webhook": new})
    with client.app.app_context():
        events = [NewEvent("coupon.updated", 1, {}), NewEvent("coupon.updated", 2, {})]
        run_in_transaction(lambda session: record(session, None, events))
        count = {"delivered": 2, "retried": 1}
        for _ in range(2):
            run_in_transaction(lambda session: count_results(session, count))
    after = metrics()
    assert after["shop_webhook_pending_events",] == 2
    assert 0 <= after["shop_webhook_oldest_pending_seconds",] < 60
    results = {key[1]: after[key] for key in after if key[0] == "shop_webhook_deliveries_total"}
    assert results == {"delivered": 4, "retried": 2, "failed": 0, "webhook_disabled": 0}


@pytest.mark.both_databases
def test_figures_of_the_shop_are_those_of_the_database(measured, make_coupon):
    client, metrics = measured
    make_coupon(code="ten", usage_limit=1)
    client.delete(f"/coupons/{make_coupon(code='gone')['id']}")
    line = {"name": "Mug", "price": "40.00"}
    for _ in range(2):
        order = {"line_items": [line], "coupon_lines": [{"code": "ten"}]}
        client.post("/orders", {"order": order})
    client.post("/orders", {"order": {"line_items": [line], "coupon_lines": [{"code": "no"}]}})
    refusals_of(client.app).flush()
    found = metrics()
    assert {key[1:]: found[key] for key in found if key[0] == "shop_orders"} == {("pending",): 1}
    assert found["shop_coupons", "published"] == found["shop_coupons", "trash"] == 1
    assert (found["shop_redemptions",], found["shop_users",]) == (1, 1)
    refused = {key[1]: found[key] for key in found if key[0] == "shop_refused_codes_total"}
    assert refused == {"usage_limit": 1, "not_found": 1}
    assert found["shop_imports", "failed"] == 0


def test_build_info_has_the_versions(make_app):
    page = Client(make_app(SHOP_METRICS=True)).get("/metrics").get_data(as_text=True)
    (labels,) = re.findall(r"^shop_build_info\{(.*)\} 1\.0$", page, re.MULTILINE)
    assert f'version="{VERSION}"' in labels
    assert f'schema="{migration_head()}"' in labels
