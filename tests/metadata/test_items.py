"""Metadata of items of orders (records 1 and 5)."""

import pytest
from sqlalchemy import func, select

from app.db.session import db
from app.models import ITEM_METADATA
from tests.api_client import without_key
from tests.metadata.calls import created, shown, updated

META = {"filter[meta]": "true"}
LINE = {"name": "Mug", "price": "4.00"}
LISTS = {
    "line_items": LINE,
    "shipping_lines": {"method_id": "flat_rate"},
    "fee_lines": {"title": "Fee", "total": "1.00"},
    "tax_lines": {"title": "Tax"},
    "coupon_lines": {"code": "summer", "amount": "1.00"},
}


def number_of_entries(app):
    with app.app_context(), db.engine.connect() as connection:
        return connection.scalar(select(func.count()).select_from(ITEM_METADATA))


@pytest.mark.parametrize("name", LISTS)
def test_every_item_has_metadata(admin, name):
    order = created(admin, "order", **{name: [LISTS[name] | {"metadata": {"a": {"b": 1}}}]})
    assert "metadata" not in order
    (item,) = order[name]
    assert list(item)[-1] == "metadata"
    assert item["metadata"] == {"a": {"b": 1}}
    (read,) = shown(admin, "order", order["id"])[name]
    assert read | {"metadata": {"a": {"b": 1}}} == item
    assert "metadata" not in read
    assert shown(admin, "order", order["id"], **META)[name] == [item]
    assert shown(admin, "order", order["id"], fields=f"{name}.metadata") == {
        name: [{"metadata": {"a": {"b": 1}}}]
    }
    assert shown(admin, "order", order["id"], fields=f"{name}.id,{name}.metadata.a") == {
        name: [{"id": item["id"], "metadata": {"a": {"b": 1}}}]
    }
    assert shown(admin, "order", order["id"], fields=f"{name}.metadata.b") == {
        name: [{"metadata": {}}]
    }


@pytest.mark.both_databases
def test_update_changes_the_metadata_of_items(app, admin):
    lines = [LINE | {"metadata": {"a": 1, "b": 2}}, LINE]
    order = created(admin, "order", line_items=lines, fee_lines=[LISTS["fee_lines"]])
    first, second = (line["id"] for line in order["line_items"])
    changed = updated(
        admin,
        "order",
        order["id"],
        line_items=[{"id": first, "metadata": {"a": None, "c": 3}}, LINE | {"metadata": {"n": 1}}],
    )
    assert [line["metadata"] for line in changed["line_items"]] == [{"b": 2, "c": 3}, {}, {"n": 1}]
    assert [line["metadata"] for line in changed["fee_lines"]] == [{}]
    assert changed == shown(admin, "order", order["id"]) | {name: changed[name] for name in LISTS}
    result = updated(admin, "order", order["id"], line_items=[{"id": second, "quantity": 2}])
    assert "metadata" not in result["line_items"][0]
    stored = shown(admin, "order", order["id"], **META)["line_items"]
    assert [line["metadata"] for line in stored] == [{"b": 2, "c": 3}, {}, {"n": 1}]


@pytest.mark.parametrize("change", [{"remove": True}, {"quantity": 0}])
def test_removal_of_an_item_removes_its_metadata(app, admin, change):
    lines = [LINE | {"metadata": {"a": 1}}, LINE | {"metadata": {"b": 2}}]
    order = created(admin, "order", line_items=lines)
    first, second = (line["id"] for line in order["line_items"])
    updated(admin, "order", order["id"], line_items=[{"id": first} | change])
    assert number_of_entries(app) == 1
    changes = [{"id": second, "metadata": {"b": None, "c": 3}}]
    updated(admin, "order", order["id"], line_items=changes)
    (line,) = shown(admin, "order", order["id"], **META)["line_items"]
    assert line["metadata"] == {"c": 3}
    admin.delete(f"/orders/{order['id']}", {"force": "true"})
    assert number_of_entries(app) == 0


def test_removal_together_with_a_change(app, admin):
    lines = [LINE | {"metadata": {"a": 1}}, LINE | {"metadata": {"b": 2, "d": 4}}]
    order = created(admin, "order", line_items=lines)
    first, second = (line["id"] for line in order["line_items"])
    changes = [{"id": first, "remove": True}, {"id": second, "metadata": {"b": None}}]
    (line,) = updated(admin, "order", order["id"], line_items=changes)["line_items"]
    assert line["metadata"] == {"d": 4}
    assert number_of_entries(app) == 1


@pytest.mark.both_databases
def test_rejected_removal_of_an_item_keeps_its_metadata(admin):
    lines = [LINE | {"metadata": {"a": 1, "b": 2}}, LINE]
    order = created(admin, "order", line_items=lines, metadata={"c": 3, "d": 4})
    removal = {"line_items": [{"id": order["line_items"][0]["id"], "remove": True}]}
    item = {"id": order["id"], "status": "unknown", "metadata": {"c": None}, **removal}
    before = shown(admin, "order", order["id"], **META)
    (failed,) = admin.post("/orders/bulk", {"orders": [item]}).get_json()["orders"]
    assert failed["error"]["code"] == "shop_api_invalid_order_status"
    assert shown(admin, "order", order["id"], **META) == before


def test_item_with_the_limits_of_a_record(admin):
    lines = [LINE, LINE | {"metadata": {"a": 1, "x" * 256: 2}}]
    response = admin.post("/orders", {"order": {"line_items": lines}})
    (error,) = response.get_json()["errors"]
    assert error["code"] == "shop_api_invalid_metadata"
    assert error["param"] == f"order.line_items[1].metadata.{'x' * 256}"
    assert admin.get("/orders/count").get_json() == {"count": 0}
    lines[1]["metadata"] = []
    response = admin.post("/orders", {"order": {"line_items": lines}})
    assert response.get_json()["errors"][0]["param"] == "order.line_items[1].metadata"


def test_change_of_metadata_of_an_item_changes_the_entity_tag(admin):
    order = created(admin, "order", line_items=[LINE])
    line_id = order["line_items"][0]["id"]
    tags = []
    for given in ({"a": 1}, {"a": 2}, {"a": None}):
        updated(admin, "order", order["id"], line_items=[{"id": line_id, "metadata": given}])
        tags.append(admin.get(f"/orders/{order['id']}").headers["ETag"])
    assert len(set(tags)) == 3


def test_event_contains_the_metadata_of_items(admin):
    order = created(admin, "order", line_items=[LINE | {"metadata": {"a": 1}}])
    updated(admin, "order", order["id"], note="x")
    events = admin.get("/events", {"filter[resource]": "order"}).get_json()["events"]
    first, second = (event["data"]["order"]["line_items"][0] for event in events)
    assert first["metadata"] == {"a": 1}
    assert "metadata" not in second


@pytest.mark.both_databases
def test_page_reads_metadata_of_orders_and_items_with_one_statement(admin, statements):
    for number in range(3):
        item = LINE | {"metadata": {"item": number}}
        created(admin, "order", metadata={"order": number}, line_items=[item])

    def number(**query):
        statements.clear()
        orders = admin.get("/orders", query).get_json()["orders"]
        return len(without_key(statements)), orders

    number()
    plain, _ = number()
    with_metadata, orders = number(**META)
    assert with_metadata == plain + 1
    shown_metadata = [(each["metadata"], each["line_items"][0]["metadata"]) for each in orders]
    assert shown_metadata == [({"order": n}, {"item": n}) for n in (2, 1, 0)]


def test_failed_item_of_a_bulk_request_changes_nothing(admin):
    bad = LINE | {"metadata": {"": 1}}
    items = [
        {"metadata": {"a": 1}, "line_items": [LINE | {"metadata": {"b": 1}}, bad]},
        {"line_items": [LINE | {"metadata": {"c": 1}}]},
    ]
    failed, done = admin.post("/orders/bulk", {"orders": items}).get_json()["orders"]
    assert failed["error"]["code"] == "shop_api_invalid_metadata"
    assert "metadata" not in done
    order = shown(admin, "order", done["id"], **META)
    assert (order["metadata"], order["line_items"][0]["metadata"]) == ({}, {"c": 1})


def test_meta_of_a_line_stays_its_own_list(admin):
    meta = [{"key": "colour", "label": "Colour", "value": "red"}]
    order = created(admin, "order", line_items=[LINE | {"meta": meta, "metadata": {"a": 1}}])
    (line,) = order["line_items"]
    assert (line["meta"], line["metadata"]) == (meta, {"a": 1})
