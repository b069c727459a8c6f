"""Requests with an Idempotency-Key."""

import pytest
from sqlalchemy import select

from app.db.read_pool import fetch
from app.models import IdempotencyRecord
from tests.api_client import refusal

REUSED = refusal("shop_api_idempotency_key_reused")
CREATES = {
    "/coupons": ({"coupon": {"code": "summer"}}, {"coupon": {"code": "winter"}}),
    "/customers": (
        {"customer": {"email": "ada@example.com", "password": "correct horse"}},
        {"customer": {"email": "bob@example.com"}},
    ),
    "/coupons/bulk": (
        {"coupons": [{"code": "summer"}, {"code": ""}, 5]},
        {"coupons": [{"code": "winter"}]},
    ),
    "/customers/bulk": (
        {"customers": [{"email": "ada@example.com"}, {"email": "no address"}]},
        {"customers": [{"email": "bob@example.com"}]},
    ),
}
REQUESTS = [
    *(("POST", path, *bodies) for path, bodies in CREATES.items()),
    *(("PUT", path, *bodies) for path, bodies in CREATES.items() if path.endswith("bulk")),
]


def send(client, path="/coupons", body=None, key="k-1", method="POST"):
    body = CREATES[path][0] if body is None else body
    return client.request(method, path, json=body, headers={"Idempotency-Key": key})


def is_replayed(response):
    return response.headers.get("Idempotent-Replayed")


def shop(client):
    """Everything that these requests could write."""
    coupons = client.get("/coupons", {"filter[orderby]": "id"}).get_json()
    customers = client.get("/customers", {"filter[role]": "all", "filter[limit]": -1}).get_json()
    return coupons | customers


@pytest.fixture
def kept(app):
    """Return a function: the stored idempotency records, oldest first."""

    def read():
        with app.app_context():
            return fetch(select(IdempotencyRecord.__table__).order_by(IdempotencyRecord.id))

    return read
