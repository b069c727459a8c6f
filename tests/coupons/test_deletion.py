"""Permanently deleted coupons: their uses keep the ID, which nothing shows (redemptions 4)."""

import pytest
from sqlalchemy import select

from app.db.read_pool import fetch
from app.models import DELETED_COUPONS, REDEMPTIONS
from tests.redemptions.calls import move, reserve

pytestmark = pytest.mark.both_databases


@pytest.fixture
def deleted(admin, make_coupon):
    """A deleted coupon with a confirmed use, and the use."""
    coupon = make_coupon(code="summer")
    use = reserve(admin, reference="a", code="summer")
    move(admin, use, "confirm")
    assert admin.delete(f"/coupons/{coupon['id']}?force=true").status_code == 200
    return coupon, use


def test_no_use_changes_and_none_shows_the_coupon(app, admin, deleted):
    coupon, use = deleted
    with app.app_context():
        assert fetch(select(REDEMPTIONS.c.coupon_id)) == [(coupon["id"],)]
        assert fetch(select(DELETED_COUPONS.c.id)) == [(coupon["id"],)]
    shown = admin.get(f"/redemptions/{use['id']}").get_json()["redemption"]
    assert (shown["coupon_id"], shown["code"]) == (None, "summer")
    assert admin.get(f"/redemptions?filter[coupon_id]={coupon['id']}").get_json() == {
        "redemptions": []
    }
    released = move(admin, use, "release")
    assert released["coupon_id"] is None


def test_a_report_shows_the_code(admin, deleted, make_coupon):
    """Uses of several deleted coupons with one code are one row."""
    again = make_coupon(code="summer")
    move(admin, reserve(admin, reference="b", code="summer"), "confirm")
    assert admin.delete(f"/coupons/{again['id']}?force=true").status_code == 200
    (row,) = admin.get("/reports/coupons?period=week").get_json()["coupon_reports"]
    assert (row["coupon"]["id"], row["coupon"]["code"], row["uses"]) == (None, "summer", 2)


def test_an_id_is_never_assigned_again(admin, deleted, make_coupon):
    """Also not that of the last coupon."""
    assert make_coupon(code="winter")["id"] > deleted[0]["id"]
