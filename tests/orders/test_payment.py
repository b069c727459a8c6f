"""Payment and origin of orders (records 3)."""

import pytest

from tests.api_client import refusal, reply
from tests.factories import insert_order
from tests.orders.calls import change, create, read

LINE = {"name": "Mug", "price": "10.00"}


@pytest.mark.both_databases
def test_payment_and_origin_are_stored_and_shown_before_the_customer(admin):
    parent = create(admin)["id"]
    given = {
        "transaction_id": "pi_1",
        "paid_at": "2026-01-02T03:04:05Z",
        "created_via": "till",
        "parent_id": parent,
        "prices_include_tax": True,
    }
    made = create(admin, **given)
    assert {name: made[name] for name in given} == given
    assert list(made)[-9:] == [
        "transaction_id",
        "paid_at",
        "created_via",
        "parent_id",
        "prices_include_tax",
        "discount_tax",
        "cart_hash",
        "version",
        "customer",
    ]
    assert read(admin, made["id"]) == made
    after = change(admin, made["id"], transaction_id="pi_2", created_via="x", parent_id=0)
    assert (after["transaction_id"], after["created_via"]) == ("pi_2", "till")
    assert (after["parent_id"], after["paid_at"]) == (0, given["paid_at"])


def test_fields_of_an_import_cannot_be_supplied(admin):
    made = create(admin, cart_hash="x", version="9.0", discount_tax="5.00")
    assert (made["cart_hash"], made["version"], made["discount_tax"]) == ("", "", "0.00")


@pytest.mark.parametrize(
    "fields", [{"status": "completed"}, {"payment_details": {"paid": True}, "status": "on-hold"}]
)
def test_order_is_paid_when_it_gets_a_paid_status_or_is_marked(admin, fields):
    made = create(admin)
    assert made["paid_at"] is None
    after = change(admin, made["id"], **fields)
    assert after["paid_at"] == after["updated_at"]
    back = change(admin, made["id"], status="pending", payment_details={"paid": False})
    assert back["paid_at"] == after["paid_at"]


def test_new_order_with_a_paid_status_was_paid_when_it_was_created(admin):
    earlier = "2020-01-02T03:04:05Z"
    assert create(admin, status="completed", created_at=earlier)["paid_at"] == earlier
    made = create(admin, status="completed")
    assert made["paid_at"] == made["created_at"]


def test_order_from_before_gets_no_time_of_payment_by_another_change(admin, app):
    order = insert_order(app, status="completed")
    assert change(admin, order, note="Ring twice.")["paid_at"] is None


def test_parent_must_be_another_order_outside_the_trash(admin):
    made, trashed = create(admin)["id"], create(admin)["id"]
    admin.delete(f"/orders/{trashed}")
    error = refusal("shop_api_invalid_order_id", "order.parent_id")[1]
    for parent in (999_999, -1, trashed):
        body = {"order": {"parent_id": parent}}
        assert reply(admin.post("/orders", body)) == (400, error)
    own = admin.put(f"/orders/{made}", {"order": {"parent_id": made}})
    assert reply(own) == (400, error)


@pytest.mark.parametrize("way", ["force", "trash"])
def test_parent_that_is_deleted_permanently_leaves_0(admin, way):
    parent = create(admin)["id"]
    child = create(admin, parent_id=parent)["id"]
    admin.delete(f"/orders/{parent}", {"force": "true"} if way == "force" else None)
    if way == "trash":
        assert read(admin, child)["parent_id"] == parent
        admin.delete("/orders/trash?older_than_days=0")
    assert read(admin, child)["parent_id"] == 0


def test_discount_tax_is_what_the_lines_save(admin):
    lines = [LINE | {"subtotal_tax": "2.00", "total_tax": "1.50"}, LINE | {"total_tax": "0.20"}]
    assert create(admin, line_items=lines)["discount_tax"] == "0.30"
    assert create(admin, line_items=lines[1:])["discount_tax"] == "0.00"


def test_shipping_tax_is_the_sum_of_the_shipping_lines_unless_supplied(admin):
    shipping = {"method_id": "ups", "total": "5.00", "total_tax": "0.95"}
    made = create(admin, shipping_lines=[shipping, shipping])
    assert (made["shipping_tax"], made["total"]) == ("1.90", "11.90")
    after = change(admin, made["id"], shipping_lines=[{**shipping, "total_tax": "0.10"}])
    assert after["shipping_tax"] == "2.00"
    own = change(admin, made["id"], shipping_tax="2.00")
    assert change(admin, own["id"], shipping_lines=[shipping])["shipping_tax"] == "2.00"
    supplied = create(admin, shipping_lines=[shipping], shipping_tax="0.95")
    assert change(admin, supplied["id"], shipping_lines=[shipping])["shipping_tax"] == "0.95"


def test_items_have_variations_and_taxes(admin):
    taxes = [{"id": 3, "total": "1.90", "subtotal": "2.00"}]
    made = create(
        admin,
        line_items=[
            LINE
            | {
                "product_id": 4,
                "variation_id": 7,
                "taxes": [{"id": "3", "total": 1.9, "subtotal": 2}],
            }
        ],
        shipping_lines=[{"method_id": "ups", "instance_id": 5, "taxes": taxes}],
        fee_lines=[{"title": "Gift", "taxes": [{"total": "1"}]}],
    )
    line = made["line_items"][0]
    assert (line["product_id"], line["variation_id"], line["taxes"]) == (4, 7, taxes)
    shipping = made["shipping_lines"][0]
    assert (shipping["instance_id"], shipping["taxes"]) == ("5", taxes)
    assert made["fee_lines"][0]["taxes"] == [{"id": 0, "total": "1.00", "subtotal": "0.00"}]


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_legacy_api_shows_the_variation_as_product_and_no_newer_fields(admin, version):
    made = create(
        admin,
        line_items=[LINE | {"product_id": 4, "variation_id": 7}],
        shipping_lines=[{"method_id": "ups"}],
    )
    shown = admin.get(f"/wc-api/{version}/orders/{made['id']}").get_json()["order"]
    assert shown["line_items"][0]["product_id"] == 7
    assert list(shown["line_items"][0])[-1] == "meta"
    assert list(shown["shipping_lines"][0]) == ["id", "method_id", "method_title", "total"]
    assert list(shown)[-2:] == ["coupon_lines", "customer"]
