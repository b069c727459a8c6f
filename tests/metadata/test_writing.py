"""Writing metadata: set, keep and remove keys (records 1 and 5)."""

import json

import pytest
from sqlalchemy import select

from app.db.session import db
from app.models import COUPON_METADATA, CUSTOMER_METADATA, ORDER_METADATA
from tests.api_client import at_the_same_time, refused_params, without_key
from tests.metadata.calls import KINDS, created, fields_of_new, shown, stored, updated

TABLES = {
    "coupon": (COUPON_METADATA, "coupon_id"),
    "customer": (CUSTOMER_METADATA, "customer_id"),
    "order": (ORDER_METADATA, "order_id"),
}

pytestmark = pytest.mark.parametrize("kind", KINDS)


def entries(app, kind, record_id):
    """The ID, key and value of each entry of a record, in order."""
    table, owner = TABLES[kind]
    with app.app_context(), db.engine.connect() as connection:
        rows = connection.execute(
            select(table.c.id, table.c.key, table.c.value)
            .where(table.c[owner] == record_id)
            .order_by(table.c.id)
        )
        return [tuple(row) for row in rows]


def add_entries(app, kind, record_id, *pairs, internal=False):
    """Store entries as an import does, possibly several with one key."""
    table, owner = TABLES[kind]
    with app.app_context(), db.engine.begin() as connection:
        for key, value in pairs:
            text = value if isinstance(value, str) else json.dumps(value)
            row = {owner: record_id, "key": key, "value": json.dumps(value), "internal": internal}
            connection.execute(table.insert().values(**row, found_value=text))


def test_create_stores_metadata(admin, kind):
    given = {"erp_id": "4711", "tracking": {"carrier": "dhl", "number": "00340"}}
    record = created(admin, kind, metadata=given)
    assert record["metadata"] == given
    assert stored(admin, kind, record["id"]) == given


def test_update_sets_keys_and_keeps_others(admin, kind):
    record = created(admin, kind, metadata={"a": 1, "b": [2]})
    result = updated(admin, kind, record["id"], metadata={"b": "two", "c": None, "d": False})
    assert result["metadata"] == {"a": 1, "b": "two", "d": False}
    assert stored(admin, kind, record["id"]) == {"a": 1, "b": "two", "d": False}


def test_null_removes_all_entries_of_a_key(app, admin, kind):
    record = created(admin, kind, metadata={"a": 1, "b": 2})
    add_entries(app, kind, record["id"], ("a", "again"), ("a", "and again"))
    assert updated(admin, kind, record["id"], metadata={"a": None})["metadata"] == {"b": 2}
    assert [key for _, key, _ in entries(app, kind, record["id"])] == ["b"]


@pytest.mark.both_databases
def test_setting_a_key_changes_its_first_entry_which_keeps_its_id(app, admin, kind):
    record = created(admin, kind)
    add_entries(app, kind, record["id"], ("a", "first"), ("b", "other"), ("a", "second"))
    before = entries(app, kind, record["id"])
    assert stored(admin, kind, record["id"]) == {"a": "first", "b": "other"}
    updated(admin, kind, record["id"], metadata={"a": "new"})
    after = entries(app, kind, record["id"])
    assert [row[0] for row in after] == [row[0] for row in before]
    assert [row[1:] for row in after] == [("a", '"new"'), ("b", '"other"'), ("a", '"second"')]


def test_removal_keeps_the_ids_of_other_entries(app, admin, kind):
    record = created(admin, kind, metadata={"a": 1, "b": 2, "c": 3})
    (a, _, _), (b, _, _), (c, _, _) = entries(app, kind, record["id"])
    updated(admin, kind, record["id"], metadata={"b": None, "d": 4})
    (first, _, _), (second, _, _), (third, name, _) = entries(app, kind, record["id"])
    assert (first, second, name) == (a, c, "d")
    assert a < b < c < third


@pytest.mark.both_databases
def test_ids_are_never_reused(app, admin, kind):
    record = created(admin, kind, metadata={"a": 1})
    ((last, _, _),) = entries(app, kind, record["id"])
    updated(admin, kind, record["id"], metadata={"a": None})
    updated(admin, kind, record["id"], metadata={"a": 1})
    ((again, _, _),) = entries(app, kind, record["id"])
    assert again > last


@pytest.mark.parametrize("value", [[], "text", 5, True, [{"key": "a", "value": 1}]])
def test_metadata_that_is_not_an_object_is_rejected(admin, kind, value):
    body = {kind: fields_of_new(kind) | {"metadata": value}}
    assert refused_params(admin.post(f"/{kind}s", body)) == [f"{kind}.metadata"]
    record = created(admin, kind)
    response = admin.put(f"/{kind}s/{record['id']}", {kind: {"metadata": value}})
    assert refused_params(response) == [f"{kind}.metadata"]


def test_null_means_not_supplied(admin, kind):
    record = created(admin, kind, metadata=None)
    assert "metadata" not in record
    updated(admin, kind, record["id"], metadata={"a": 1})
    assert "metadata" not in updated(admin, kind, record["id"], metadata=None)
    assert stored(admin, kind, record["id"]) == {"a": 1}


def test_null_below_a_key_is_a_value(admin, kind):
    record = created(admin, kind, metadata={"a": {"b": None}, "c": [None]})
    assert stored(admin, kind, record["id"]) == {"a": {"b": None}, "c": [None]}


def test_removal_of_an_unknown_key_does_nothing(admin, kind):
    record = created(admin, kind, metadata={"a": None})
    assert record["metadata"] == {}
    assert updated(admin, kind, record["id"], metadata={"x" * 300: None})["metadata"] == {}


def test_empty_object_is_shown_and_changes_nothing(admin, kind):
    record = created(admin, kind, metadata={})
    assert record["metadata"] == {}
    updated(admin, kind, record["id"], metadata={"a": 1})
    assert updated(admin, kind, record["id"], metadata={})["metadata"] == {"a": 1}


@pytest.mark.sample(6)
@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ('{"b": 1, "a": {"z": 1, "y": 2}}', '{"b":1,"a":{"z":1,"y":2}}'),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("1.50", "1.5"),
        ("1e3", "1000.0"),
        ("0.1000000000000000055511151231257827", "0.1"),
        ("true", "true"),
        ('"\\u00fc \\n \\""', '"ü \\n \\""'),
        ("[]", "[]"),
        ("{}", "{}"),
    ],
)
def test_value_is_returned_as_json_text(admin, kind, sent, text):
    record = created(admin, kind)
    path = f"/{kind}s/{record['id']}"
    body = f'{{"{kind}": {{"metadata": {{"a": {sent}}}}}}}'
    assert admin.put(path, data=body, content_type="application/json").status_code == 200
    assert f'"metadata":{{"a":{text}}}'.encode() in admin.get(path, {"fields": "metadata"}).data


@pytest.mark.parametrize("sent", ["9223372036854775808", "[-9223372036854775809]", "1" * 40])
def test_integer_beyond_64_bits_is_rejected(admin, kind, sent):
    record = created(admin, kind, metadata={"a": 1})
    body = f'{{"{kind}": {{"metadata": {{"a": 2, "big": {sent}}}}}}}'
    response = admin.put(f"/{kind}s/{record['id']}", data=body)
    assert response.status_code == 400
    (error,) = response.get_json()["errors"]
    assert (error["code"], error["param"]) == ("shop_api_invalid_metadata", f"{kind}.metadata.big")
    assert stored(admin, kind, record["id"]) == {"a": 1}


@pytest.mark.sample(4)
@pytest.mark.both_databases
@pytest.mark.parametrize(
    "given", [{"a\0b": 1}, {"a": "b\0"}, {"a": [{"b": ["\0"]}]}, {"a": {"\0": 1}}]
)
def test_nul_is_rejected(admin, kind, given):
    body = {kind: fields_of_new(kind) | {"metadata": given}}
    assert refused_params(admin.post(f"/{kind}s", body)) == [f"{kind}.metadata"]


def test_deeply_nested_value_is_rejected(admin, kind):
    nested = 1
    for _ in range(101):
        nested = [nested]
    response = admin.post(f"/{kind}s", {kind: fields_of_new(kind) | {"metadata": {"deep": nested}}})
    (error,) = response.get_json()["errors"]
    assert (error["code"], error["param"]) == ("shop_api_invalid_metadata", f"{kind}.metadata.deep")
    record = created(admin, kind, metadata={"deep": nested[0]})
    assert stored(admin, kind, record["id"]) == {"deep": nested[0]}


def test_update_of_metadata_alone_changes_updated_at_and_the_entity_tag(app, admin, kind):
    record = created(admin, kind)
    tags = []
    for given in ({"a": 1}, {"a": 2}, {"a": None}, {"a": 1}):
        updated(admin, kind, record["id"], metadata=given)
        tags.append(admin.get(f"/{kind}s/{record['id']}").headers["ETag"])
    assert len(set(tags)) == 4


def test_entity_tag_is_that_of_a_read_without_metadata(admin, kind):
    record = created(admin, kind, metadata={"a": 1})
    path = f"/{kind}s/{record['id']}"
    tag = admin.get(path).headers["ETag"]
    assert admin.get(path, {"filter[meta]": "true"}).headers["ETag"] == tag
    headers = {"If-Match": tag}
    assert admin.put(path, {kind: {"metadata": {"a": 2}}}, headers=headers).status_code == 200
    assert admin.put(path, {kind: {"metadata": {"a": 3}}}, headers=headers).status_code == 412
    assert stored(admin, kind, record["id"]) == {"a": 2}


def test_deleting_a_record_deletes_its_metadata(app, admin, kind):
    record = created(admin, kind, metadata={"a": 1})
    assert admin.delete(f"/{kind}s/{record['id']}", {"force": "true"}).status_code == 200
    assert entries(app, kind, record["id"]) == []


@pytest.mark.both_databases
def test_concurrent_writes_of_different_keys_are_both_kept(admin, kind):
    record = created(admin, kind, metadata={"start": 0})
    names = [f"key-{number}" for number in range(8)]
    answers = at_the_same_time(
        lambda name: updated(admin, kind, record["id"], metadata={name: name}), names
    )
    assert len(answers) == 8
    assert stored(admin, kind, record["id"]) == {"start": 0} | {name: name for name in names}


@pytest.mark.both_databases
def test_concurrent_writes_of_one_new_key_leave_one_entry(app, admin, kind):
    record = created(admin, kind)
    at_the_same_time(
        lambda value: updated(admin, kind, record["id"], metadata={"a": value}), range(8)
    )
    assert len(entries(app, kind, record["id"])) == 1


def test_write_clears_the_internal_flag(app, admin, kind):
    record = created(admin, kind)
    add_entries(app, kind, record["id"], ("_price", 1), ("_kept", 1), internal=True)
    updated(admin, kind, record["id"], metadata={"_price": 2})
    table, _ = TABLES[kind]
    with app.app_context(), db.engine.connect() as connection:
        rows = connection.execute(select(table.c.key, table.c.internal).order_by(table.c.id))
        assert [tuple(row) for row in rows] == [("_price", False), ("_kept", True)]


def test_event_contains_metadata_if_the_request_wrote_it(admin, kind):
    record = created(admin, kind, metadata={"a": 1})
    updated(admin, kind, record["id"], metadata={"b": 2})
    change = {
        "coupon": {"description": "x"},
        "customer": {"first_name": "x"},
        "order": {"note": "x"},
    }
    updated(admin, kind, record["id"], **change[kind])
    events = admin.get("/events", {"filter[resource]": kind}).get_json()["events"]
    data = [event["data"][kind] for event in events]
    assert [each.get("metadata") for each in data] == [{"a": 1}, {"a": 1, "b": 2}, None]
    assert [list(each)[-1] for each in data[:2]] == [
        "customer" if kind == "order" else "metadata"
    ] * 2


def test_bulk_items_write_metadata_and_fail_alone(admin, kind):
    record = created(admin, kind, metadata={"a": 1, "b": 1})
    items = [
        fields_of_new(kind) | {"metadata": {"n": 1}},
        {"id": record["id"], "metadata": {"a": 2}},
        fields_of_new(kind) | {"metadata": {"": 1}},
        {"id": record["id"], "metadata": {"b": 2, "x" * 256: 1}},
        fields_of_new(kind) | {"metadata": {"n": 2}},
        {"id": record["id"], "metadata": {"b": None}},
        fields_of_new(kind) | {"metadata": []},
        {"id": record["id"], "metadata": None},
    ]
    results = admin.post(f"/{kind}s/bulk", {f"{kind}s": items}).get_json()[f"{kind}s"]
    assert [each.get("metadata") for each in results] == [
        {"n": 1}, {"a": 2, "b": 1}, None, None, {"n": 2}, {"a": 2}, None, None,
    ]  # fmt: skip
    codes = [each["error"]["code"] for each in results if "error" in each]
    assert codes == ["shop_api_invalid_metadata"] * 2 + ["shop_api_invalid_param"]
    assert stored(admin, kind, record["id"]) == {"a": 2}
    assert stored(admin, kind, results[0]["id"]) == {"n": 1}
    assert stored(admin, kind, results[4]["id"]) == {"n": 2}


@pytest.mark.sample(3)
@pytest.mark.parametrize("value", ["new", None])
def test_bulk_request_needs_at_most_two_statements_more(admin, kind, statements, value):
    ids = [created(admin, kind, metadata={"a": 1, "b": 2})["id"] for _ in range(5)]
    change = {
        "coupon": {"description": "x"},
        "customer": {"first_name": "x"},
        "order": {"note": "x"},
    }

    def number(**more):
        statements.clear()
        items = [{"id": record_id} | change[kind] | more for record_id in ids]
        admin.post(f"/{kind}s/bulk", {f"{kind}s": items})
        return len(without_key(statements))  # slow machines look it up again

    number()
    change[kind] = dict.fromkeys(change[kind], "y")
    without = number()
    change[kind] = dict.fromkeys(change[kind], "z")
    assert number(metadata={"a": value, "c": 3}) - without == 2
    wanted = {"a": value, "b": 2, "c": 3} if value else {"b": 2, "c": 3}
    assert all(stored(admin, kind, record_id) == wanted for record_id in ids)


def test_strict_request_accepts_any_key(admin, kind):
    headers = {"Prefer": "handling=strict"}
    body = {kind: fields_of_new(kind) | {"metadata": {"any key": {"x": 1}}}}
    response = admin.post(f"/{kind}s", body, headers=headers)
    assert response.status_code == 201
    assert shown(admin, kind, response.get_json()[kind]["id"], fields="metadata") == {
        "metadata": {"any key": {"x": 1}}
    }
