"""Metadata in exports, restores, copies, imports, deliveries and after an erasure (records 5)."""

import csv
import json

import pytest
from sqlalchemy import select

from app.catalog import current_catalog
from app.db.read_pool import fetch
from app.db.session import db
from app.models import COUPON_METADATA, CUSTOMER_METADATA, ITEM_METADATA, ORDER_METADATA
from app.services.maintenance.database_copy import tables
from app.services.orders import redemptions
from tests.commands import succeed
from tests.metadata.calls import KINDS, created, shown, stored, updated

LINE = {"name": "Mug", "price": "4.00"}
TABLES = (COUPON_METADATA, CUSTOMER_METADATA, ORDER_METADATA, ITEM_METADATA)


@pytest.fixture
def shop(app, admin):
    """A shop with metadata of every kind, some of it as an import leaves it."""
    coupon = created(admin, "coupon", code="a", metadata={"erp": "4711", "gone": 1, "o": {"b": 1}})
    updated(admin, "coupon", coupon["id"], metadata={"gone": None, "n": 1.5})
    created(admin, "customer", metadata={"erp": "x", "ü": [None, "ü", {"z": 1, "a": 2}]})
    created(admin, "order", metadata={"e": ""}, line_items=[LINE, LINE | {"metadata": {"i": 1}}])
    with app.app_context(), db.engine.begin() as connection:
        row = {"coupon_id": coupon["id"], "key": "erp", "value": '"again"', "found_value": "again"}
        connection.execute(COUPON_METADATA.insert().values(internal=True, **row))
    return coupon


def rows():
    """All entries of a shop."""
    return {
        table.name: [tuple(row) for row in fetch(select(table).order_by(table.c.id))]
        for table in TABLES
    }


@pytest.mark.both_databases
def test_export_contains_all_entries_with_ids(app, admin, shop, tmp_path):
    path = tmp_path / "coupons.ndjson"
    succeed(app, "export", "coupons", path)
    entries = json.loads(path.read_text())["metadata"]
    assert [(each["key"], each["value"], each["internal"]) for each in entries] == [
        ("erp", "4711", False), ("o", {"b": 1}, False), ("n", 1.5, False), ("erp", "again", True),
    ]  # fmt: skip
    with app.app_context():
        assert [each["id"] for each in entries] == [row[0] for row in rows()["coupon_metadata"]]


@pytest.mark.slow
@pytest.mark.both_databases
def test_restore_brings_all_entries_with_ids(app, shop, tmp_path, make_app, migrated_database_url):
    path = tmp_path / "all.ndjson"
    succeed(app, "export", "all", path)
    with app.app_context():
        before = rows()
    other = make_app(DATABASE_URL=migrated_database_url)
    succeed(other, "import", "--restore", path)
    with other.app_context():
        assert rows() == before
    again = tmp_path / "again.ndjson"
    succeed(other, "export", "all", again)
    assert again.read_bytes() == path.read_bytes()
    with other.app_context(), db.engine.begin() as connection:
        row = {"coupon_id": shop["id"], "key": "new", "value": "1"}
        inserted = connection.execute(COUPON_METADATA.insert().values(row))
        assert inserted.inserted_primary_key[0] > before["coupon_metadata"][-1][0]


def test_csv_has_one_column_with_json(app, shop, tmp_path):
    path = tmp_path / "coupons.csv"
    succeed(app, "export", "coupons", path)
    with path.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert [each["key"] for each in json.loads(row["metadata"])] == ["erp", "o", "n", "erp"]


@pytest.mark.parametrize("name", ["coupons.ndjson", "coupons.csv"])
def test_exported_file_is_imported_with_the_first_value_of_each_key(
    app, admin, shop, tmp_path, name
):
    path = tmp_path / name
    succeed(app, "export", "coupons", path)
    admin.delete(f"/coupons/{shop['id']}", {"force": "true"})
    succeed(app, "import", "coupons", path)
    coupon = admin.get("/coupons/code/a", {"filter[meta]": "true"}).get_json()["coupon"]
    assert coupon["metadata"] == {"erp": "4711", "o": {"b": 1}, "n": 1.5}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "given", [["metadata[erp]=4711"], ["metadata_key=erp", "metadata_value=4711"]]
)
def test_export_is_filtered(app, admin, tmp_path, kind, given):
    wanted = created(admin, kind, metadata={"erp": "4711", "a": 1})["id"]
    created(admin, kind, metadata={"erp": "4712"})
    path = tmp_path / "found.ndjson"
    filters = [part for each in [*given, "metadata[a]=1"] for part in ("--filter", each)]
    succeed(app, "export", f"{kind}s", path, *filters)
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == [wanted]


@pytest.mark.both_databases
def test_erasure_empties_metadata_in_events(admin):
    customer = created(admin, "customer", metadata={"consent": "yes"})
    order = created(
        admin, "order", customer_id=customer["id"], metadata={"a": {"b": "x"}},
        line_items=[LINE | {"metadata": {"engraving": "Ann"}}],
    )  # fmt: skip
    headers = {"Idempotency-Key": "k"}
    body = {"order": {"customer_id": customer["id"], "metadata": {"a": 1}}}
    admin.post("/orders", body, headers=headers)
    assert admin.delete(f"/customers/{customer['id']}").status_code == 200
    events = admin.get("/events").get_json()["events"]
    data = [event["data"] for event in events if not event["type"].endswith("deleted")]
    assert [next(iter(each.values()))["metadata"] for each in data] == [{}, {}, {}]
    assert data[1]["order"]["line_items"][0]["metadata"] == {}
    again = admin.post("/orders", body, headers=headers).get_json()["order"]
    assert again["metadata"] == {}
    whole = shown(admin, "order", order["id"], **{"filter[meta]": "true"})
    assert whole["metadata"] == {"a": {"b": "x"}}
    assert whole["line_items"][0]["metadata"] == {"engraving": "Ann"}


def test_legacy_delivery_has_no_metadata(app, admin):
    created(admin, "order", metadata={"a": 1}, line_items=[LINE | {"metadata": {"b": 1}}])
    (event,) = admin.get("/events").get_json()["events"]
    event |= {"id": None, "data": json.dumps(event["data"])}
    with app.app_context():
        (sent,) = current_catalog().webhook_forms["legacy"].bodies([event])
    order = json.loads(sent)["order"]
    assert "metadata" not in order
    assert "metadata" not in order["line_items"][0]
    assert list(order)[-1] == "customer"


@pytest.mark.both_databases
def test_copy_of_a_database_contains_metadata(app, admin, shop):
    with app.app_context():
        assert {table.name for table in TABLES} <= {table.name for table in tables()}


def test_hooks_and_generated_coupons_are_unaffected(admin):
    body = {"generate": {"count": 1, "coupon": {"metadata": {"a": 1}}}}
    response = admin.post("/coupons/generate", body)
    assert response.status_code == 400
    assert stored(admin, "coupon", created(admin, "coupon")["id"]) == {}


@pytest.fixture
def last_use_is_taken(monkeypatch):
    """Let another request take the last use of a coupon while an order is written, once."""
    take_slot, taken = redemptions.take_slot, []

    def take(*args, **options):
        if not taken:
            taken.append(True)
            raise redemptions.CouponRefused("spring", [redemptions.NOT_FOUND], options["param"])
        return take_slot(*args, **options)

    monkeypatch.setattr(redemptions, "take_slot", take)


def with_coupon(make_coupon):
    """An order with metadata, also of an item, and a coupon with a limit."""
    line = {"code": make_coupon(usage_limit=1)["code"]}
    item = LINE | {"metadata": {"colour": "red"}}
    return {"coupon_lines": [line], "line_items": [item], "metadata": {"source": "rejected"}}


def test_rejected_order_leaves_no_metadata(app, admin, make_coupon, last_use_is_taken):
    response = admin.post("/orders", {"order": with_coupon(make_coupon)})
    assert response.status_code == 400
    with app.app_context():
        assert not any(rows().values())


def test_rejected_order_does_not_give_its_metadata_to_the_next_one(
    app, admin, make_coupon, last_use_is_taken
):
    orders = [with_coupon(make_coupon), {"line_items": [LINE]}]
    rejected, accepted = admin.post("/orders/bulk", {"orders": orders}).get_json()["orders"]
    assert "error" in rejected
    assert stored(admin, "order", accepted["id"]) == {}
    with app.app_context():
        assert not any(rows().values())


def test_rejected_update_keeps_the_metadata(admin, make_coupon):
    code = make_coupon(usage_limit_per_user=1)["code"]
    for email in ("ada@example.com", "alan@example.com"):
        new = {"billing_address": {"email": email}, "coupon_lines": [{"code": code}]}
        order = created(admin, "order", **new, metadata={"source": email})
    change = {"billing_address": {"email": "ada@example.com"}, "metadata": {"source": "changed"}}
    items = [{"id": order["id"], **change}, {"id": order["id"], "note": "accepted"}]
    rejected, _ = admin.put("/orders/bulk", {"orders": items}).get_json()["orders"]
    assert "error" in rejected
    assert stored(admin, "order", order["id"]) == {"source": "alan@example.com"}
