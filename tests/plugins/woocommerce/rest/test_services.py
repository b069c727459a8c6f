"""What this dialect needs of the services: updates in the trash, and metadata written by ID."""

import pytest

from app.auth.principals import Principal, capabilities_of
from app.errors import ShopError
from app.services.common.metadata_rules import MetadataEntry, patched_entries
from app.services.coupons.writes import update_coupon
from app.services.orders.writes import update_order
from tests.api_client import codes
from tests.orders.calls import LINE, create
from tests.redemptions.calls import move, reserve, usage_count

ADMIN = Principal(1, capabilities_of(["administrator"]))


def test_a_coupon_in_the_trash_is_updated_there(app, admin, make_coupon):
    trashed = make_coupon(code="spring")
    admin.delete(f"/coupons/{trashed['id']}")
    published = make_coupon(code="summer")
    with app.app_context():
        with pytest.raises(ShopError) as raised:
            update_coupon(ADMIN, trashed["id"], {"description": "kept"})
        assert raised.value.code == "shop_api_invalid_coupon_id"
        # The code of a published coupon is free in the trash.
        after = update_coupon(ADMIN, trashed["id"], {"code": "summer"}, trashed_too=True)
    assert (after["status"], after["code"]) == ("trash", "summer")
    restored = admin.post(f"/coupons/{trashed['id']}/restore")
    assert restored.status_code == 400
    assert admin.get(f"/coupons/{published['id']}").get_json()["coupon"] == published


def test_an_order_in_the_trash_is_updated_there(app, admin):
    order = admin.post("/orders", {"order": {"status": "completed"}}).get_json()["order"]
    admin.delete(f"/orders/{order['id']}")
    with app.app_context():
        with pytest.raises(ShopError) as raised:
            update_order(ADMIN, order["id"], {"note": "kept"})
        assert raised.value.code == "shop_api_invalid_order_id"
        after = update_order(ADMIN, order["id"], {"note": "kept"}, trashed_too=True)
    assert (after["status"], after["note"]) == ("trash", "kept")
    restored = admin.post(f"/orders/{order['id']}/restore").get_json()["order"]
    assert (restored["status"], restored["note"]) == ("completed", "kept")


def test_a_coupon_added_in_the_trash_is_used_when_the_order_is_restored(app, admin, make_coupon):
    coupon = make_coupon(code="once", amount=1, usage_limit=1)
    order = create(admin, status="completed", line_items=[LINE])
    admin.delete(f"/orders/{order['id']}")
    with app.app_context():
        lines = {"coupon_lines": [{"code": "once"}]}
        assert update_order(ADMIN, order["id"], lines, trashed_too=True)["coupon_lines"]
    assert usage_count(admin, coupon) == 0
    reserved = reserve(admin, "once")
    assert codes(admin.post(f"/orders/{order['id']}/restore"))[0] == 400
    move(admin, reserved, "release")
    admin.post(f"/orders/{order['id']}/restore")
    assert usage_count(admin, coupon) == 1


@pytest.mark.parametrize(
    ("patch", "after"),
    [
        ({"key": "a", "value": 5}, [(1, "a", "5"), (3, "b", '"z"')]),
        ({"key": "c", "value": "n"}, [(1, "a", '"x"'), (2, "a", '"y"'), (3, "b", '"z"'), (None, "c", '"n"')]),
        ({"id": 2, "key": "d", "value": "n"}, [(1, "a", '"x"'), (2, "d", '"n"'), (3, "b", '"z"')]),
        ({"id": 9, "key": "d", "value": "n"}, [(1, "a", '"x"'), (2, "a", '"y"'), (3, "b", '"z"'), (None, "d", '"n"')]),
        ({"id": 2, "value": "n"}, [(1, "a", '"x"'), (2, "a", '"y"'), (3, "b", '"z"')]),
        ({"key": "a", "value": None}, [(3, "b", '"z"')]),
        ({"id": 2, "key": "a", "value": None}, [(1, "a", '"x"'), (3, "b", '"z"')]),
        ({"key": "", "value": "n"}, [(1, "a", '"x"'), (2, "a", '"y"'), (3, "b", '"z"')]),
        ({"key": "c"}, [(1, "a", '"x"'), (2, "a", '"y"'), (3, "b", '"z"')]),
    ],
)  # fmt: skip
def test_metadata_is_written_by_id_or_key(app, patch, after):
    before = [
        MetadataEntry("a", '"x"', 1),
        MetadataEntry("a", '"y"', 2),
        MetadataEntry("b", '"z"', 3),
    ]
    with app.app_context():
        found = patched_entries(before, [patch], "coupon.metadata")
    assert [(entry.id, entry.key, entry.value) for entry in found] == after
