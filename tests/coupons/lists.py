"""A shop and requests for the tests of coupon lists."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest


def row(code, description, kind, amount, usage_count, expiry_date, created_at, updated_at):
    """Columns of a coupon. The last two are moments of January 2026: a day, or a day and an hour."""
    return {
        "code": code,
        "description": description,
        "type": kind,
        "amount": Decimal(amount),
        "usage_count": usage_count,
        "expiry_date": expiry_date,
        "created_at": datetime(2026, 1, *created_at, tzinfo=UTC),
        "updated_at": datetime(2026, 1, *updated_at, tzinfo=UTC),
    }


# Each column has a tie, so that the id decides; in the order of their ids.
ROWS = {
    "A": row("delta", "Winter SALE", "percent", "10.00", 3, date(2031, 1, 1), (3,), (11,)),
    "B": row("alpha", "100% off_season", "fixed_cart", "9.50", 10, None, (1,), (14,)),
    "C": row("charlie", "", "percent", "10.00", 3, date(2030, 1, 1), (3,), (12,)),
    "D": row("bravo ÉTÉ", "ΑΘΗΝΑ", "fixed_product", "-1.00", 0, date(2031, 1, 1), (2, 12), (12,)),
    "E": row("echo", "sale", "percent_product", "100.00", 3, None, (1,), (13,)),
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
