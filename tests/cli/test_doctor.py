"""``shop-api doctor``: every problem is found and has a remedy."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import delete, select, update

from app.cli.doctor import _clock
from app.db.read_pool import fetch
from app.db.session import run_in_transaction
from app.models import CUSTOMER_TOTALS, ORDER_SUMS, STALE_TOTALS, Event
from app.services.customers import totals
from app.services.events.outbox import NewEvent, record
from tests.databases import SECRET
from tests.factories import insert_order

ROOT = Path(__file__).parents[2]


@pytest.fixture
def examine(make_app):
    """Return a function: run the command on an app with other settings.

    It returns the exit status, and for each subject its state and its remedy.
    """

    def run(**over):
        app = make_app(**({"SECRET_KEY": f"{SECRET}, and long enough"} | over))
        result = app.test_cli_runner().invoke(args=["doctor"])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        found, subject, wrong, failed = {}, "", False, False
        for line in result.stdout.splitlines():
            if line.startswith("       -> "):
                assert wrong
                found[subject] = (found[subject][0], line[10:])
            else:
                wrong = line.startswith(("FAIL   ", "warn   "))
                assert wrong or line.startswith("ok    ")
                failed |= line.startswith("FAIL")
                subject, state = line[7:].split(": ", 1)
                found[subject] = (state, "")
        assert result.exit_code == failed
        assert ("problem" in result.stderr) == failed
        return found

    return run


def remedies(found):
    return {subject: remedy for subject, (_, remedy) in found.items() if remedy}


def test_the_rule_of_expiry_dates(examine, admin):
    assert examine()["expiry dates"][0].endswith("at the beginning in UTC of their expiry date")
    found = examine(SHOP_EXPIRY_IN_TIMEZONE=True, SHOP_TIMEZONE="Europe/Berlin")
    assert found["expiry dates"][0].endswith("at the end in Europe/Berlin of their expiry date")


def test_all_is_well(examine, admin):
    found = examine()
    assert remedies(found) == {}
    assert list(found) == [
        "settings",
        "expiry dates",
        "secret",
        "folder",
        "clock of the system",
        "database",
        "schema",
        "keys",
        "webhooks",
        "order sums",
        "customer totals",
        "campaigns",
        "clock of the database",
    ]


def test_wrong_order_sums(app, examine, admin, make_customer):
    customer_id = make_customer()["id"]
    insert_order(app, customer_id=customer_id)
    insert_order(app, customer_id=customer_id, status="pending")
    assert remedies(examine()) == {}
    with app.app_context():
        run_in_transaction(lambda session: session.execute(delete(ORDER_SUMS)))
    remedy = ".venv/bin/shop-api db rebuild-sums"
    assert examine()["order sums"] == ("2 differ from the orders", remedy)
    result = app.test_cli_runner().invoke(args=["db", "rebuild-sums"])
    assert (result.exit_code, result.stdout) == (0, "2 sums were corrected.\n")
    assert remedies(examine()) == {}


def test_wrong_customer_totals(app, examine, admin, make_customer):
    first, second, third = (make_customer()["id"] for _ in range(3))
    insert_order(app, customer_id=first)
    with app.app_context():
        totals.refresh()
        assert fetch(select(STALE_TOTALS)) == []
    assert remedies(examine()) == {}
    right = read_totals(app)
    of = CUSTOMER_TOTALS.c.customer_id
    damages = (
        update(CUSTOMER_TOTALS).where(of == first).values(orders_count=7),
        update(CUSTOMER_TOTALS).where(of == second).values(total_spent=Decimal(5)),
        delete(CUSTOMER_TOTALS).where(of == third),
    )
    for damage in damages:
        with app.app_context():
            run_in_transaction(lambda session, damage=damage: session.execute(damage))
    remedy = ".venv/bin/shop-api db rebuild-sums"
    assert remedies(examine()) == {"customer totals": remedy}
    assert examine()["customer totals"][0] == "3 differ from the order sums"
    result = app.test_cli_runner().invoke(args=["db", "rebuild-sums"])
    assert (result.exit_code, result.stdout) == (0, "0 sums were corrected.\n")
    assert remedies(examine()) == {}
    assert read_totals(app) == right


def read_totals(app):
    with app.app_context():
        return sorted(map(tuple, fetch(select(CUSTOMER_TOTALS))))


def test_customer_totals_that_are_out_of_date(app, examine, admin, make_customer):
    customer_id = make_customer()["id"]
    with app.app_context():
        totals.refresh()
    insert_order(app, customer_id=customer_id)
    with app.app_context():
        assert fetch(select(STALE_TOTALS.c.customer_id)) == [(customer_id,)]
    assert remedies(examine()) == {}
    # In a process in which other statuses count, the totals are not used.
    assert remedies(examine(SHOP_PAID_STATUSES="pending")) == {}


def test_setting_that_is_none(examine, admin):
    found = examine(SHOP_PAGESIZE=5)
    assert found["settings"] == (
        "unknown setting SHOP_PAGESIZE (did you mean SHOP_PAGE_SIZE?)",
        "docs/configuration.md lists all settings.",
    )
    assert list(remedies(found)) == ["settings"]


def test_settings_that_gunicorn_does_not_read(examine, admin, tmp_path, monkeypatch):
    for name in ("HOST", "PORT", "WEB_THREADS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "config.py").write_text("PORT = 8001\nWEB_THREADS = 2\nHOST = '127.0.0.1'\n")
    monkeypatch.setenv("HOST", "127.0.0.1")
    found = examine(INSTANCE_PATH=str(tmp_path))
    assert found["settings of gunicorn"] == (
        "instance/config.py sets PORT, WEB_THREADS, which gunicorn does not read there",
        "Set them in the environment, unless you start the service with `shop-api serve`.",
    )
    assert list(remedies(found)) == ["settings of gunicorn"]


def test_secret_that_is_short(examine, admin):
    found = examine(SECRET_KEY="short")
    assert found["secret"][0] == "SECRET_KEY has 5 characters"
    assert list(remedies(found)) == ["secret"]


@pytest.mark.parametrize(("mode", "wrong"), [(0o600, False), (0o400, False), (0o640, True)])
def test_secret_that_others_may_read(examine, admin, tmp_path, mode, wrong):
    path = tmp_path / "secret_key"
    path.write_text("x" * 64)
    path.chmod(mode)
    found = examine(SECRET_KEY=None, INSTANCE_PATH=str(tmp_path))
    assert remedies(found) == ({"secret": f"chmod 600 {path}"} if wrong else {})


@pytest.mark.parametrize(
    ("mode", "folder", "wrong"),
    [(0o600, 0o755, False), (0o640, 0o755, False), (0o644, 0o700, False), (0o644, 0o755, True)],
)
def test_sqlite_database_that_every_user_may_read(examine, tmp_path, mode, folder, wrong):
    path = tmp_path / "shop.db"
    path.touch(mode)
    path.chmod(mode)
    tmp_path.chmod(folder)
    found = examine(DATABASE_URL=f"sqlite:///{path}")
    if wrong:
        assert found["database"] == (f"{path} is readable by every user", f"chmod 600 {path}*")
    else:
        assert found["database"] == (f"{path} is available", "")


def test_secret_that_cannot_be_read_does_not_end_the_other_checks(examine, admin, tmp_path):
    path = tmp_path / "secret_key"
    path.mkdir()  # root can read every file
    found = examine(INSTANCE_PATH=str(tmp_path))
    assert found["secret"] == (
        f"{path} cannot be read: Is a directory",
        "Make the service user its owner, or remove it if SECRET_KEY replaces it.",
    )
    assert list(remedies(found)) == ["secret"]
    assert "clock of the database" in found


def test_schema_that_is_behind(examine, fresh_database_url):
    found = examine(DATABASE_URL=fresh_database_url)
    assert remedies(found) == {"schema": ".venv/bin/shop-api db upgrade"}


def test_nobody_has_a_key(examine):
    assert remedies(examine()) == {
        "keys": ".venv/bin/shop-api keys create --login NAME --role ROLE --permission read_write"
    }


@pytest.mark.parametrize(
    "url", ["sqlite:////nowhere/at/all/shop.db", "postgresql://nobody:geheim@127.0.0.1:1/shop"]
)
def test_database_that_is_not_there(examine, url):
    found = examine(DATABASE_URL=url)
    assert "database" in remedies(found)
    assert "geheim" not in str(found)
    assert "schema" not in found


def test_redis_that_is_not_there(examine, admin):
    found = examine(SHOP_REDIS_URL="redis://127.0.0.1:1")
    assert list(remedies(found)) == ["redis"]


@pytest.mark.parametrize(("seconds", "wrong"), [(0, False), (4, False), (-60, True), (60, True)])
def test_clock_that_is_apart(seconds, wrong):
    found = _clock("database", datetime.now(UTC) + timedelta(seconds=seconds))
    assert bool(found.remedy) == wrong


@pytest.mark.slow
def test_setting_that_cannot_be_used_is_named(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "app.main", "doctor"],
        cwd=ROOT,
        env=os.environ | {"PORT": "http", "DATABASE_URL": f"sqlite:///{tmp_path}/shop.db"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert (
        done.stderr == "The service cannot start: PORT: Not a valid integer. The value is 'http'.\n"
    )


def test_webhooks_without_a_worker(examine, admin):
    new = {"topics": ["*"], "delivery_url": "https://receiver.example/"}
    admin.post("/webhooks", {"webhook": new})
    with admin.app.app_context():
        events = [NewEvent("coupon.updated", 1, {})]
        run_in_transaction(lambda session: record(session, None, events))
    assert examine()["webhooks"] == ("1 active, and nothing is overdue", "")
    with admin.app.app_context():
        old = datetime.now(UTC) - timedelta(minutes=3)
        run_in_transaction(lambda session: session.execute(update(Event).values(created_at=old)))
    assert examine()["webhooks"] == (
        "no worker is running, and 1 delivery or event is overdue",
        "Start a worker: .venv/bin/shop-api worker",
    )
