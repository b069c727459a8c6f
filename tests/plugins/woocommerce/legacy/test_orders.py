"""Orders written by clients of the legacy API (decisions 12 and 14, orders 1, 3 and 9)."""

import pytest

from app.errors.codes import ERRORS
from tests.api_client import reply
from tests.orders.calls import LINE, change, create, read


@pytest.fixture(params=["/wc-api/v2", "/wc-api/v3"])
def mount(request):
    return request.param


def legacy_refusal(code, param=None, **details):
    status, message = ERRORS[f"shop_api_{code}"]
    entry = {"code": f"woocommerce_api_{code}", "message": message.format(param=param, **details)}
    return status, {"errors": [entry | ({"param": param} if param else {})]}


def test_workflow(admin, mount):
    order = create(admin, mount, line_items=[LINE], status="pending")
    for method in ("PUT", "POST", "PATCH"):
        note = {"order": {"note": method, "status": "wc-completed"}}
        response = admin.request(method, f"{mount}/orders/{order['id']}", json=note)
        shown = response.get_json()["order"]
        assert (response.status_code, shown["status"], shown["note"]) == (200, "completed", method)
    assert reply(admin.get(f"{mount}/orders/{order['id']}")) == (200, {"order": shown})
    path = f"{mount}/orders/{order['id']}"
    assert reply(admin.delete(path)) == (202, {"message": "Deleted order"})
    assert reply(admin.get(path)) == legacy_refusal("invalid_order_id")
    assert reply(admin.delete(path)) == legacy_refusal("invalid_order_id")
    removed = (200, {"message": "Permanently deleted order"})
    assert reply(admin.delete(path, {"force": "true"})) == removed
    assert reply(admin.delete(path, {"force": "true"})) == legacy_refusal("invalid_order_id")


@pytest.mark.parametrize("name", ["status", "filter[status]"])
def test_statuses_with_the_prefix_of_the_original_are_found(admin, mount, name):
    for status in ("pending", "on-hold", "completed"):
        create(admin, mount, status=status)
    query = {name: "wc-completed,wc-on-hold,pending"}
    assert admin.get(f"{mount}/orders/count", query).get_json() == {"count": 3}
    query = {name: "wc-completed"}
    assert [each["status"] for each in admin.get(f"{mount}/orders", query).json["orders"]] == [
        "completed"
    ]
    assert admin.get(f"{mount}/orders", {name: "wc-nonsense"}).status_code == 400


def test_bulk(admin, mount):
    body = {"orders": [{"status": "wc-completed"}, {"status": "x"}]}
    response = admin.post(f"{mount}/orders/bulk", body)
    created, failed = response.get_json()["orders"]
    assert (response.status_code, created["status"]) == (201, "completed")
    assert failed["error"]["code"] == "woocommerce_api_invalid_order_status"
    update = {"orders": [{"id": created["id"], "status": "wc-on-hold"}]}
    response = admin.put(f"{mount}/orders/bulk", update)
    assert (response.status_code, response.get_json()["orders"][0]["status"]) == (200, "on-hold")


@pytest.mark.parametrize(
    ("name", "item", "key"),
    [
        ("line_items", LINE, "product_id"),
        ("shipping_lines", {"method_id": "x"}, "method_id"),
        ("fee_lines", {"title": "x"}, "title"),
        ("coupon_lines", {"code": "x", "amount": 1}, "code"),
    ],
)
def test_an_item_whose_identifying_key_is_null_is_removed(admin, mount, name, item, key):
    order = create(admin, **{name: [item]})
    assert change(admin, order["id"], **{name: [{"id": 1, key: None}]})[name] == order[name]
    after = change(admin, order["id"], mount, **{name: [{"id": 1, key: None}]})
    assert after[name] == []


def test_lines_without_a_product_stay_if_an_order_is_sent_back(admin, mount):
    lines = [LINE, LINE | {"name": "Pot", "product_id": 7}, LINE | {"name": "Set", "product_id": 8}]
    order_id = create(admin, line_items=lines)["id"]
    sent = admin.get(f"{mount}/orders/{order_id}").get_json()["order"]
    assert [line["product_id"] for line in sent["line_items"]] == [None, 7, 8]
    assert change(admin, order_id, mount, **sent)["line_items"] == sent["line_items"]
    items = {"orders": [sent]}
    again = admin.put(f"{mount}/orders/bulk", items).get_json()["orders"][0]
    assert again["line_items"] == sent["line_items"]
    first, second, third = sent["line_items"]
    changed = [first | {"quantity": 2}, second | {"product_id": None}]
    after = change(admin, order_id, mount, line_items=changed)["line_items"]
    assert [(line["name"], line["quantity"]) for line in after] == [("Mug", 2), ("Set", 1)]
    removed = [{"id": first["id"], "product_id": None}]
    assert change(admin, order_id, mount, line_items=removed)["line_items"] == [third]


def test_what_php_writes(admin, mount):
    order = create(
        admin,
        mount,
        billing_address=[],
        shipping_address="",
        payment_details=[],
        line_items={"0": LINE, "2": LINE | {"name": "Pot"}},
        status_note="x",
        set_paid=True,
        order_meta={"a": 1},
    )
    assert [line["name"] for line in order["line_items"]] == ["Mug", "Pot"]
    assert order["status"] == "pending"
    newer = {"variation_id": 0, "taxes": []}
    lines = [line | newer for line in order["line_items"]]
    assert read(admin, order["id"])["line_items"] == lines


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({}, []),
        ({"0": {"key": "a", "value": "b"}}, [("a", "b")]),
        ({"3": {"key": "a"}, "7": [], "9": ""}, [("a", ""), ("", ""), ("", "")]),
        ([[], {"key": "a"}], [("", ""), ("a", "")]),
    ],
)
def test_php_arrays_in_items(admin, mount, meta, expected):
    item = LINE | {"meta": meta, "product_category_ids": {"1": 5, "4": 6}}
    (line,) = create(admin, mount, line_items=[item])["line_items"]
    assert [(each["key"], each["value"]) for each in line["meta"]] == expected
    body = {"orders": [{"line_items": {"5": item}, "download_permissions": {}}]}
    response = admin.post(f"{mount}/orders/bulk", body)
    (line,) = response.get_json()["orders"][0]["line_items"]
    assert [(each["key"], each["value"]) for each in line["meta"]] == expected


@pytest.mark.parametrize("item", [[], ""])
@pytest.mark.parametrize("name", ["line_items", "shipping_lines", "fee_lines", "coupon_lines"])
def test_empty_php_array_as_an_item_is_an_empty_object(admin, mount, name, item):
    given, expected = (
        reply(admin.post(f"{mount}/orders", {"order": {name: [each]}})) for each in (item, {})
    )
    assert given == expected
    assert given[1]["errors"][0]["code"] == "woocommerce_api_invalid_order_item"


def test_item_that_is_not_an_object_is_rejected(admin, mount):
    for item in ("x", [1], 0, None):
        status, body = reply(admin.post(f"{mount}/orders", {"order": {"line_items": [item]}}))
        assert (status, body["errors"][0]["code"]) == (400, "woocommerce_api_invalid_param")


def test_a_line_without_an_amount_is_rejected(admin, mount):
    body = {"order": {"line_items": [{"product_id": 3, "quantity": 2}]}}
    assert reply(admin.post(f"{mount}/orders", body)) == legacy_refusal(
        "invalid_order_item",
        param="order.line_items[0]",
        reason="needs a price, a subtotal or a total.",
    )


def test_the_trash_has_no_legacy_routes(admin, mount):
    order = create(admin)
    admin.delete(f"/orders/{order['id']}")
    for method, path in (("GET", "trash"), ("DELETE", "trash"), ("POST", f"{order['id']}/restore")):
        response = admin.request(method, f"{mount}/orders/{path}")
        assert reply(response) == legacy_refusal("no_route")
