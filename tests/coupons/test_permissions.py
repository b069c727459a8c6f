"""Who can update and delete the coupons of others, and the order of checks (spec 5; decisions 2).

Which roles and keys can call which operation is the table in ``tests/auth/test_permissions.py``.
"""

import pytest

from app.auth.principals import ROLES, Capability
from app.db.session import run_in_transaction
from app.models import User
from tests.api_client import refusal, reply
from tests.coupons.calls import TRASHED, edit

pytestmark = pytest.mark.one_database


def test_unknown_coupon_is_missing_before_a_capability_is(client_for):
    client = client_for("customer")
    for method, path, code in (
        ("GET", "/coupons/999", "shop_api_invalid_coupon_id"),
        ("GET", "/coupons/code/unknown", "shop_api_invalid_coupon_code"),
        ("PUT", "/coupons/999", "shop_api_invalid_coupon_id"),
        ("DELETE", "/coupons/999", "shop_api_invalid_coupon_id"),
    ):
        assert reply(client.request(method, path, json={"coupon": {}})) == refusal(code)


@pytest.fixture
def author(monkeypatch, client_for):
    """A client that can write its own coupons only."""
    own = {
        Capability.PUBLISH_SHOP_COUPONS,
        Capability.READ_PRIVATE_SHOP_COUPONS,
        Capability.EDIT_SHOP_COUPONS,
        Capability.DELETE_SHOP_COUPONS,
    }
    monkeypatch.setitem(ROLES, "author", frozenset(own))
    return client_for("author")


def test_own_coupon_needs_no_capability_for_others(author, make_coupon):
    coupon = make_coupon(author)
    assert edit(author, coupon["id"], amount=1).status_code == 200
    assert reply(author.delete(f"/coupons/{coupon['id']}")) == TRASHED


@pytest.mark.parametrize("force", ["false", "true"])
def test_coupon_of_another_user_needs_a_capability_for_others(author, make_coupon, force):
    coupon = make_coupon()
    path = f"/coupons/{coupon['id']}"
    assert reply(author.get(path)) == (200, {"coupon": coupon})
    assert reply(edit(author, coupon["id"], amount=1)) == refusal(
        "shop_api_user_cannot_edit_coupon"
    )
    assert reply(author.delete(path, {"force": force})) == refusal(
        "shop_api_user_cannot_delete_coupon"
    )
    assert reply(author.get(path)) == (200, {"coupon": coupon})


def test_update_by_another_user_keeps_the_author(author, admin, make_coupon):
    coupon = make_coupon(author)
    assert edit(admin, coupon["id"], amount=1).status_code == 200
    assert edit(author, coupon["id"], amount=2).status_code == 200


def test_two_keys_of_one_user_own_the_same_coupons(author, client_for, make_coupon):
    coupon = make_coupon(author)
    assert edit(client_for("author"), coupon["id"], amount=1).status_code == 200


def test_coupon_of_a_deleted_user_is_not_the_callers(app, author, client_for, admin, make_coupon):
    coupon = make_coupon(author)

    with app.app_context():
        run_in_transaction(lambda session: session.delete(session.get(User, author.key.user_id)))
    successor = client_for("author")
    assert reply(successor.get(f"/coupons/{coupon['id']}")) == (200, {"coupon": coupon})
    assert reply(edit(successor, coupon["id"], amount=1)) == refusal(
        "shop_api_user_cannot_edit_coupon"
    )
    assert edit(admin, coupon["id"], amount=1).status_code == 200
