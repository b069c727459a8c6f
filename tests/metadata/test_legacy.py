"""Metadata in the legacy API: ``coupon_meta``, ``customer_meta``, ``order_meta`` (records 1 and 5)."""

import pytest

from tests.metadata.calls import KINDS, bracketed, created, fields_of_new, stored, updated
from tests.plugins.woocommerce.legacy.calls import BOTH

META = {"filter[meta]": "true"}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.mark.sample(2)
@BOTH
def test_meta_is_shown_without_hidden_keys(admin, kind, mount):
    metadata = {"erp_id": "4711", "_hidden": 1, "list": [1]}
    record_id = created(admin, kind, metadata=metadata)["id"]
    path = f"{mount}/{kind}s/{record_id}"
    plain = admin.get(path).get_json()[kind]
    assert not {"metadata", f"{kind}_meta"} & set(plain)
    whole = admin.get(path, META).get_json()[kind]
    last = [f"{kind}_meta", "customer"] if kind == "order" else [f"{kind}_meta"]
    assert list(whole)[-len(last) :] == last
    assert whole.pop(f"{kind}_meta") == {"erp_id": "4711", "list": [1]}
    assert whole == plain
    (listed,) = admin.get(f"{mount}/{kind}s", META).get_json()[f"{kind}s"]
    assert listed[f"{kind}_meta"] == {"erp_id": "4711", "list": [1]}
    selected = admin.get(path, META | {"fields": f"id,{kind}_meta"}).get_json()[kind]
    assert selected == {"id": record_id, f"{kind}_meta": {"erp_id": "4711", "list": [1]}}


@BOTH
def test_bodies_accept_scalars(admin, kind, mount):
    given = {"a": "1", "b": 2, "c": True, "d": 1.5, "_e": 1, "f": [1], "g": {"h": 1}, "i": None}
    body = {kind: fields_of_new(kind) | {f"{kind}_meta": given}}
    response = admin.post(f"{mount}/{kind}s", body)
    assert response.status_code == 201, response.get_json()
    record = response.get_json()[kind]
    assert not {"metadata", f"{kind}_meta"} & set(record)
    wanted = {"a": "1", "b": 2, "c": True, "d": 1.5}
    assert stored(admin, kind, record["id"]) == wanted
    response = admin.put(
        f"{mount}/{kind}s/{record['id']}", {kind: {f"{kind}_meta": {"a": "2", "b": None}}}
    )
    assert response.status_code == 200
    assert stored(admin, kind, record["id"]) == wanted | {"a": "2"}


@BOTH
def test_name_of_the_native_api_is_ignored(admin, kind, mount):
    body = {kind: fields_of_new(kind) | {"metadata": {"a": 1}}}
    record = admin.post(f"{mount}/{kind}s", body).get_json()[kind]
    assert stored(admin, kind, record["id"]) == {}


@BOTH
@pytest.mark.parametrize("empty", [[], "", {}, None, ["x"]])
def test_empty_array_of_php_is_accepted(admin, kind, mount, empty):
    body = {kind: fields_of_new(kind) | {f"{kind}_meta": empty}}
    assert admin.post(f"{mount}/{kind}s", body).status_code == 201


@BOTH
def test_bulk_items_accept_meta(admin, kind, mount):
    items = [fields_of_new(kind) | {f"{kind}_meta": {"a": n}} for n in range(2)]
    results = admin.post(f"{mount}/{kind}s/bulk", {f"{kind}s": items}).get_json()[f"{kind}s"]
    assert [stored(admin, kind, each["id"]) for each in results] == [{"a": 0}, {"a": 1}]


@BOTH
def test_filters_find_records(admin, kind, mount):
    wanted = created(admin, kind, metadata={"erp_id": "4711"})["id"]
    created(admin, kind, metadata={"erp_id": "4712"})
    for query in (
        bracketed(erp_id="4711"),
        {"filter[metadata_key]": "erp_id", "filter[metadata_value]": "4711"},
    ):
        (record,) = admin.get(f"{mount}/{kind}s", query).get_json()[f"{kind}s"]
        assert record["id"] == wanted
        assert admin.get(f"{mount}/{kind}s/count", query).get_json() == {"count": 1}


@BOTH
def test_limit_has_the_code_of_the_dialect(admin, kind, mount):
    body = {kind: fields_of_new(kind) | {f"{kind}_meta": {"x" * 256: 1}}}
    response = admin.post(f"{mount}/{kind}s", body)
    assert response.status_code == 400
    assert response.get_json()["errors"][0]["code"] == "woocommerce_api_invalid_metadata"


def test_events_have_the_native_form(admin, kind):
    body = {kind: fields_of_new(kind) | {f"{kind}_meta": {"a": 1}}}
    admin.post(f"/wc-api/v3/{kind}s", body)
    (event,) = admin.get("/events", {"filter[resource]": kind}).get_json()["events"]
    assert event["data"][kind]["metadata"] == {"a": 1}
    assert f"{kind}_meta" not in event["data"][kind]


def test_legacy_write_clears_no_other_key(admin, kind):
    record = created(admin, kind, metadata={"_hidden": [1], "a": {"b": 1}})
    response = admin.put(f"/wc-api/v3/{kind}s/{record['id']}", {kind: {f"{kind}_meta": {"c": "x"}}})
    assert response.status_code == 200
    assert stored(admin, kind, record["id"]) == {"_hidden": [1], "a": {"b": 1}, "c": "x"}
    assert updated(admin, kind, record["id"], metadata={})["metadata"]["_hidden"] == [1]
