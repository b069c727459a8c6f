"""Metadata of refunds and of their items (records 2 and 5)."""

import json

import pytest
from sqlalchemy import select

from app.db.read_pool import fetch
from app.models import ITEM_METADATA, REFUND_METADATA
from tests.api_client import reply, without_key
from tests.commands import succeed
from tests.metadata.calls import bracketed
from tests.orders.calls import create

LINE = {"name": "Mug", "quantity": 4, "price": "10.00"}


@pytest.fixture
def order(admin):
    return create(admin, line_items=[LINE, LINE], status="completed")


def refund(client, order, **fields):
    status, body = reply(client.post(f"/orders/{order['id']}/refunds", {"order_refund": fields}))
    assert status == 201, body
    return body["order_refund"]


def shown(client, made, **query):
    path = f"/orders/{made['order_id']}/refunds/{made['id']}"
    status, body = reply(client.get(path, query))
    assert status == 200, body
    return body["order_refund"]


def items(order, **fields):
    return [{"id": line["id"], "total": "1.00"} | fields for line in order["line_items"]]


def test_written_metadata_is_in_the_response_and_in_no_plain_read(admin, order):
    made = refund(admin, order, amount="1.00", metadata={"rma": "R-1", "n": 2})
    assert made["metadata"] == {"rma": "R-1", "n": 2}
    assert [*made][-1] == "metadata"
    plain = shown(admin, made)
    assert "metadata" not in plain
    assert "metadata" not in plain["line_items"]
    assert shown(admin, made, **{"filter[meta]": "true"})["metadata"] == made["metadata"]
    assert shown(admin, made, fields="id,metadata.rma") == {
        "id": made["id"], "metadata": {"rma": "R-1"},
    }  # fmt: skip


def test_update_sets_and_removes_keys_and_changes_the_entity_tag(admin, order):
    made = refund(admin, order, amount="1.00", metadata={"rma": "R-1", "gone": 1})
    path = f"/orders/{order['id']}/refunds/{made['id']}"
    tag = admin.get(path).headers["ETag"]
    of_order = admin.get(f"/orders/{order['id']}").headers["ETag"]
    body = {"order_refund": {"metadata": {"gone": None, "new": [1]}}}
    status, changed = reply(admin.put(path, body, headers={"If-Match": tag}))
    assert (status, changed["order_refund"]["metadata"]) == (200, {"rma": "R-1", "new": [1]})
    assert admin.get(path).headers["ETag"] != tag
    assert admin.get(f"/orders/{order['id']}").headers["ETag"] != of_order
    assert (
        admin.get(path, {"filter[meta]": "true"}).headers["ETag"]
        == (admin.get(path).headers["ETag"])
    )
    assert admin.put(path, body, headers={"If-Match": tag}).status_code == 412


def test_items_have_metadata(admin, order):
    given = items(order)
    given[1]["metadata"] = {"shelf": "B7"}
    made = refund(admin, order, line_items=given)
    assert [item["metadata"] for item in made["line_items"]] == [{}, {"shelf": "B7"}]
    read = shown(admin, made, **{"filter[meta]": "true"})
    assert [item["metadata"] for item in read["line_items"]] == [{}, {"shelf": "B7"}]
    chosen = shown(admin, made, fields="line_items.total,line_items.metadata.shelf")
    assert chosen["line_items"][1] == {"total": "1.00", "metadata": {"shelf": "B7"}}
    # The item of the order has metadata of its own.
    of_order = admin.get(f"/orders/{order['id']}", {"filter[meta]": "true"}).get_json()["order"]
    assert [line["metadata"] for line in of_order["line_items"]] == [{}, {}]


def test_deleting_a_refund_deletes_its_metadata(app, admin, order):
    given = items(order, metadata={"a": 1})
    made = refund(admin, order, line_items=given, metadata={"b": 2})
    admin.delete(f"/orders/{order['id']}/refunds/{made['id']}")
    with app.app_context():
        assert not fetch(select(REFUND_METADATA.c.id))
        assert not fetch(select(ITEM_METADATA.c.id))


@pytest.mark.both_databases
def test_filter_finds_refunds(admin, order):
    one = refund(admin, order, amount="1.00", metadata={"rma": "R-1"})
    refund(admin, order, amount="1.00", metadata={"rma": "r-1"})
    query = bracketed(rma="R-1")
    found = admin.get("/refunds", query).get_json()["order_refunds"]
    assert [each["id"] for each in found] == [one["id"]]
    assert admin.get("/refunds/count", query).get_json() == {"count": 1}
    flat = {"filter[metadata_key]": "rma"}
    assert admin.get("/refunds/count", flat).get_json() == {"count": 2}
    admin.delete(f"/orders/{order['id']}")
    assert admin.get("/refunds/count", flat).get_json() == {"count": 0}


def test_limits_hold(admin, order):
    path = f"/orders/{order['id']}/refunds"
    large = {"amount": "1.00", "metadata": {"k": "x" * 65_536}}
    status, body = reply(admin.post(path, {"order_refund": large}))
    assert (status, body["errors"][0]["code"]) == (400, "shop_api_invalid_metadata")
    assert body["errors"][0]["param"] == "order_refund.metadata.k"
    given = items(order)
    given[0]["metadata"] = {"": 1}
    status, body = reply(admin.post(path, {"order_refund": {"line_items": given}}))
    assert body["errors"][0]["param"] == "order_refund.line_items[0].metadata"
    assert admin.get(path).get_json() == {"order_refunds": []}


def test_events_contain_the_written_metadata(admin, order):
    made = refund(admin, order, line_items=items(order, metadata={"i": 1}), metadata={"a": 1})
    path = f"/orders/{order['id']}/refunds/{made['id']}"
    admin.put(path, {"order_refund": {"reason": "Late."}})
    query = {"filter[resource]": "order_refund"}
    first, second = (
        event["data"]["order_refund"] for event in admin.get("/events", query).get_json()["events"]
    )
    assert first == made
    assert "metadata" not in second
    assert all("metadata" not in item for item in second["line_items"])


def test_erasure_empties_metadata_of_refunds_in_events(admin, make_customer):
    customer = make_customer()
    order = create(admin, line_items=[LINE, LINE], customer_id=customer["id"])
    refund(admin, order, line_items=items(order, metadata={"i": 1}), metadata={"who": "Ada"})
    admin.delete(f"/customers/{customer['id']}")
    query = {"filter[resource]": "order_refund"}
    (event,) = admin.get("/events", query).get_json()["events"]
    assert event["data"]["order_refund"]["metadata"] == {}
    assert [each["metadata"] for each in event["data"]["order_refund"]["line_items"]] == [{}, {}]


def test_page_reads_metadata_with_one_statement(admin, order, statements):
    for _ in range(3):
        refund(admin, order, line_items=items(order, metadata={"i": 1}), metadata={"a": 1})
    admin.get("/refunds")
    statements.clear()
    admin.get("/refunds")
    plain = len(without_key(statements))
    statements.clear()
    found = admin.get("/refunds", {"filter[meta]": "true"}).get_json()["order_refunds"]
    assert len(without_key(statements)) == plain + 1
    assert all(each["metadata"] == {"a": 1} for each in found)


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_legacy_api_neither_takes_nor_shows_it(admin, order, version):
    mount = f"/wc-api/{version}/orders/{order['id']}/refunds"
    body = {"order_refund": {"amount": "1.00", "metadata": {"a": 1}}}
    status, made = reply(admin.post(mount, body))
    assert status == 201
    assert "metadata" not in made["order_refund"]
    (stored,) = admin.get("/refunds", {"filter[meta]": "true"}).get_json()["order_refunds"]
    assert stored["metadata"] == {}


def test_export_and_restore_keep_it(app, admin, order, tmp_path, make_app, migrated_database_url):
    refund(admin, order, line_items=items(order, metadata={"i": [1]}), metadata={"a": {"z": 1}})
    files = [tmp_path / f"{kind}.ndjson" for kind in ("customers", "orders", "refunds")]
    for path in files:
        succeed(app, "export", path.stem, path)
    other = make_app(DATABASE_URL=migrated_database_url)
    succeed(other, "import", "--restore", *files)
    again = tmp_path / "again.ndjson"
    succeed(other, "export", "refunds", again)
    assert again.read_bytes() == files[-1].read_bytes()
    record = json.loads(again.read_text())
    assert record["metadata"][0]["value"] == {"z": 1}
    assert record["line_items"][0]["metadata"][0]["value"] == [1]
    succeed(app, "export", "refunds", "--filter", "metadata[a]=x", tmp_path / "none")
    assert not (tmp_path / "none").read_text()


def test_strict_request_accepts_metadata(admin, order):
    strict = {"Prefer": "handling=strict"}
    body = {"order_refund": {"amount": "1.00", "metadata": {"any": 1}}}
    path = f"/orders/{order['id']}/refunds"
    assert admin.post(path, body, headers=strict).status_code == 201
    assert admin.get(path, {"fields": "metadata.any"}, headers=strict).status_code == 200
