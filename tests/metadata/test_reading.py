"""Which responses contain metadata (records 1 and 5)."""

import pytest

from app.db.session import db
from app.models import ORDER_METADATA
from tests.api_client import refused_params, without_key
from tests.metadata.calls import KINDS, created, shown, updated

META = {"filter[meta]": "true"}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def last(kind):
    """The last keys of a record with metadata."""
    return ["metadata", "customer"] if kind == "order" else ["metadata"]


def test_responses_stay_as_they_are(admin, kind):
    record = created(admin, kind, metadata={"a": 1})
    for body in (
        shown(admin, kind, record["id"]),
        admin.get(f"/{kind}s").get_json()[f"{kind}s"][-1],
        shown(admin, kind, record["id"], **{"filter[meta]": "false"}),
        shown(admin, kind, record["id"], **{"filter[meta]": ""}),
    ):
        assert "metadata" not in body
    change = {
        "coupon": {"description": "x"},
        "customer": {"first_name": "x"},
        "order": {"note": "x"},
    }
    assert "metadata" not in updated(admin, kind, record["id"], **change[kind])


def test_meta_adds_metadata_as_the_last_key(admin, kind):
    record = created(admin, kind, metadata={"a": 1})
    plain = shown(admin, kind, record["id"])
    whole = shown(admin, kind, record["id"], **META)
    assert list(whole)[-len(last(kind)) :] == last(kind)
    assert whole.pop("metadata") == {"a": 1}
    if kind == "order":
        assert all(item.pop("metadata") == {} for item in whole["line_items"])
    assert whole == plain
    assert list(record)[-len(last(kind)) :] == last(kind)


def test_fields_name_metadata_and_its_keys(admin, kind):
    metadata = {"erp_id": "4711", "a.b": 1, "c": {"d": 1}}
    record_id = created(admin, kind, metadata=metadata)["id"]

    def fields(names, **more):
        return shown(admin, kind, record_id, fields=names, **more)

    assert fields("metadata,id") == {"id": record_id, "metadata": metadata}
    assert list(fields("metadata,id")) == ["id", "metadata"]
    assert fields(" metadata ") == {"metadata": metadata}
    assert fields("metadata.erp_id") == {"metadata": {"erp_id": "4711"}}
    assert fields("metadata.a.b,metadata.c") == {"metadata": {"a.b": 1, "c": {"d": 1}}}
    assert fields("id,metadata.unknown") == {"id": record_id, "metadata": {}}
    assert fields("metadata.c,metadata") == {"metadata": metadata}
    assert fields("id", **META) == {"id": record_id, "metadata": metadata}
    assert fields("id") == {"id": record_id}


def test_record_without_metadata_has_an_empty_object(admin, kind):
    record_id = created(admin, kind)["id"]
    assert shown(admin, kind, record_id, **META)["metadata"] == {}


def test_strict_selection(admin, kind):
    record_id = created(admin, kind, metadata={"a": 1})["id"]
    headers = {"Prefer": "handling=strict"}
    path = f"/{kind}s/{record_id}"
    response = admin.get(path, {"fields": "id,metadata.any.key"}, headers=headers)
    assert response.get_json()[kind] == {"id": record_id, "metadata": {}}
    response = admin.get(path, {"fields": "id,metadat"}, headers=headers)
    assert refused_params(response) == ["fields"]
    assert "did you mean 'metadata'" in response.get_json()["errors"][0]["message"]


def test_page_reads_metadata_with_one_statement(admin, kind, statements):
    for number in range(12):
        created(admin, kind, metadata={"number": number})
    path, query = f"/{kind}s", {"filter[limit]": 20, "filter[orderby]": "id"}

    def number(**more):
        statements.clear()
        records = admin.get(path, query | more).get_json()[f"{kind}s"]
        return len(without_key(statements)), records

    number()
    plain, _ = number()
    for more in (META, {"fields": "id,metadata"}):
        with_metadata, records = number(**more)
        assert with_metadata <= plain + 1
        known = {each["id"]: each["metadata"] for each in records}
        assert len({str(each) for each in known.values() if each}) in {10, 12}


@pytest.mark.both_databases
def test_streamed_list_has_metadata(admin):
    ids = [created(admin, "customer", metadata={"n": n})["id"] for n in range(5)]
    response = admin.get("/customers", META | {"filter[limit]": "-1"})
    records = response.get_json()["customers"]
    assert [(each["id"], each["metadata"]["n"]) for each in records] == list(
        zip(ids, range(5), strict=True)
    )


def test_record_by_code_and_by_email_has_metadata(admin):
    coupon = created(admin, "coupon", code="summer", metadata={"a": 1})
    customer = created(admin, "customer", email="ada@example.com", metadata={"b": 2})
    assert coupon["metadata"] | customer["metadata"] == {"a": 1, "b": 2}
    by_code = admin.get("/coupons/code/summer", META).get_json()["coupon"]
    by_email = admin.get("/customers/email/ada@example.com", META).get_json()["customer"]
    assert (by_code["metadata"], by_email["metadata"]) == ({"a": 1}, {"b": 2})


def test_orders_of_a_customer_have_metadata(admin):
    customer_id = created(admin, "customer", metadata={"c": 1})["id"]
    created(admin, "order", customer_id=customer_id, metadata={"a": 1})
    path = f"/customers/{customer_id}/orders"
    (order,) = admin.get(path, META).get_json()["orders"]
    assert order["metadata"] == {"a": 1}
    assert "metadata" not in order["customer"]
    (order,) = admin.get(path).get_json()["orders"]
    assert "metadata" not in order


@pytest.mark.both_databases
def test_first_of_several_entries_is_shown(app, admin):
    order_id = created(admin, "order", metadata={"a": 1})["id"]
    with app.app_context(), db.engine.begin() as connection:
        row = {"order_id": order_id, "key": "a", "value": "2", "found_value": "2"}
        connection.execute(ORDER_METADATA.insert().values(row))
    assert shown(admin, "order", order_id, fields="metadata") == {"metadata": {"a": 1}}


def test_repeated_request_returns_the_metadata_again(admin, kind):
    body = {
        kind: {"coupon": {"code": "x"}, "customer": {"email": "x@example.com"}, "order": {}}[kind]
    }
    body[kind]["metadata"] = {"a": 1}
    headers = {"Idempotency-Key": "abc"}
    first = admin.post(f"/{kind}s", body, headers=headers)
    again = admin.post(f"/{kind}s", body, headers=headers)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert first.get_json() == again.get_json()
    assert again.get_json()[kind]["metadata"] == {"a": 1}
