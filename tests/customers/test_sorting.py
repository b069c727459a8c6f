"""Sort orders of customer lists (spec 4.2, decisions 5)."""

from datetime import UTC, datetime

import pytest

from app.services.customers.queries import MOST_SORTED
from tests.customers.calls import BILLING, SHIPPING, refusal
from tests.customers.lists import add_order, create_many, filtered, positions, set_columns


def person(email, username, first_name, last_name, **billing):
    names = {"username": username, "first_name": first_name, "last_name": last_name}
    return {"email": f"{email}@example.com", **names, "billing_address": billing}


SORTED_PEOPLE = [
    person("delta", "bravo", "Dora", "Young", city="Oslo", postcode="9"),
    person("alpha", "delta", "Cara", "Xu", city="Bergen", postcode="100"),
    person("Charlie", "Alpha", "Cara", "Xu", city="Bergen", postcode="100"),
    person("bravo", "charlie", "Anna", "Zorn", postcode="20 b"),
]
ASCENDING = [
    ({}, [1, 2, 3, 0]),
    ({"orderby": "registered"}, [1, 2, 3, 0]),
    ({"orderby": "id"}, [0, 1, 2, 3]),
    ({"orderby": "email"}, [1, 3, 2, 0]),
    ({"orderby": "login"}, [2, 0, 3, 1]),
    ({"orderby": "username"}, [2, 0, 3, 1]),
    ({"orderby": "name"}, [3, 1, 2, 0]),
    ({"orderby": "first_name"}, [3, 1, 2, 0]),
    ({"orderby": "last_name"}, [1, 2, 0, 3]),
    ({"orderby": "modified"}, [1, 2, 0, 3]),
    ({"orderby": "orders_count"}, [3, 0, 1, 2]),
    ({"orderby": "total_spent"}, [3, 1, 2, 0]),
    ({"orderby": "meta_value", "orderby_meta_key": "billing_city"}, [3, 1, 2, 0]),
    ({"orderby": "meta_value", "orderby_meta_key": "billing_postcode"}, [1, 2, 3, 0]),
    ({"orderby": "meta_value", "orderby_meta_key": "last_name"}, [1, 2, 0, 3]),
    ({"orderby": "meta_value_num", "orderby_meta_key": "billing_postcode"}, [0, 3, 1, 2]),
    ({"orderby": "meta_value", "orderby_meta_key": "shipping_city"}, [0, 1, 2, 3]),
    ({"orderby": "meta_value_num", "orderby_meta_key": "shipping_city"}, [0, 1, 2, 3]),
    ({"orderby_meta_key": "billing_city"}, [1, 2, 3, 0]),
]


@pytest.fixture
def sortable(app, admin):
    """Four customers; 1 and 2 are equal in whatever need not be unique."""
    customers = create_many(admin, *SORTED_PEOPLE)
    for customer, created, modified in zip(customers, [3, 1, 1, 2], [2, 1, 1, 3], strict=True):
        set_columns(
            app,
            customer,
            created_at=datetime(2026, 1, created, tzinfo=UTC),
            updated_at=datetime(2026, 2, modified, tzinfo=UTC),
        )
    for place, total in [(0, "5.00"), (1, "1.00"), (1, "1.00"), (2, "0.50"), (2, "1.50")]:
        add_order(app, customers[place], total)
    return customers


@pytest.mark.both_databases
def test_orderby_sorts_in_both_directions_and_pages_never_overlap(admin, sortable):
    """Ties break by id in the same direction, so descending is ascending backwards."""
    for keys, ascending in ASCENDING:
        for order, wanted in (({}, ascending), ({"order": "desc"}, ascending[::-1])):
            found = positions(filtered(admin, **keys, **order), sortable)
            assert found == wanted, (keys, order)
            pages = [
                positions(filtered(admin, **keys, **order, limit=1, offset=offset), sortable)
                for offset in range(4)
            ]
            assert pages == [[place] for place in wanted], (keys, order)
    for order in ("asc", "ASC", "DESC", "Desc"):
        found = positions(filtered(admin, order=order), sortable)
        assert found == (ASCENDING[0][1][::-1] if order.lower() == "desc" else ASCENDING[0][1])


META_KEYS = [
    "first_name",
    "last_name",
    *(f"billing_{part}" for part in BILLING),
    *(f"shipping_{part}" for part in SHIPPING),
]


@pytest.mark.sample(6)
@pytest.mark.both_databases
@pytest.mark.parametrize("key", META_KEYS)
def test_orderby_meta_value_takes_every_name_and_address_part(admin, key):
    side, _, part = key.partition("_")
    late, early = (
        {f"{side}_address": {part: value}} if side in {"billing", "shipping"} else {key: value}
        for value in ("2", "1")
    )
    customers = create_many(
        admin, late | {"email": "late@example.com"}, early | {"email": "early@example.com"}
    )
    for orderby in ("meta_value", "meta_value_num"):
        response = filtered(admin, orderby=orderby, orderby_meta_key=key)
        assert positions(response, customers) == [1, 0]


@pytest.mark.parametrize("orderby", ["meta_value", "meta_value_num"])
def test_too_many_customers_are_not_sorted_without_an_index(
    admin, make_customer, monkeypatch, orderby
):
    """To sort a million of them takes too long."""
    other, *_ = MOST_SORTED.keys() - {orderby}
    monkeypatch.setitem(MOST_SORTED, orderby, 2)
    for name in ("ada", "bob", "eve"):
        make_customer(email=f"{name}@example.com")
    keys = {"orderby": orderby, "orderby_meta_key": "billing_postcode"}
    response = filtered(admin, **keys)
    assert refusal(response) == (400, "shop_api_invalid_param", "filter[orderby]")
    message = response.get_json()["errors"][0]["message"]
    assert f"{orderby} sorts at most 2 customers, and 3 match. Use a filter, or" in message
    assert filtered(admin, **keys, q="ada").status_code == 200
    assert filtered(admin, **(keys | {"orderby": other})).status_code == 200


def test_order_that_is_unknown_is_rejected(admin):
    meta = {"orderby": "meta_value"}
    for param, wrong in (
        (
            "orderby",
            [{"orderby": name} for name in ("nope", "password_hash", "billing_city", "id;")],
        ),
        ("order", [{"order": "up"}, {"order": "asc,desc"}]),
        ("orderby_meta_key", [meta, {"orderby": "meta_value_num"}]),
        (
            "orderby_meta_key",
            [meta | {"orderby_meta_key": key} for key in ("", "nope", "shipping_phone", "email")],
        ),
    ):
        for keys in wrong:
            expected = (400, "shop_api_invalid_param", f"filter[{param}]")
            assert refusal(filtered(admin, **keys)) == expected, keys
