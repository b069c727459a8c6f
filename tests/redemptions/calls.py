"""Requests for the tests of redemptions."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from app.db.session import run_in_transaction
from app.models import Redemption
from tests.api_client import codes

NOT_APPLICABLE = "shop_api_coupon_not_applicable"
USED_UP = ["usage_limit"]


def post(client, code="summer", reference="cart-1", **over):
    return client.post(
        "/redemptions", {"redemption": {"code": code, "reference": reference} | over}
    )


def reserve(client, code="summer", reference="cart-1", **over):
    response = post(client, code, reference, **over)
    assert response.status_code in {200, 201}, response.get_json()
    return response.get_json()["redemption"]


def move(client, redemption, action):
    response = client.post(f"/redemptions/{redemption['id']}/{action}")
    assert response.status_code == 200, response.get_json()
    return response.get_json()["redemption"]


def rejected(response):
    """The codes of the reasons of a rejection."""
    assert codes(response) == (400, NOT_APPLICABLE)
    (entry,) = response.get_json()["errors"]
    assert entry["param"] == "redemption.code"
    return [reason["code"] for reason in entry["reasons"]]


def usage_count(client, coupon):
    return client.get(f"/coupons/{coupon['id']}").get_json()["coupon"]["usage_count"]


@pytest.fixture
def expire(app):
    """Return a function: let a reservation expire, some seconds ago."""

    def write(redemption, seconds=0):
        timestamp = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=seconds)
        statement = (
            update(Redemption).where(Redemption.id == redemption["id"]).values(expires_at=timestamp)
        )
        with app.app_context():
            run_in_transaction(lambda session: session.execute(statement))
        return f"{timestamp.isoformat()[:19]}Z"

    return write
