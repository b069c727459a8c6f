"""Refunds of orders (records 2)."""

from collections import namedtuple

import pytest

from tests.api_client import Client, at_the_same_time, refusal, refused_params, reply
from tests.orders.calls import change, create, read

LINE = {"name": "Mug", "quantity": 2, "price": "10.00", "total_tax": "3.80"}
SHIPPING = {"method_id": "flat_rate", "total": "5.00"}
TOTAL = "28.80"
Pair = namedtuple("Pair", "consumer_key consumer_secret")


@pytest.fixture
def order(admin):
    """An order of 28.80: two mugs with tax, and shipping."""
    made = create(admin, line_items=[LINE], shipping_lines=[SHIPPING], status="completed")
    assert made["total"] == TOTAL
    return made


def refund(client, order, **fields):
    response = client.post(f"/orders/{order['id']}/refunds", {"order_refund": fields})
    status, body = reply(response)
    return body["order_refund"] if status == 201 else (status, body)


def refused(client, order, **fields):
    """The params that a refund is refused for."""
    status, body = refund(client, order, **fields)
    assert status == 400
    assert {entry["code"] for entry in body["errors"]} == {"shop_api_invalid_order_refund"}
    return {entry["param"]: entry["message"] for entry in body["errors"]}


def refunds_of(client, order):
    return client.get(f"/orders/{order['id']}/refunds").get_json()["order_refunds"]


@pytest.mark.both_databases
def test_refund_from_create_to_delete(admin, order):
    line = order["line_items"][0]["id"]
    item = {"id": line, "quantity": 1, "total": "10.00", "total_tax": "1.90"}
    made = refund(admin, order, reason="Broken.", line_items=[item])
    assert made == {
        "id": made["id"],
        "order_id": order["id"],
        "created_at": made["created_at"],
        "updated_at": made["created_at"],
        "amount": "11.90",
        "reason": "Broken.",
        "refunded_by": made["refunded_by"],
        "line_items": [item],
    }
    assert made["refunded_by"] > 0
    path = f"/orders/{order['id']}/refunds/{made['id']}"
    assert reply(admin.get(path)) == (200, {"order_refund": made})
    assert refunds_of(admin, order) == [made]
    body = {"order_refund": {"reason": "Returned.", "amount": "1.00"}}
    changed = admin.put(path, body).get_json()["order_refund"]
    assert (changed["reason"], changed["amount"]) == ("Returned.", "11.90")
    assert admin.delete(path).get_json() == {"message": "Permanently deleted order_refund"}
    assert refunds_of(admin, order) == []
    assert reply(admin.get(path)) == refusal("shop_api_invalid_order_refund_id")


def test_amount_is_required_and_limited(admin, order):
    assert list(refused(admin, order)) == ["order_refund.amount"]
    assert list(refused(admin, order, amount="0")) == ["order_refund.amount"]
    assert list(refused(admin, order, amount="-1")) == ["order_refund.amount"]
    assert refund(admin, order, amount="20.00")["amount"] == "20.00"
    assert "8.80" in refused(admin, order, amount="8.81")["order_refund.amount"]
    assert refund(admin, order, amount="8.80")["line_items"] == []
    assert "0.00" in refused(admin, order, amount="0.01")["order_refund.amount"]


def test_amount_may_differ_from_the_items(admin, order):
    line = order["line_items"][0]["id"]
    made = refund(admin, order, amount="3.00", line_items=[{"id": line, "quantity": 2}])
    assert made["amount"] == "3.00"
    place = "order_refund.line_items[0].quantity"
    again = refused(admin, order, amount="1.00", line_items=[{"id": line, "quantity": 1}])
    assert "between 0 and 0" in again[place]


def test_items_are_limited_to_what_is_left(admin, order):
    line, shipping = order["line_items"][0]["id"], order["shipping_lines"][0]["id"]
    errors = refused(
        admin,
        order,
        line_items=[
            {"id": line, "quantity": 3, "total": "20.01", "total_tax": "-0.01"},
            {"id": line, "total": "1.00"},
            {"id": shipping, "quantity": 2, "total": "5.00"},
            {"id": 99, "total": "1.00"},
        ],
    )
    assert set(errors) == {
        "order_refund.line_items[0].quantity",
        "order_refund.line_items[0].total",
        "order_refund.line_items[0].total_tax",
        "order_refund.line_items[1].id",
        "order_refund.line_items[2].quantity",
        "order_refund.line_items[3].id",
    }
    made = refund(admin, order, line_items=[{"id": shipping, "quantity": 1, "total": "5.00"}])
    assert made["amount"] == "5.00"


def test_tax_lines_coupon_lines_and_discounts_are_not_refunded(admin, make_coupon):
    make_coupon(code="ten", type="fixed_cart", amount="1.00")
    made = create(
        admin,
        line_items=[LINE],
        tax_lines=[{"rate_id": 1, "total": "1.00"}],
        fee_lines=[{"title": "Voucher", "total": "-2.00"}, {"title": "Gift", "total": "2.00"}],
        coupon_lines=[{"code": "ten"}],
    )
    for name in ("tax_lines", "coupon_lines"):
        item = {"id": made[name][0]["id"], "total": "0.10"}
        assert "order_refund.line_items[0].id" in refused(admin, made, line_items=[item])
    voucher, gift = (fee["id"] for fee in made["fee_lines"])
    items = [{"id": voucher, "total_tax": "0.00", "total": "0.10"}]
    assert "order_refund.line_items[0].total" in refused(admin, made, line_items=items)
    assert refund(admin, made, line_items=[{"id": gift, "total": "2.00"}])["amount"] == "2.00"


def test_wrong_types_and_the_wrapper(admin, order):
    path = f"/orders/{order['id']}/refunds"
    missing = refusal("shop_api_missing_order_refund_data")
    assert reply(admin.post(path, {})) == missing
    assert refused_params(admin.post(path, {"order_refund": {"amount": {}}})) == [
        "order_refund.amount"
    ]
    wrong = {"order_refund": {"line_items": [{"id": 1, "quantity": []}]}}
    assert refused_params(admin.post(path, wrong)) == ["order_refund.line_items[0].quantity"]


def test_full_refund_changes_the_status_with_a_note(admin, order):
    refund(admin, order, amount="28.79")
    assert read(admin, order["id"])["status"] == "completed"
    refund(admin, order, amount="0.01")
    after = read(admin, order["id"])
    assert (after["status"], after["total"]) == ("refunded", TOTAL)
    notes = admin.get(f"/orders/{order['id']}/notes").get_json()["order_notes"]
    assert notes[-1]["note"] == "Order status changed from Completed to Refunded."
    last = refunds_of(admin, order)[-1]
    admin.delete(f"/orders/{order['id']}/refunds/{last['id']}")
    assert read(admin, order["id"])["status"] == "refunded"


def test_status_refunded_records_what_is_left(admin, order):
    refund(admin, order, amount="20.00")
    change(admin, order["id"], status="refunded")
    rest = refunds_of(admin, order)[-1]
    assert (rest["amount"], rest["reason"]) == ("8.80", "Order fully refunded.")
    assert rest["line_items"] == []
    change(admin, order["id"], status="completed")
    change(admin, order["id"], status="refunded")
    assert len(refunds_of(admin, order)) == 2


def test_order_created_as_refunded_has_no_refund(admin):
    made = create(admin, line_items=[LINE], status="refunded")
    assert refunds_of(admin, made) == []


def test_update_cannot_leave_less_than_was_refunded(admin, order):
    line = order["line_items"][0]["id"]
    refund(admin, order, amount="20.00", line_items=[{"id": line, "quantity": 2, "total": "20"}])
    for item, place in (
        ({"id": line, "quantity": 1}, "order.line_items[0]"),
        ({"id": line, "total": "19.99"}, "order.line_items[0]"),
        ({"id": line, "remove": True}, "order.line_items[0]"),
    ):
        body = {"order": {"line_items": [item]}}
        response = admin.put(f"/orders/{order['id']}", body)
        status, answer = reply(response)
        assert status == 400
        found = {(entry["code"], entry["param"]) for entry in answer["errors"]}
        assert ("shop_api_invalid_order_refund", place) in found
    change(admin, order["id"], line_items=[{"id": line, "total": "21.00"}])


def test_total_cannot_become_less_than_was_refunded(admin, order):
    refund(admin, order, amount="28.80")
    shipping = order["shipping_lines"][0]["id"]
    body = {"order": {"shipping_lines": [{"id": shipping, "total": "4.00"}]}}
    status, answer = reply(admin.put(f"/orders/{order['id']}", body))
    assert (status, answer["errors"][0]["param"]) == (400, "order")


@pytest.mark.both_databases
def test_total_spent_does_not_change_with_a_refund(admin, make_customer):
    customer = make_customer()["id"]
    made = create(admin, line_items=[LINE], status="completed", customer_id=customer)
    refund(admin, made, amount="1.00")
    read_customer = admin.get(f"/customers/{customer}").get_json()["customer"]
    assert read_customer["total_spent"] == made["total"]


def test_uses_of_coupons_stay(admin, make_coupon):
    make_coupon(code="once", amount="1.00", type="fixed_cart", usage_limit=1)
    made = create(admin, line_items=[LINE], coupon_lines=[{"code": "once"}], status="completed")
    refund(admin, made, amount=made["total"])
    assert admin.get("/coupons/code/once").get_json()["coupon"]["usage_count"] == 1


def test_uses_of_coupons_are_released_by_a_setting(client_with):
    client = client_with(SHOP_REFUNDED_RELEASES_COUPONS="1")
    coupon = {"code": "once", "amount": "1.00", "type": "fixed_cart", "usage_limit": 1}
    client.post("/coupons", {"coupon": coupon})
    made = create(client, line_items=[LINE], coupon_lines=[{"code": "once"}], status="completed")
    refund(client, made, amount=made["total"])
    assert client.get("/coupons/code/once").get_json()["coupon"]["usage_count"] == 0
    create(client, line_items=[LINE], coupon_lines=[{"code": "once"}])
    body = {"order": {"status": "completed"}}
    response = client.put(f"/orders/{made['id']}", body)
    assert response.get_json()["errors"][0]["code"] == "shop_api_coupon_not_applicable"


def test_events(admin, order):
    made = refund(admin, order, amount="28.80")
    path = f"/orders/{order['id']}/refunds/{made['id']}"
    admin.put(path, {"order_refund": {"reason": "Late."}})
    admin.delete(path)
    events = admin.get("/events", {"filter[limit]": 100}).get_json()["events"]
    types = [event["type"] for event in events]
    created = types.index("order_refund.created")
    assert types[created : created + 3] == [
        "order_refund.created",
        "order.updated",
        "order_note.created",
    ]
    assert events[created]["data"] == {"order_refund": made}
    assert events[created + 1]["data"]["order"]["status"] == "refunded"
    assert types[-4:] == [
        "order_refund.updated",
        "order.updated",
        "order_refund.deleted",
        "order.updated",
    ]
    assert events[-2]["data"] == {"order_refund": {"id": made["id"]}, "permanent": True}


def test_refunds_of_an_order_in_the_trash_are_hidden_and_come_back(admin, order):
    made = refund(admin, order, amount="1.00")
    path = f"/orders/{order['id']}/refunds"
    admin.delete(f"/orders/{order['id']}")
    gone = refusal("shop_api_invalid_order_id")
    assert reply(admin.get(path)) == gone
    assert reply(admin.get(f"{path}/{made['id']}")) == gone
    assert reply(admin.delete(f"{path}/{made['id']}")) == gone
    assert admin.get("/refunds").get_json() == {"order_refunds": []}
    assert admin.get("/refunds/count").get_json() == {"count": 0}
    admin.post(f"/orders/{order['id']}/restore")
    assert admin.get("/refunds").get_json() == {"order_refunds": [made]}


@pytest.mark.both_databases
@pytest.mark.parametrize("way", ["force", "trash"])
def test_permanent_deletion_deletes_the_refunds_with_an_event_each(admin, order, way):
    ids = [refund(admin, order, amount="1.00")["id"] for _ in range(2)]
    if way == "force":
        admin.delete(f"/orders/{order['id']}?force=true")
    else:
        admin.delete(f"/orders/{order['id']}")
        admin.delete("/orders/trash?older_than_days=0")
    events = admin.get("/events", {"filter[type]": "order_refund.deleted"}).get_json()["events"]
    assert [event["data"]["order_refund"]["id"] for event in events] == ids
    assert admin.get("/refunds/count").get_json() == {"count": 0}


@pytest.mark.both_databases
def test_all_refunds_newest_first_with_filters_and_pages(admin, order):
    other = create(admin, line_items=[LINE])
    made = [refund(admin, each, amount="1.00") for each in (order, other, order)]
    found = admin.get("/refunds").get_json()["order_refunds"]
    assert [each["id"] for each in found] == [each["id"] for each in reversed(made)]
    query = {"filter[order_id]": order["id"], "filter[limit]": 1, "page": 2, "fields": "id"}
    response = admin.get("/refunds", query)
    assert response.get_json() == {"order_refunds": [{"id": made[0]["id"]}]}
    assert response.headers["X-Total"] == "2"
    never = {"filter[created_at_max]": "2001-01-01"}
    assert admin.get("/refunds/count", never).get_json() == {"count": 0}


def test_idempotency_key_and_conditions(admin, order):
    path = f"/orders/{order['id']}/refunds"
    body, headers = {"order_refund": {"amount": "1.00"}}, {"Idempotency-Key": "refund-1"}
    first = admin.post(path, body, headers=headers)
    assert admin.post(path, body, headers=headers).get_json() == first.get_json()
    one = f"{path}/{first.get_json()['order_refund']['id']}"
    tag = admin.get(one).headers["ETag"]
    change_reason = {"order_refund": {"reason": "Late."}}
    assert admin.put(one, change_reason, headers={"If-Match": tag}).status_code == 200
    stale = admin.delete(one, headers={"If-Match": tag})
    assert reply(stale) == refusal("shop_api_precondition_failed")


@pytest.mark.both_databases
def test_concurrent_refunds_never_exceed_the_total(app, admin, order):
    path, body = f"/orders/{order['id']}/refunds", {"order_refund": {"amount": "9.60"}}
    responses = at_the_same_time(
        lambda client: client.post(path, body), [Client(app, admin.key) for _ in range(8)]
    )
    assert sorted(response.status_code for response in responses) == [201] * 3 + [400] * 5
    assert read(admin, order["id"])["status"] == "refunded"


def test_order_shows_its_refunds_if_fields_names_them(admin, order, statements):
    other = create(admin, line_items=[LINE])
    made = [refund(admin, order, amount=amount, reason="Late.") for amount in ("1.00", "2.50")]
    shown = {
        "id": order["id"],
        "total_refunded": "3.50",
        "refunds": [
            {"id": each["id"], "reason": "Late.", "total": f"-{each['amount']}"} for each in made
        ],
    }
    query = {"fields": "id,total_refunded,refunds"}
    assert reply(admin.get(f"/orders/{order['id']}", query)) == (200, {"order": shown})
    del statements[:]
    page = admin.get("/orders", query).get_json()["orders"]
    none = {"id": other["id"], "total_refunded": "0.00", "refunds": []}
    assert page == [none, shown]
    assert len([each for each in statements if "order_refunds" in each]) == 1
    assert "refunds" not in read(admin, order["id"])
    strict = {"Prefer": "handling=strict"}
    assert admin.get("/orders", query, headers=strict).status_code == 200


def test_entity_tag_of_the_order_changes_with_its_refunds(admin, order):
    path = f"/orders/{order['id']}"
    tags = [admin.get(path).headers["ETag"]]
    made = refund(admin, order, amount="1.00")
    tags.append(admin.get(path).headers["ETag"])
    one = f"{path}/refunds/{made['id']}"
    admin.put(one, {"order_refund": {"reason": "Late."}})
    tags.append(admin.get(path).headers["ETag"])
    admin.delete(one)
    tags.append(admin.get(path).headers["ETag"])
    assert len(set(tags)) == 4


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_legacy_api(admin, order, version):
    path = f"/wc-api/{version}/orders/{order['id']}/refunds"
    line = order["line_items"][0]["id"]
    items = {str(line): {"qty": "1", "refund_total": 10, "refund_tax": {"1": "1.00", "2": 0.9}}}
    body = {
        "order_refund": {
            "amount": "11.90",
            "reason": "Broken.",
            "line_items": items,
            "api_refund": True,
        }
    }
    response = admin.post(path, body)
    made = response.get_json()["order_refund"]
    (refunded,) = made["line_items"]
    assert refunded["id"] > line  # the ID of the refunded item
    shown = {
        "id": refunded["id"], "subtotal": "-10.00", "subtotal_tax": "-1.90", "total": "-10.00",
        "total_tax": "-1.90", "price": "10.00", "quantity": -1, "tax_class": None, "name": "Mug",
        "product_id": None, "sku": None, "meta": [],
    } | ({"refunded_item_id": str(line)} if version == "v3" else {})  # fmt: skip
    assert (response.status_code, made) == (
        201,
        {
            "id": made["id"],
            "created_at": made["created_at"],
            "amount": "11.90",
            "reason": "Broken.",
            "line_items": [shown],
        },
    )
    assert admin.get(path).get_json() == {"order_refunds": [made]}
    assert admin.get(f"{path}/{made['id']}").get_json() == {"order_refund": made}
    body = {"order_refund": {"line_items": [{"id": line, "total": "1.00"}]}}
    assert admin.post(path, body).get_json()["order_refund"]["amount"] == "1.00"
    missing = admin.get(f"{path}/999999").get_json()["errors"][0]["code"]
    assert missing == "woocommerce_api_invalid_order_refund_id"
    assert admin.delete(f"{path}/{made['id']}").status_code == 200
    assert admin.get("/wc-api/v3/refunds").status_code == 404


def test_key_needs_the_resource_of_orders(app, admin):
    for resources, status in ((["orders"], 200), (["coupons"], 401)):
        key = {"permission": "read", "resources": resources}
        made = admin.post("/keys", {"key": key}).get_json()["key"]
        limited = Client(app, Pair(made["consumer_key"], made["consumer_secret"]))
        assert limited.get("/refunds").status_code == status
