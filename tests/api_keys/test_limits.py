"""Expiry, last use and resources of API keys (decisions 2)."""

import re
import time
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from app.catalog import EXTENSION
from app.db.session import db, run_in_transaction
from app.models import ApiKey
from tests.api_client import codes
from tests.api_keys.calls import REJECTED, client_of, reason_of, stored

# --- expiry ---


def expire(app, key_id, at):
    statement = update(ApiKey).where(ApiKey.id == key_id).values(expires_at=at)
    with app.app_context():
        run_in_transaction(lambda session: session.execute(statement))


def test_key_expires(app, admin, make_key):
    key = make_key()
    client = client_of(app, key)
    at = datetime.now(UTC) + timedelta(seconds=1.2)
    expire(app, key["id"], at)
    # A cached principal is not used beyond the expiry of its key.
    while (response := client.get("/coupons")) and datetime.now(UTC) < at:
        assert response.status_code == 200
        time.sleep(0.05)
    response = client.get("/coupons")
    assert codes(response) == REJECTED
    assert reason_of(response) == "The API key has expired."
    assert admin.get(f"/keys/{key['id']}").status_code == 200


def test_expired_key_with_a_wrong_secret_is_not_revealed(app, admin, make_key):
    key = make_key()
    expire(app, key["id"], datetime.now(UTC) - timedelta(days=1))
    wrong = client_of(app, key | {"consumer_secret": "cs_wrong"})
    assert reason_of(wrong.get("/coupons")) == "The consumer key or its secret is wrong."


# --- last use ---


def test_last_use_is_stored_to_the_minute_and_once_a_minute(app, admin, make_key, statements):
    key, other = make_key(), make_key()
    client = client_of(app, key)
    for _ in range(2):  # a minute can begin in between
        started = datetime.now(UTC).replace(second=0, microsecond=0)
        statements.clear()
        for _ in range(3):
            assert client.get("/orders/statuses").status_code == 200
            app.extensions.pop("shop_api_principals")
        if datetime.now(UTC).replace(second=0, microsecond=0) == started:
            break
    writes = [statement for statement in statements if "UPDATE" in statement]
    assert len(writes) <= 1
    assert stored(app, key["id"]).last_used_at == started
    assert stored(app, other["id"]).last_used_at is None
    shown = admin.get(f"/keys/{key['id']}").get_json()["key"]["last_used_at"]
    assert shown == f"{started:%Y-%m-%dT%H:%M}:00Z"


def test_rejected_secret_does_not_count_as_use(app, make_key):
    key = make_key()
    client_of(app, key | {"consumer_secret": "cs_wrong"}).get("/coupons")
    assert stored(app, key["id"]).last_used_at is None


def test_last_use_does_not_wait_for_a_writer(app, make_key):
    key = make_key()
    client = client_of(app, key)
    with app.app_context(), db.engine.begin() as connection:
        # Locks the database on SQLite and the key on PostgreSQL.
        own = update(ApiKey).where(ApiKey.id == key["id"])
        connection.execute(own.values(description="locked"))
        started = time.monotonic()
        assert client.get("/orders/statuses").status_code == 200
        assert time.monotonic() - started < 15  # a writer waits for another one for 20 seconds
    assert stored(app, key["id"]).last_used_at is None
    app.extensions.pop("shop_api_principals")
    assert client.get("/orders/statuses").status_code == 200
    assert stored(app, key["id"]).last_used_at is not None


# --- resources ---

PATHS = {
    "coupons": ["/coupons", "/coupons/count", "/coupons/trash"],
    "customers": ["/customers", "/customers/count"],
    "orders": ["/orders", "/orders/count", "/orders/statuses", "/orders/trash"],
    "redemptions": ["/redemptions", "/redemptions/count"],
    "keys": ["/keys"],
}


@pytest.mark.parametrize("resource", PATHS)
def test_key_is_limited_to_its_resources(limited, resource):
    client = limited(resources=frozenset({resource}))
    for other, paths in PATHS.items():
        for path in paths:
            response = client.get(path)
            if other == resource:
                assert response.status_code == 200, path
            else:
                assert codes(response) == REJECTED, path
                assert reason_of(response) == f"This API key is not valid for the resource {other}."
                assert response.headers["WWW-Authenticate"].startswith("Basic")


@pytest.mark.parametrize("mount", ["/wc-api/v2", "/wc-api/v3"])
def test_key_is_limited_on_legacy_mounts(limited, admin, make_coupon, mount):
    coupon = make_coupon()
    client = limited(resources=frozenset({"coupons"}))
    assert client.get(f"{mount}/coupons").status_code == 200
    rejected = (401, "woocommerce_api_authentication_error")
    for path in ("customers", "orders", "orders/count", "orders/1/notes"):
        assert codes(client.get(f"{mount}/{path}")) == rejected
    other = limited("other", resources=frozenset({"orders"}))
    for method in ("PUT", "POST", "PATCH", "DELETE"):
        assert codes(other.request(method, f"{mount}/coupons/{coupon['id']}")) == rejected
    override = {"X-HTTP-Method-Override": "DELETE"}
    path = f"{mount}/coupons/{coupon['id']}"
    assert codes(other.post(path, headers=override)) == rejected
    assert admin.get(f"/coupons/{coupon['id']}").status_code == 200


def test_orders_of_a_customer_need_both_resources(limited, make_customer):
    user = make_customer()
    for path in (f"/customers/{user['id']}/orders", f"/customers/{user['id']}/downloads"):
        for mount in ("", "/wc-api/v3"):
            for one in ("customers", "orders"):
                client = limited(one, resources=frozenset({one}))
                assert client.get(mount + path).status_code == 401
            both = limited("both", resources=frozenset({"customers", "orders"}))
            assert both.get(mount + path).status_code == 200


def test_every_operation_needs_the_resource_in_its_path(app, limited):
    """A blueprint that is added later is covered, and so is every mount of the legacy API."""
    client = limited(resources=frozenset({"no such resource"}))
    prefixes = ("/wc-api/v2", "/wc-api/v3")
    public = {"/", "/favicon.ico", "/healthz", "/readyz", "/openapi.json", "/metrics", "/llms.txt"}
    for rule in app.url_map.iter_rules():
        path = rule.rule
        for prefix in prefixes:
            path = path.removeprefix(prefix)
        # Pages and wc/v3 have tests of their own.
        if path in public or path.startswith(
            ("/docs", "/static", "/admin", "/wp-json", "/wc-auth")
        ):
            continue
        url = re.sub("<email:[^>]+>", "a@example.com", rule.rule)
        url = re.sub("<[^>]+>", "1", url)
        for method in rule.methods - {"OPTIONS"}:
            response = client.request(method, url)
            assert response.status_code == 401, (method, url, response.status_code)
            if method != "HEAD":
                resource = path.split("/")[1]
                # records 5, campaigns 2
                resource = {"refunds": "orders", "campaigns": "coupons"}.get(resource, resource)
                expected = f"This API key is not valid for the resource {resource}."
                assert reason_of(response) == expected, (method, url)
                assert resource in app.extensions[EXTENSION].resources


def test_every_route_of_wc_v3_needs_the_resource_in_its_path(app, limited):
    key = limited(resources=frozenset({"no such resource"})).key
    http = app.test_client()
    prefix = "/wp-json/wc/v3/"
    # Of the shop, not of its records, and empty lists.
    public = {"data", "system_status", "openapi.json"}
    public |= {"products", "taxes", "shipping", "payment_gateways"}
    seen = set()
    for rule in app.url_map.iter_rules():
        name = rule.rule.removeprefix(prefix).split("/")[0]
        if not rule.rule.startswith(prefix) or name in public:
            continue
        resource = "orders" if name == "refunds" else name
        for method in rule.methods - {"OPTIONS", "HEAD", "TRACE"}:
            url = re.sub("<[^>]+>", "1", rule.rule)
            auth = (key.consumer_key, key.consumer_secret)
            response = http.open(url, method=method, auth=auth)
            expected = f"This API key is not valid for the resource {resource}."
            found = response.status_code, response.get_json()["message"]
            assert found == (401, expected), (method, url)
            seen.add(resource)
    assert seen == {"coupons", "customers", "orders", "reports", "webhooks"}


def test_a_key_in_a_header_opens_no_admin_page(app, limited):
    client = limited()
    rules = [
        rule
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/admin/") and "/static/" not in rule.rule
    ]
    assert rules
    for rule in rules:
        url = re.sub("<[^>]+>", "1", rule.rule)
        if "GET" in rule.methods and url != "/admin/sign-in":
            response = client.get(url)
            assert response.status_code == 303, url
            assert response.headers["Location"].startswith("/admin/sign-in?"), url
        if "POST" in rule.methods:
            assert client.post(url).status_code == 403, url
