"""Upgrades of shops as released versions have written them (``qa/releases``)."""

import re

import pytest
from flask_migrate import upgrade
from sqlalchemy import text

from app.db.session import db
from qa.releases import FOLDER, losses, read_release, releases
from tests.api_client import Client
from tests.serving import ROOT

RELEASES = releases()
UPGRADED = [
    # The newest has passed the fewest migrations, and the oldest all of them.
    pytest.param(name, marks=() if name in {RELEASES[0], RELEASES[-1]} else pytest.mark.slow)
    for name in RELEASES
]


@pytest.fixture
def upgraded(make_app, fresh_database_url):
    """Return a function: the upgraded shop of a release, and its administrator's client."""

    def load(name):
        release = read_release(name)
        release.load(fresh_database_url)
        app = make_app(DATABASE_URL=fresh_database_url)
        with app.app_context():
            upgrade()
        return release, Client(app, release.key)

    return load


def now(release, client):
    return {path: client.get(path).get_json() for path in release.responses}


@pytest.mark.slow
@pytest.mark.both_databases
@pytest.mark.parametrize("name", UPGRADED)
def test_upgraded_shop_of_a_release_returns_what_it_returned_and_accepts_writes(upgraded, name):
    release, client = upgraded(name)
    assert losses(release.responses, now(release, client)) == []
    assert client.get("/readyz").status_code == 200
    result = client.app.test_cli_runner().invoke(args=["doctor"])
    assert (result.exit_code, "FAIL" in result.output) == (0, False), result.output
    accepts_writes(client)


def accepts_writes(client):
    coupon = client.get("/coupons/code/summer-2030").get_json()["coupon"]
    customer = client.get("/customers/email/joan@example.com").get_json()["customer"]
    body = {
        "customer_id": customer["id"],
        "status": "completed",
        "line_items": [{"name": "Cup", "quantity": 1, "price": "10.00"}],
        "coupon_lines": [{"code": "summer-2030"}],
    }
    response = client.post("/orders", {"order": body})
    assert response.status_code == 201, response.get_json()
    order = response.get_json()["order"]
    assert order["total"] == "8.50"
    used = client.get(f"/coupons/{coupon['id']}").get_json()["coupon"]
    assert used["usage_count"] == coupon["usage_count"] + 1
    assert order["customer"]["orders_count"] == customer["orders_count"] + 1
    items = client.get("/orders?fields=line_items.id&limit=-1").get_json()["orders"]
    ids = [line["id"] for each in items for line in each["line_items"]]
    assert len(ids) == len(set(ids)), "a new item has the ID of another one"
    trashed = client.get("/coupons/trash").get_json()["coupons"][0]["id"]
    assert client.post(f"/coupons/{trashed}/restore").status_code == 200
    assert client.get("/coupons?q=trashed").get_json()["coupons"][0]["id"] == trashed


@pytest.mark.slow
def test_a_migration_that_loses_data_is_found(upgraded):
    release, client = upgraded(RELEASES[-1])
    for path, statement in {
        "/coupons?limit=-1&meta=true": "UPDATE coupons SET amount = amount + 1 WHERE id = 7",
        "/customers?limit=-1&meta=true": "DELETE FROM customer_metadata",
        "/customers/email/joan@example.com": "UPDATE order_sums SET total = total + 1",
        "/orders/13/notes": "UPDATE order_notes SET note = ''",
    }.items():
        assert losses(release.responses[path], client.get(path).get_json()) == []
        with client.app.app_context(), db.engine.begin() as connection:
            connection.execute(text(statement))
        assert losses(release.responses[path], client.get(path).get_json()), statement


@pytest.mark.slow
@pytest.mark.both_databases
def test_losses_are_members_and_values_but_not_additions():
    then = {"a": {"b": [1, {"c": "1.50"}]}, "d": None}
    assert losses(then, {"a": {"b": [1, {"c": "1.50", "new": 1}], "new": 2}, "d": None}) == []
    assert losses(then, {"a": {"b": [1]}, "d": None}) == [".a.b: [1, {'c': '1.50'}], now [1]"]
    assert losses(then, {"a": {"b": [True, {}]}}) == [
        ".d: missing", ".a.b.0: 1, now True", ".a.b.1.c: missing",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.both_databases
def test_each_release_of_the_changelog_has_its_shop():
    dated = re.findall(r"^## \[(\S+)\] - \d", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert sorted(dated) == sorted(RELEASES), f"run `python -m qa.releases`; see {FOLDER}"
