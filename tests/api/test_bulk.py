"""Bulk requests: what is the same for coupons, customers and orders (spec 4.3; decisions 1, 3, 13)."""

import pytest

from tests.api_client import (
    failed_item,
    failure,
    refusal,
    refused_params,
    reply,
    without_key,
)
from tests.nouns import COUPON, CUSTOMER, NOBODY, ORDER, noun

__all__ = ["noun"]  # a fixture

PARAM = "shop_api_invalid_param"


@pytest.fixture(params=["POST", "PUT"])
def method(request):
    return request.param


# --- which record ---


def test_an_id_selects_a_record_or_creates_one(admin, noun, method):
    (record,) = noun.send(admin, noun.new(0), method=method)
    number = record["id"]
    for given in (number, f"{number}", f"00{number}"):
        changes = {"id": given, noun.changed: f"new {given}"}
        (result,) = noun.send(admin, changes, method=method)
        assert result[noun.changed] == f"new {given}", given
        assert result == noun.read(admin, number)
    before = noun.stored(admin)
    creating = [None, 0, 0.0, "0", "", "000"]
    items = [{"id": each, **noun.new(at)} for at, each in enumerate(creating, 1)]
    results = noun.send(admin, noun.new(9), *items, method=method)
    created = {result["id"]: result[noun.text] for result in results}
    assert [*created.values()] == [noun.value(at) for at in (9, *range(1, len(creating) + 1))]
    assert noun.stored(admin) == before | created


UNKNOWN = [
    *((given, NOBODY) for given in (NOBODY, str(NOBODY), float(NOBODY))),
    *((given, given) for given in (2**63 - 1, 2**63, 2**64, 10**30)),
    ("9" * 30, int("9" * 30)),
]
NEGATIVE = [-1, -(2**63), -(2**70), -(10**30)]
NO_ID = [
    *(True, False, 1.5, "abc", "1a", "5x", " ", " 1", "1 ", "-1", "+1", "1.0", "٣", "1\0"),
    *([], [1], {}, {"id": 1}),
]


def test_an_id_identifies_nothing(admin, noun, method):
    ids = [*(given for given, _ in UNKNOWN), *NEGATIVE, *NO_ID]
    items = [{"id": each, **noun.new(at)} for at, each in enumerate(ids)]
    *results, last = noun.send(admin, *items, noun.new(99), method=method)
    expected = [failure(noun.unknown, echoed) for _, echoed in UNKNOWN]
    expected += [failure(f"shop_api_invalid_{noun.name}_id", each) for each in NEGATIVE]
    assert results[: len(expected)] == expected
    assert [failed_item(each) for each in results[len(expected) :]] == [(0, PARAM)] * len(NO_ID)
    assert noun.stored(admin) == {last["id"]: noun.value(99)}


# --- items that fail ---


def test_an_item_that_is_not_an_object_fails_alone(admin, noun, method):
    items = [None, True, False, 0, 1, 1.5, "", "x", [], [noun.new(1)]]
    first, *results, last = noun.send(admin, noun.new(0), *items, noun.new(2), method=method)
    assert [failed_item(result) for result in results] == [(0, PARAM)] * len(items)
    assert noun.stored(admin) == {first["id"]: noun.value(0), last["id"]: noun.value(2)}


def test_a_failed_item_names_every_invalid_field(admin, noun, method):
    for given, echoed in (({}, 0), ({"id": NOBODY}, NOBODY)):  # also before an unknown ID
        (result,) = noun.send(admin, noun.wrong | given, method=method)
        assert failed_item(result) == (echoed, PARAM)
        assert all(name in result["error"]["message"] for name in noun.wrong_names)


def test_items_that_all_fail(admin, noun, method):
    results = noun.send(admin, noun.wrong, None, {"id": NOBODY}, {"id": -5}, method=method)
    assert [failed_item(result) for result in results[:2]] == [(0, PARAM)] * 2
    assert results[2:] == [
        failure(noun.unknown, NOBODY),
        failure(f"shop_api_invalid_{noun.name}_id", -5),
    ]
    assert noun.stored(admin) == {}


CREATES = [
    *((COUPON, item, "missing_coupon_code") for item in ({}, {"amount": 1}, {"code": None})),
    (COUPON, {"code": "TAKEN"}, "coupon_code_already_exists"),
    (COUPON, {"code": "x", "type": "x"}, "invalid_coupon_type"),
    *(
        pytest.param(COUPON, {"code": code}, "cannot_create_coupon", marks=pytest.mark.both_databases)
        for code in (" ", "ﷺ" * 30)
    ),
    (CUSTOMER, {"first_name": "x"}, "missing_customer_email"),
    (CUSTOMER, {"email": None}, "missing_customer_email"),
    (CUSTOMER, {"customer": {"email": "a@example.com"}}, "missing_customer_email"),
    (CUSTOMER, {"email": ""}, "registration-error-invalid-email"),
    (CUSTOMER, {"email": "nonsense"}, "registration-error-invalid-email"),
    (CUSTOMER, {"email": "TAKEN@example.com"}, "registration-error-email-exists"),
    (CUSTOMER, {"email": "a@b.co", "username": "?"}, "registration-error-invalid-username"),
    (CUSTOMER, {"email": "a@b.co", "username": "Taken"}, "registration-error-username-exists"),
    (CUSTOMER, {"email": []}, "invalid_param"),
    *(
        (CUSTOMER, {"email": "a@b.co", name: value}, "invalid_param")
        for name, value in (
            ("first_name", {}), ("last_name", "\0"), ("billing_address", []), ("password", True),
        )
    ),
    (ORDER, {"status": "shipped"}, "invalid_order_status"),
    (ORDER, {"customer_id": NOBODY}, "invalid_customer_id"),
    (ORDER, {"order_key": "taken"}, "cannot_create_order"),
]  # fmt: skip
UPDATES = [
    *((COUPON, {name: value}, "invalid_param")
      for name, value in (("amount", "x"), ("code", []), ("description", "\0"))),
    (COUPON, {"code": "TAKEN"}, "coupon_code_already_exists"),
    (COUPON, {"type": "x"}, "invalid_coupon_type"),
    (COUPON, {"code": " "}, "cannot_update_coupon"),
    *((CUSTOMER, {name: value}, "invalid_param")
      for name, value in (("email", []), ("last_name", "\0"), ("shipping_address", "x"))),
    (ORDER, {"status": "shipped"}, "invalid_order_status"),
    (ORDER, {"customer_id": NOBODY}, "invalid_customer_id"),
]  # fmt: skip


def code_of(name):
    return name if name.startswith("registration") else f"shop_api_{name}"


@pytest.mark.parametrize(("noun", "item", "code"), CREATES)
def test_a_create_that_fails_stores_nothing_of_its_own(admin, noun, item, code):
    """Its error is that of the single operation."""
    noun.send(admin, noun.taken)
    taken = noun.stored(admin)
    before, failed, after = noun.send(admin, noun.new(0), item, noun.new(1))
    assert failed_item(failed) == (0, code_of(code))
    (single,) = admin.post(noun.path, {noun.name: item}).get_json()["errors"]
    assert single["code"] == failed["error"]["code"]
    if "param" not in single:  # which a bulk request names without the noun
        assert single == failed["error"]
    created = {before["id"]: noun.value(0), after["id"]: noun.value(1)}
    assert noun.stored(admin) == taken | created


@pytest.mark.parametrize(("noun", "changes", "code"), UPDATES)
def test_an_update_that_fails_changes_nothing_of_its_own(admin, noun, method, changes, code):
    record, other, _ = noun.send(admin, noun.new(0), noun.new(1), noun.taken)
    items = (
        {"id": record["id"], noun.changed: "x", **changes},
        {"id": other["id"], noun.changed: "y"},
    )
    failed, updated = noun.send(admin, *items, method=method)
    assert failed_item(failed) == (record["id"], code_of(code))
    assert noun.read(admin, record["id"]) == record
    assert noun.read(admin, other["id"]) == updated
    assert updated[noun.changed] == "y"


@pytest.mark.parametrize("role", ["customer", "subscriber"])
def test_each_item_needs_its_capability(admin, client_for, noun, method, role):
    (record,) = noun.send(admin, noun.new(0))
    items = [
        noun.new(1),
        {},
        {"id": record["id"], noun.changed: "x"},
        {"id": NOBODY},
        {"id": -1},
        noun.new(2) | noun.wrong,
    ]
    *results, wrong = noun.send(client_for(role), *items, method=method)
    assert results == [
        failure(f"shop_api_user_cannot_create_{noun.name}"),
        failure(f"shop_api_user_cannot_create_{noun.name}"),
        failure(f"shop_api_user_cannot_edit_{noun.name}", record["id"]),
        failure(noun.unknown, NOBODY),
        failure(f"shop_api_invalid_{noun.name}_id", -1),
    ]
    assert failed_item(wrong) == (0, PARAM)
    assert noun.read(admin, record["id"]) == record
    assert noun.value(1) not in noun.stored(admin).values()


# --- the array ---


def test_no_items(admin, noun, method):
    for path in (f"{noun.path}/bulk", f"{noun.path}/bulk/"):
        response = admin.request(method, path, json={noun.key: []})
        assert reply(response) == (200, {noun.key: []}), path


@pytest.mark.parametrize("role", ["administrator", "customer"])
def test_no_array(client_for, noun, method, role):
    client, key = client_for(role), noun.key
    for body in ({}, {key: None}, {noun.name: []}, [], [{}], "x", 5, None):
        response = client.request(method, f"{noun.path}/bulk", json=body)
        assert reply(response) == refusal(f"shop_api_missing_{key}_data"), body
    without_body = client.request(method, f"{noun.path}/bulk", data="")
    assert reply(without_body) == refusal(f"shop_api_missing_{key}_data")
    for items in ({}, noun.new(1), "x", "", 0, 5, True, False):
        response = client.request(method, f"{noun.path}/bulk", json={key: items})
        assert refused_params(response) == [key], items


# --- limits ---


@pytest.mark.both_databases
def test_a_hundred_items_are_created_in_their_order(admin, noun, method):
    items = [noun.new((number * 37) % 100) for number in range(100)]
    results = noun.send(admin, *items, method=method)
    assert [result[noun.text] for result in results] == [item[noun.text] for item in items]
    ids = [result["id"] for result in results]
    assert ids == sorted(set(ids))
    assert noun.count(admin) == 100


@pytest.mark.parametrize("role", ["administrator", "customer"])
def test_more_than_a_hundred_items_store_nothing(admin, client_for, noun, method, role):
    """The limit precedes capabilities."""
    client, before = client_for(role, login="caller"), noun.count(admin)
    items = [noun.new(number) for number in range(100)]
    too_large = refusal(f"shop_api_{noun.key}_request_entity_too_large", limit=100)
    for many in (
        *([*items, each] for each in (noun.new(100), None, noun.wrong, {"id": -1})),
        [None] * 101,
    ):
        response = client.request(method, f"{noun.path}/bulk", json={noun.key: many})
        assert reply(response) == too_large
    assert noun.count(admin) == before


def test_the_limit_is_a_setting(client_with, noun):
    client, items = client_with(SHOP_BULK_LIMIT=2), [noun.new(number) for number in range(3)]
    response = client.post(f"{noun.path}/bulk", {noun.key: items})
    too_large = refusal(f"shop_api_{noun.key}_request_entity_too_large", limit=2)
    assert reply(response) == too_large
    assert len(noun.send(client, *items[:2])) == 2


# --- statements ---


@pytest.mark.both_databases
@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize(
    ("noun", "creates", "updates", "expected"),
    [
        (COUPON, 1, 0, 3),  # the look-up, the insert, the events
        (COUPON, 0, 1, 3),  # the look-up, the update, the events
        (COUPON, 1, 1, 5),  # look-ups of codes and of coupons, the update, the insert, the events
        # The accounts, their roles, the users, the new roles, the results and the events.
        (CUSTOMER, 1, 0, 6),
        (CUSTOMER, 0, 1, 5),  # the accounts, their roles, the changes, the results and the events
    ],
)
def test_statements_do_not_depend_on_the_number_of_items(
    admin, statements, noun, creates, updates, expected, number
):
    records = noun.send(admin, *map(noun.new, range(number)))
    changes = [noun.new(50 + at) if creates else {noun.changed: "x"} for at in range(number)]
    items = [{"id": each["id"]} | values for each, values in zip(records, changes, strict=True)]
    statements.clear()
    noun.send(admin, *items * updates, *[noun.new(10 + at) for at in range(number)] * creates)
    assert len(without_key(statements)) == expected


def test_rejected_items_send_no_statement(admin, noun, statements):
    statements.clear()
    noun.send(admin, noun.wrong, None, {"id": -1})
    assert len(without_key(statements)) == 0
