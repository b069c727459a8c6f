"""Two apps in one process share no state."""

import re

import pytest

from app.auth.principals import Permission
from app.config.settings import SettingsSchema
from app.db.session import db
from app.plugin_api import registry
from app.services.api_keys.writes import create_key
from tests.api_client import Client

pytestmark = pytest.mark.one_database


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in SettingsSchema._declared_fields:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def two_shops(app, make_app, migrated_database_url, tmp_path):
    """Return the app of the run and an app with its own database, secret and settings."""
    other = make_app(
        DATABASE_URL=migrated_database_url,
        SECRET_KEY="another secret for tests",
        INSTANCE_PATH=str(tmp_path),
        SHOP_NAME="Other",
        SHOP_PAGE_SIZE=1,
        SHOP_BULK_LIMIT=1,
        SHOP_MAX_BODY_BYTES=200,
        SHOP_URL_PREFIX="/other",
        SHOP_AUTH_FAILURES_PER_MINUTE=1,
    )
    with other.app_context():
        registry().add_coupon_type("gift")
    return app, other


def client_of(app):
    with app.app_context():
        return Client(app, create_key("admin", "administrator", Permission("read_write"), ""))


def test_two_apps_have_their_own_data_keys_and_routes(two_shops):
    app, other = two_shops
    here, there = client_of(app), client_of(other)
    assert here.post("/coupons", {"coupon": {"code": "a"}}).status_code == 201
    assert there.get("/other/coupons").get_json() == {"coupons": []}
    assert there.get("/coupons").status_code == 404
    assert here.get("/other/coupons").status_code == 404
    assert Client(other, here.key).get("/other/coupons").status_code == 401


def test_two_apps_have_their_own_coupon_types(two_shops):
    app, other = two_shops
    gift = {"coupon": {"code": "g", "type": "gift"}}
    assert client_of(other).post("/other/coupons", gift).status_code == 201
    rejected = client_of(app).post("/coupons", gift)
    assert (rejected.status_code, rejected.get_json()["errors"][0]["code"]) == (
        400,
        "shop_api_invalid_coupon_type",
    )


def test_two_apps_have_their_own_limits(two_shops):
    app, other = two_shops
    two = {"coupons": [{"code": "a"}, {"code": "b"}]}
    long = {"coupon": {"code": "c", "description": "x" * 200}}
    assert client_of(other).post("/other/coupons/bulk", two).status_code == 413
    assert client_of(other).post("/other/coupons", long).status_code == 413
    assert client_of(app).post("/coupons/bulk", two).status_code == 200
    assert client_of(app).post("/coupons", long).status_code == 201
    assert client_of(app).get("/coupons").headers["X-TotalPages"] == "1"
    assert client_of(other).get("/other/").get_json()["name"] == "Other"
    assert client_of(app).get("/").get_json()["name"] == "Shop Administration API"


def test_two_apps_count_failed_attempts_apart(two_shops):
    app, other = two_shops
    wrong = {"Authorization": "Basic eDp5"}
    path = "/other/coupons"
    found = [Client(other).get(path, headers=wrong).status_code for _ in range(3)]
    assert found == [401, 429, 429]
    assert Client(app).get("/coupons", headers=wrong).status_code == 401


@pytest.mark.slow
def test_two_apps_have_their_own_documents(two_shops):
    app, other = two_shops
    here = app.test_client().get("/openapi.json").get_json()
    there = other.test_client().get("/other/openapi.json").get_json()
    moved = {
        path if path in {"/healthz", "/readyz"} else f"/other{path}": operations
        for path, operations in here["paths"].items()
    }
    assert (there["info"]["title"], there["paths"]) == ("Other", moved)
    types = there["components"]["schemas"]["CouponType"]["enum"]
    assert types.pop() == "gift"  # added after the start, and before the document was used
    assert (bulk_limits(here), bulk_limits(there)) == ({100}, {1})
    assert here["components"] == there["components"]


def bulk_limits(document):
    """Remove the maximum number of items from the bodies of bulk requests, and return it."""
    schemas = document["components"]["schemas"]
    bodies = [schema for name, schema in schemas.items() if re.fullmatch(r"\w+BulkRequest", name)]
    return {items.pop("maxItems") for body in bodies for items in body["properties"].values()}


def test_two_apps_have_their_own_engines(two_shops):
    app, other = two_shops
    with app.app_context():
        here = set(map(id, db.engines.values()))
    with other.app_context():
        there = set(map(id, db.engines.values()))
    assert (len(here), len(there), here & there) == (3, 3, set())
