"""A shop and requests for the tests of coupon lists."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest


def timestamp(day, hour=0):
    return datetime(2026, 1, day, hour, tzinfo=UTC)


# Each column has a tie, so that the id decides; in the order of their ids.
ROWS = {
    "A": {
        "code": "delta",
        "description": "Winter SALE",
        "type": "percent",
        "amount": Decimal("10.00"),
        "usage_count": 3,
        "expiry_date": date(2031, 1, 1),
        "created_at": timestamp(3),
        "updated_at": timestamp(11),
    },
    "B": {
        "code": "alpha",
        "description": "100% off_season",
        "type": "fixed_cart",
        "amount": Decimal("9.50"),
        "usage_count": 10,
        "expiry_date": None,
        "created_at": timestamp(1),
        "updated_at": timestamp(14),
    },
    "C": {
        "code": "charlie",
        "description": "",
        "type": "percent",
        "amount": Decimal("10.00"),
        "usage_count": 3,
        "expiry_date": date(2030, 1, 1),
        "created_at": timestamp(3),
        "updated_at": timestamp(12),
    },
    "D": {
        "code": "bravo ÉTÉ",
        "description": "ΑΘΗΝΑ",
        "type": "fixed_product",
        "amount": Decimal("-1.00"),
        "usage_count": 0,
        "expiry_date": date(2031, 1, 1),
        "created_at": timestamp(2, 12),
        "updated_at": timestamp(12),
    },
    "E": {
        "code": "echo",
        "description": "sale",
        "type": "percent_product",
        "amount": Decimal("100.00"),
        "usage_count": 3,
        "expiry_date": None,
        "created_at": timestamp(1),
        "updated_at": timestamp(13),
    },
}
INPUT = {"code", "description", "type"}


@pytest.fixture
def shop(admin, make_coupon, store):
    """The ids of the rows by their letters; a sixth coupon is in the trash."""
    items = [{name: row[name] for name in INPUT} for row in ROWS.values()]
    created = admin.post("/coupons/bulk", {"coupons": items}).get_json()["coupons"]
    ids = {letter: coupon["id"] for letter, coupon in zip(ROWS, created, strict=True)}
    for letter, row in ROWS.items():
        store(ids[letter], **{name: row[name] for name in row.keys() - INPUT})
    admin.delete(f"/coupons/{make_coupon(code='sale in the trash', type='percent')['id']}")
    return ids


@pytest.fixture
def pager(client_with):
    """The administrator, as a client of an app with two rows on a page."""
    return client_with(SHOP_PAGE_SIZE=2)


def letters(response, shop):
    """The letters of the coupons that a list shows, in its order."""
    assert response.status_code == 200, response.get_json()
    names = {coupon_id: letter for letter, coupon_id in shop.items()}
    return "".join(names[coupon["id"]] for coupon in response.get_json()["coupons"])


def totals(response):
    return response.headers["X-Total"], response.headers["X-TotalPages"]
