"""Filters by metadata (records 1 and 5)."""

import pytest

from app.db.session import db
from app.models import COUPON_METADATA
from tests.api_client import refused_params
from tests.metadata.calls import KINDS, bracketed, created, found

FLAT = "filter[metadata_key]", "filter[metadata_value]"


def flat(key, value=None):
    return {FLAT[0]: key} | ({} if value is None else {FLAT[1]: value})


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.mark.both_databases
def test_filter_finds_records_with_this_value(admin, kind):
    first = created(admin, kind, metadata={"erp_id": "4711"})["id"]
    created(admin, kind, metadata={"erp_id": "47110"})
    created(admin, kind, metadata={"other": "4711"})
    created(admin, kind)
    third = created(admin, kind, metadata={"erp_id": 4711, "x": 1})["id"]
    assert found(admin, kind, **bracketed(erp_id="4711")) == [first, third]
    assert found(admin, kind, **flat("erp_id", "4711")) == [first, third]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("is_found", "pairs"),
    [
        (True, [("Ab", "Ab"), (" ", " "), ("", ""), ("100%", "100%"), ("ü" * 255, "ü" * 255)]),
        (True, [(1.50, "1.5"), (True, "true"), ("true", "true"), (False, "false"), (0, "0")]),
        (False, [("Ab", "ab"), ("ab", "ab "), ("100%", "1%"), ("\u00e9", "e\u0301")]),
        (False, [(None, "null"), ([1], "[1]"), ({"b": 1}, '{"b":1}'), ({}, ""), ([], "")]),
        (False, [("ü" * 256, "ü" * 256), ("ü" * 256, "ü" * 255)]),
    ],
)
def test_comparison_is_exact(admin, is_found, pairs):
    for number, (value, text) in enumerate(pairs):
        name = f"a{number}"
        coupon_id = created(admin, "coupon", metadata={name: value})["id"]
        expected = [coupon_id] if is_found else []
        assert found(admin, "coupon", **bracketed(**{name: text})) == expected, (value, text)
        assert found(admin, "coupon", **flat(name, text)) == expected, (value, text)


@pytest.mark.both_databases
def test_null_is_never_found(admin):
    created(admin, "coupon", metadata={"a": [None], "b": {"c": None}})
    assert found(admin, "coupon", **bracketed(a="null")) == []
    assert found(admin, "coupon", **bracketed(a="")) == []


@pytest.mark.both_databases
def test_key_alone_finds_records_that_have_it(admin, kind):
    ids = [created(admin, kind, metadata={"a": value})["id"] for value in ("x", [1], "ü" * 300)]
    created(admin, kind, metadata={"A": 1})
    assert found(admin, kind, **flat("a")) == ids


def test_several_filters_must_all_match(admin, kind):
    created(admin, kind, metadata={"a": "1"})
    both = created(admin, kind, metadata={"a": "1", "b": "2"})["id"]
    created(admin, kind, metadata={"a": "1", "b": "3"})
    assert found(admin, kind, **bracketed(a="1", b="2")) == [both]
    assert found(admin, kind, **bracketed(a="1"), **flat("b", "2")) == [both]
    assert found(admin, kind, **bracketed(a="1", b="4")) == []


@pytest.mark.both_databases
def test_any_of_several_entries_with_one_key_matches(app, admin):
    coupon_id = created(admin, "coupon", metadata={"a": "1"})["id"]
    with app.app_context(), db.engine.begin() as connection:
        row = {"coupon_id": coupon_id, "key": "a", "value": '"2"', "found_value": "2"}
        connection.execute(COUPON_METADATA.insert().values(row))
    for value in ("1", "2"):
        assert found(admin, "coupon", **bracketed(a=value)) == [coupon_id]
    assert found(admin, "coupon", **{"filter[metadata][a]": ["1", "2"]}) == [coupon_id]
    assert found(admin, "coupon", **{"filter[metadata][a]": ["1", "3"]}) == []


@pytest.mark.both_databases
def test_key_with_brackets_is_found_by_the_flat_pair_only(admin):
    coupon_id = created(admin, "coupon", metadata={"a[b]": "1", "a.b": "2", "a=b&c": "3"})["id"]
    other = created(admin, "coupon")["id"]
    assert found(admin, "coupon", **flat("a[b]", "1")) == [coupon_id]
    assert found(admin, "coupon", **{"filter[metadata][a[b]]": "1"}) == sorted([coupon_id, other])
    assert found(admin, "coupon", **bracketed(**{"a.b": "2"})) == [coupon_id]
    assert found(admin, "coupon", **bracketed(**{"a=b&c": "3"})) == [coupon_id]


def test_five_filters_are_accepted(admin, kind):
    metadata = {f"k{n}": n for n in range(6)}
    record_id = created(admin, kind, metadata=metadata)["id"]
    five = bracketed(**{f"k{n}": n for n in range(5)})
    assert found(admin, kind, **five) == [record_id]
    for query in (five | bracketed(k5=5), five | flat("k5")):
        for path in (f"/{kind}s", f"/{kind}s/count"):
            assert refused_params(admin.get(path, query)) == ["filter[metadata]"]


def test_value_needs_a_key(admin, kind):
    response = admin.get(f"/{kind}s", {FLAT[1]: "x"})
    assert refused_params(response) == [FLAT[1]]
    record_id = created(admin, kind)["id"]
    assert found(admin, kind, **{FLAT[0]: "", FLAT[1]: ""}) == [record_id]


@pytest.mark.both_databases
def test_nul_is_rejected(admin, kind):
    for query in (bracketed(a="\0"), {"filter[metadata][a\0]": "1"}, flat("a\0"), flat("a", "\0")):
        assert admin.get(f"/{kind}s", query).status_code == 400


@pytest.mark.both_databases
def test_filter_is_combined_with_other_filters_pages_and_orders(admin):
    ids = [created(admin, "coupon", code=f"sale-{n}", metadata={"a": "1"})["id"] for n in range(3)]
    created(admin, "coupon", code="other", metadata={"a": "1"}, type="percent")
    query = bracketed(a="1") | {"filter[orderby]": "id", "filter[order]": "asc"}
    assert found(admin, "coupon", **query, **{"filter[q]": "sale"}) == ids
    assert len(found(admin, "coupon", **query, **{"filter[type]": "percent"})) == 1
    page = admin.get("/coupons", query | {"filter[offset]": 1, "fields": "code"})
    assert [each["code"] for each in page.get_json()["coupons"]] == ["sale-1", "sale-2", "other"]


@pytest.mark.both_databases
def test_filter_of_customers_with_role_search_and_sum(admin):
    wanted = created(admin, "customer", first_name="Ada", metadata={"a": "1"})["id"]
    created(admin, "customer", first_name="Bob", metadata={"a": "1"})
    for query in (
        {"filter[q]": "ada"}, {"filter[q]": "a*da"}, {"filter[q]": "ada", "filter[role]": "all"},
    ):  # fmt: skip
        assert found(admin, "customer", **bracketed(a="1"), **query) == [wanted]
    for orderby in ("total_spent", "orders_count", "registered", "name", "id", "modified"):
        assert (
            len(found(admin, "customer", **bracketed(a="1"), **{"filter[orderby]": orderby})) == 2
        )
    assert found(admin, "customer", **bracketed(a="1"), **{"filter[role]": "administrator"}) == []


@pytest.mark.both_databases
def test_filter_of_orders_with_status(admin):
    wanted = created(admin, "order", status="processing", metadata={"a": "1"})["id"]
    created(admin, "order", status="pending", metadata={"a": "1"})
    assert found(admin, "order", **bracketed(a="1"), **{"filter[status]": "processing"}) == [wanted]


@pytest.mark.both_databases
@pytest.mark.parametrize("kind", ["coupon", "order"])
def test_trash_is_filtered(admin, kind):
    kept = created(admin, kind, metadata={"a": "1"})["id"]
    trashed = created(admin, kind, metadata={"a": "1", "b": 2})["id"]
    other = created(admin, kind, metadata={"a": "2"})["id"]
    for record_id in (trashed, other):
        admin.delete(f"/{kind}s/{record_id}")
    assert found(admin, kind, **bracketed(a="1")) == [kept]
    response = admin.get(f"/{kind}s/trash", bracketed(a="1") | {"filter[meta]": "true"})
    (record,) = response.get_json()[f"{kind}s"]
    assert (record["id"], record["metadata"]) == (trashed, {"a": "1", "b": 2})
    admin.post(f"/{kind}s/{trashed}/restore")
    assert found(admin, kind, **bracketed(a="1")) == [kept, trashed]


def test_strict_request_accepts_the_filters(admin, kind):
    headers = {"Prefer": "handling=strict"}
    query = bracketed(a="1") | flat("b", "2") | {"filter[meta]": "true"}
    assert admin.get(f"/{kind}s", query, headers=headers).status_code == 200
    assert admin.get(f"/{kind}s/count", bracketed(a="1"), headers=headers).status_code == 200
    response = admin.get(f"/{kind}s", {"filter[metadata]": "1"}, headers=headers)
    assert refused_params(response) == ["filter[metadata]"]
    response = admin.get(f"/{kind}s", {"filter[meta]": "yes"}, headers=headers)
    assert refused_params(response) == ["filter[meta]"]


@pytest.mark.both_databases
def test_list_without_a_limit_is_filtered(admin):
    ids = [created(admin, "customer", metadata={"a": "1"})["id"] for _ in range(3)]
    created(admin, "customer")
    assert found(admin, "customer", **bracketed(a="1"), **{"filter[limit]": "-1"}) == ids
