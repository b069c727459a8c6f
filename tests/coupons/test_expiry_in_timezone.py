"""SHOP_EXPIRY_IN_TIMEZONE: an expiry date is the last day of a coupon in the shop's time zone."""

import csv
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest

from tests.coupons.test_evaluate import reasons
from tests.orders.calls import LINE
from tests.plugins.admin.browser_client import Browser
from tests.redemptions.calls import post, rejected

NEW_YORK = {"SHOP_TIMEZONE": "America/New_York", "SHOP_EXPIRY_IN_TIMEZONE": True}
SECOND = timedelta(seconds=1)

ENDS = {
    "2030-01-31": datetime(2030, 2, 1, 5, tzinfo=UTC),
    "2030-03-10": datetime(2030, 3, 11, 4, tzinfo=UTC),  # a day with 23 hours
    "2030-11-03": datetime(2030, 11, 4, 5, tzinfo=UTC),  # a day with 25 hours
}


@pytest.fixture
def at(monkeypatch):
    """Return a function that lets coupons see a time. Keys and events have the real one."""

    def set_time(moment):
        for module in (
            "services.coupons.evaluation",
            "services.coupons.queries",
            "services.orders.coupons",
            "services.redemptions.writes",
            "plugins.admin.nouns.coupon_texts",
        ):
            monkeypatch.setattr(f"app.{module}.now", lambda: moment)

    return set_time


@pytest.fixture
def shop(client_with):
    """The administrator's client of a shop in New York."""
    return client_with(**NEW_YORK)


def order_with(client, code, prefix=""):
    body = {"line_items": [LINE | {"quantity": 1}], "coupon_lines": [{"code": code}]}
    return client.post(f"{prefix}/orders", {"order": body})


def bulk_with(client, code):
    body = {"line_items": [LINE | {"quantity": 1}], "coupon_lines": [{"code": code}]}
    (one,) = client.post("/orders/bulk", {"orders": [body]}).get_json()["orders"]
    return "error" not in one


def states(client, **query):
    """The states in which lists and counts find the coupons, by the code."""
    found = {}
    for state in ("active", "expired"):
        listed = client.get("/coupons", {"state": state, "fields": "code"} | query)
        assert listed.headers["X-Total"] == str(len(listed.get_json()["coupons"]))
        counted = client.get("/coupons/count", {"state": state} | query).get_json()["count"]
        assert counted == len(listed.get_json()["coupons"])
        found |= {each["code"]: state for each in listed.get_json()["coupons"]}
    return found


@pytest.mark.both_databases
@pytest.mark.parametrize("day", ENDS)
def test_a_coupon_works_until_its_last_day_ends_in_the_shop(shop, make_coupon, at, day):
    coupon, end = make_coupon(code="last", type="percent", amount=10, expiry_date=day), ENDS[day]
    make_coupon(code="later", expiry_date=f"{end.date() + timedelta(days=1)}")
    at(end - SECOND)
    assert reasons(shop, "last") == []
    assert order_with(shop, "last").status_code == 201
    assert bulk_with(shop, "last")
    assert post(shop, "last", "one").status_code == 201
    assert states(shop) == {"last": "active", "later": "active"}
    at(end)
    assert reasons(shop, "last") == ["expired"]
    assert order_with(shop, "last").status_code == 400
    assert not bulk_with(shop, "last")
    assert rejected(post(shop, "last", "two")) == ["expired"]
    assert states(shop) == {"last": "expired", "later": "active"}
    # The field stays the date.
    shown = shop.get(f"/coupons/{coupon['id']}", {"fields": "expiry_date"}).get_json()["coupon"]
    assert shown["expiry_date"] == coupon["expiry_date"] == f"{day}T00:00:00Z"


def test_without_the_setting_a_coupon_stops_at_midnight_utc(client_with, make_coupon, at):
    client = client_with(SHOP_TIMEZONE="America/New_York")
    make_coupon(code="last", expiry_date="2030-11-03")
    midnight = datetime(2030, 11, 3, tzinfo=UTC)
    for moment, found, state in (
        (midnight - SECOND, [], "active"),
        (midnight, ["expired"], "expired"),
    ):
        at(moment)
        assert reasons(client, "last") == found
        assert states(client) == {"last": state}
        assert order_with(client, "last").status_code == (400 if found else 201)


@pytest.mark.parametrize("prefix", ["/wc-api/v2", "/wc-api/v3"])
def test_legacy_requests_follow_the_setting(shop, make_coupon, at, prefix):
    make_coupon(code="last", expiry_date="2030-11-03")
    for moment, status in (ENDS["2030-11-03"] - SECOND, 201), (ENDS["2030-11-03"], 400):
        at(moment)
        assert order_with(shop, "last", prefix).status_code == status
    listed = shop.get(f"{prefix}/coupons").get_json()["coupons"]
    assert [each["expiry_date"] for each in listed] == ["2030-11-03T00:00:00Z"]


@pytest.mark.parametrize(
    ("given", "day"),
    [
        ("2030-11-04", "2030-11-03"),
        ("2030-11-04T00:00:00", "2030-11-03"),
        ("2030-11-03T23:59:59", "2030-11-03"),
        ("2030-11-03T12:00:00", "2030-11-03"),
        ("2030-11-04T05:00:00Z", "2030-11-03"),
        ("2030-11-04T05:00:01Z", "2030-11-04"),
    ],
)
def test_wc_v3_shows_and_takes_the_instant_of_the_end(shop, given, day):
    pair = (shop.key.consumer_key, shop.key.consumer_secret)
    options, http = {"auth": pair, "base_url": "https://shop.example"}, shop.app.test_client()
    path = "/wp-json/wc/v3/coupons"
    body = {"code": "last", "amount": "5", "date_expires": given}
    created = http.post(path, json=body, **options).get_json()
    coupon = shop.get(f"/coupons/{created['id']}").get_json()["coupon"]
    assert coupon["expiry_date"] == f"{day}T00:00:00Z"
    following = f"2030-11-0{int(day[-1]) + 1}"
    assert created["date_expires"] == f"{following}T00:00:00"
    assert created["date_expires_gmt"] == f"{following}T05:00:00"
    path = f"{path}/{created['id']}"
    for name in ("date_expires", "date_expires_gmt"):  # what is read can be written back
        sent = {name: created[name]}
        shown = http.put(path, json=sent, **options).get_json()
        assert shown[name] == created[name]


def test_pages_ask_for_and_show_the_last_day(shop, make_coupon, at):
    coupon = make_coupon(code="last", amount=5, expiry_date="2030-11-03")
    browser = Browser(shop.app, shop.key)
    path = f"/coupons/{coupon['id']}"
    at(ENDS["2030-11-03"] - SECOND)
    page = browser.get(f"{path}/edit")
    assert "Last day" in page.text
    assert "Expires on" not in page.text
    assert "Works until Nov 4, 2030, 04:59 UTC (Nov 3, 2030, 23:59 in New York)." in page.text
    assert "in the time zone of the shop" in page.text
    assert "Works until Nov 3, 2030" in browser.get(path).text
    assert "Use LAST until Nov 3, 2030" in browser.get(path).text
    assert "Nov 3, 2030" in browser.get("/coupons?state=active").text
    text = browser.get("/coupons?format=csv").html
    (row,) = csv.DictReader(StringIO(text.removeprefix("\ufeff")))
    assert "2030-11-03" in row.values()
    at(ENDS["2030-11-03"])
    assert "Nov 3, 2030" in browser.get("/coupons?state=expired").text
    warned = browser.submit(f"{path}/edit", "_form", expiry_date="2030-11-02")
    assert "The expiry date is not in the future" in warned.text
    at(datetime(2030, 11, 3, 4, tzinfo=UTC) - SECOND)
    assert browser.submit(f"{path}/edit", "_form", expiry_date="2030-11-02").status == 303
