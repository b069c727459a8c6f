"""Bulk requests of coupons (spec 4.3; decisions 1, 3, 13)."""

import pytest

from tests.api_client import Client, codes, failure, refusal, refused_params, reply, without_key
from tests.coupons.bulk import TAKEN, read, refused, shop_codes

MAX = 2**63 - 1
GONE = "shop_api_invalid_coupon_id"
PARAM = "shop_api_invalid_param"
TYPES = (
    "Invalid coupon type - the coupon type must be any of these: "
    "fixed_cart, percent, fixed_product, percent_product, buy_x_get_y"
)


# --- create and edit ---


@pytest.mark.both_databases
def test_bulk_creates_as_the_single_create(admin, bulk, make_coupon):
    single = make_coupon(code="single", amount="5", product_ids=["7", "x"])
    (result,) = bulk({"code": "Several", "amount": "5", "product_ids": ["7", "x"]})
    made = {name: result[name] for name in ("id", "created_at", "updated_at")}
    assert result == single | made | {"code": "several"}
    assert read(admin, result["id"]) == result


@pytest.mark.both_databases
def test_bulk_updates_as_the_single_update(admin, bulk, make_coupon):
    coupon = make_coupon(usage_limit=5)
    (result,) = bulk({"id": coupon["id"], "amount": "5", "description": None})
    assert result == coupon | {"amount": "5.00", "updated_at": result["updated_at"]}
    assert read(admin, coupon["id"]) == result


def test_bulk_results_are_in_the_order_of_the_items(admin, bulk, make_coupon):
    one, two = make_coupon(code="one"), make_coupon(code="two")
    results = bulk(
        {"code": "new 1"},
        {"id": two["id"], "amount": 2},
        "not an object",
        {"code": "new 2"},
        {"id": 999_999, "amount": 3},
        {"code": "one"},
        {"id": one["id"], "amount": 1},
        {"code": "new 3"},
    )
    found = ["new 1", "two", None, "new 2", None, None, "one", "new 3"]
    assert [result.get("code") for result in results] == found
    assert refused(results[2]) == (0, PARAM)
    assert results[4] == failure(GONE, 999_999)
    assert results[5] == failure(TAKEN)
    stored = [result for result in results if "error" not in result]
    assert [read(admin, result["id"]) for result in stored] == stored


def test_bulk_id_selects_or_creates(admin, bulk, make_coupon):
    make_coupon(code="other")
    coupon = make_coupon(code="one")
    number = coupon["id"]
    for given in (number, f"{number}", f"00{number}"):
        (result,) = bulk({"id": given, "amount": 5})
        coupon |= {"amount": "5.00", "updated_at": result["updated_at"]}
        assert result == coupon, given
    created = [None, 0, 0.0, "0", "", "000"]
    bulk(*({"id": given, "code": f"new {place}"} for place, given in enumerate(created)))
    found = sorted(shop_codes(admin).values())
    assert found == [*(f"new {place}" for place in range(len(created))), "one", "other"]


UNKNOWN = [
    *((given, 999_999) for given in (999_999, "999999", 999_999.0)),
    *((given, given) for given in (MAX, MAX + 1, 2**64, 10**30, -1, -MAX - 1, -(10**30))),
    ("9" * 30, int("9" * 30)),
]


NO_ID = [
    True,
    False,
    1.5,
    "abc",
    "1a",
    " 1",
    "1 ",
    "-1",
    "+1",
    "1.0",
    "٣",
    "1\0",
    [],
    [1],
    {},
    {"id": 1},
]


def test_bulk_id_identifies_nothing(admin, bulk, make_coupon):
    coupon = make_coupon()
    results = bulk(*({"id": given, "code": "new"} for given, _ in UNKNOWN))
    assert results == [failure(GONE, echoed) for _, echoed in UNKNOWN]
    results = bulk(*({"id": given, "code": "new"} for given in NO_ID))
    assert [refused(result) for result in results] == [(0, PARAM)] * len(NO_ID)
    assert shop_codes(admin) == {coupon["id"]: coupon["code"]}


def test_bulk_creates_in_the_order_of_the_items(admin, bulk):
    results = bulk(*({"code": f"c{(number * 37) % 100}"} for number in range(100)))
    assert [result["code"] for result in results] == [f"c{(n * 37) % 100}" for n in range(100)]
    ids = [result["id"] for result in results]
    assert ids == sorted(set(ids))


def test_bulk_without_items(bulk):
    assert bulk() == []


# --- which record ---


@pytest.mark.both_databases
@pytest.mark.parametrize("force", ["false", "true"])
def test_bulk_id_of_a_deleted_coupon(admin, bulk, make_coupon, force):
    coupon = make_coupon()
    admin.delete(f"/coupons/{coupon['id']}", {"force": force})
    assert bulk({"id": coupon["id"], "amount": 1}) == [failure(GONE, coupon["id"])]


# --- failing items ---


def test_bulk_item_is_not_an_object(admin, bulk):
    items = [None, True, False, 0, 1, 1.5, "", "x", [], [{"code": "x"}]]
    first, *results, last = bulk({"code": "a"}, *items, {"code": "b"})
    assert [refused(result) for result in results] == [(0, PARAM)] * len(items)
    assert shop_codes(admin) == {first["id"]: "a", last["id"]: "b"}


def test_bulk_failing_create(admin, bulk, make_coupon):
    taken = make_coupon(code="taken")
    first, *results, last = bulk(
        {"code": "a"},
        {},
        {"amount": 1},
        {"code": None},
        {"code": "TAKEN"},
        {"code": "x", "type": "x"},
        {"code": "b"},
    )
    assert results == [
        *[failure("shop_api_missing_coupon_code")] * 3,
        failure(TAKEN),
        {"id": 0, "error": {"code": "shop_api_invalid_coupon_type", "message": TYPES}},
    ]
    assert shop_codes(admin) == {taken["id"]: "taken", first["id"]: "a", last["id"]: "b"}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"amount": "x"}, PARAM),
        ({"code": []}, PARAM),
        ({"description": "\0"}, PARAM),
        ({"code": "TAKEN"}, TAKEN),
        ({"type": "x"}, "shop_api_invalid_coupon_type"),
        ({"code": " "}, "shop_api_cannot_update_coupon"),
    ],
)
def test_bulk_failing_update(admin, bulk, make_coupon, fields, code):
    make_coupon(code="taken")
    coupon, other = make_coupon(), make_coupon()
    items = {"id": coupon["id"], "usage_limit": 7} | fields, {"id": other["id"], "amount": 1}
    result, last = bulk(*items)
    assert refused(result) == (coupon["id"], code)
    assert read(admin, coupon["id"]) == coupon
    assert read(admin, other["id"]) == last


@pytest.mark.both_databases
def test_bulk_create_that_cannot_be_stored(bulk):
    assert [refused(result) for result in bulk({"code": " "}, {"code": "ﷺ" * 30})] == [
        (0, "shop_api_cannot_create_coupon")
    ] * 2


def test_bulk_failing_item_names_every_invalid_field(bulk):
    (result,) = bulk({"code": "x", "amount": "x", "usage_limit": []})
    assert refused(result) == (0, PARAM)
    assert "amount" in result["error"]["message"]
    assert "usage_limit" in result["error"]["message"]


def test_bulk_type_error_precedes_an_unknown_id(bulk):
    (result,) = bulk({"id": 999_999, "amount": "x"})
    assert refused(result) == (999_999, PARAM)


def test_bulk_of_failing_items_only(admin, bulk):
    results = bulk({}, None, {"id": 5}, {"id": -5})
    assert results[0] == failure("shop_api_missing_coupon_code")
    assert refused(results[1]) == (0, PARAM)
    assert results[2:] == [failure(GONE, 5), failure(GONE, -5)]
    assert shop_codes(admin) == {}


# --- limits ---


def test_bulk_of_100_items(admin, bulk):
    assert len(bulk(*({"code": f"c{number}"} for number in range(100)))) == 100
    assert reply(admin.get("/coupons/count")) == (200, {"count": 100})


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_bulk_of_101_items(admin, method):
    items = [{"code": f"c{number}"} for number in range(100)]
    for item in ({"code": "x"}, None, {"amount": "x"}, {"id": -1}):
        response = admin.request(method, "/coupons/bulk", json={"coupons": [*items, item]})
        assert reply(response) == refusal("shop_api_coupons_request_entity_too_large", limit=100)
        assert reply(admin.get("/coupons/count")) == (200, {"count": 0})


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_bulk_without_an_array(admin, method):
    for body in ({}, {"coupons": None}, {"coupon": []}, [], None):
        response = admin.request(method, "/coupons/bulk", json=body)
        assert reply(response) == refusal("shop_api_missing_coupons_data"), body
    for items in ({}, {"code": "x"}, "x", 5, True):
        response = admin.request(method, "/coupons/bulk", json={"coupons": items})
        assert refused_params(response) == ["coupons"], items


def test_bulk_limit_is_a_setting(app_with, admin):
    client = Client(app_with(SHOP_BULK_LIMIT=2), admin.key)
    items = [{"code": code} for code in "abc"]
    assert reply(client.post("/coupons/bulk", {"coupons": items})) == refusal(
        "shop_api_coupons_request_entity_too_large", limit=2
    )
    assert client.post("/coupons/bulk", {"coupons": items[:2]}).status_code == 200


def test_bulk_limit_precedes_capabilities(client_for):
    response = client_for("customer").post("/coupons/bulk", {"coupons": [{}] * 101})
    assert codes(response) == (413, "shop_api_coupons_request_entity_too_large")


# --- who may ---


@pytest.mark.parametrize("role", ["customer", "subscriber"])
def test_bulk_checks_capabilities_of_each_item(client_for, admin, bulk, make_coupon, role):
    coupon = make_coupon()
    results = bulk(
        {"code": "new"},
        {},
        {"id": coupon["id"], "amount": 1},
        {"id": 999_999},
        {"id": -1},
        {"code": "x", "amount": "x"},
        client=client_for(role),
    )
    assert results[:5] == [
        failure("shop_api_user_cannot_create_coupon"),
        failure("shop_api_user_cannot_create_coupon"),
        failure("shop_api_user_cannot_edit_coupon", coupon["id"]),
        failure(GONE, 999_999),
        failure(GONE, -1),
    ]
    assert refused(results[5]) == (0, PARAM)
    assert reply(admin.get("/coupons")) == (200, {"coupons": [coupon]})


# --- statements ---


@pytest.mark.both_databases
@pytest.mark.parametrize("items", [1, 3])
def test_bulk_create_statements(bulk, statements, items):
    statements.clear()
    bulk(*({"code": f"c{number}"} for number in range(items)))
    assert len(without_key(statements)) == 3  # the look-up, the insert, the events


@pytest.mark.both_databases
@pytest.mark.parametrize("items", [1, 3])
def test_bulk_update_statements(bulk, make_coupon, statements, items):
    ids = [make_coupon()["id"] for _ in range(items)]
    statements.clear()
    bulk(*({"id": coupon_id, "amount": 1} for coupon_id in ids))
    assert len(without_key(statements)) == 3  # the look-up, the update, the events


@pytest.mark.both_databases
@pytest.mark.parametrize("items", [1, 3])
def test_bulk_of_both_statements(bulk, make_coupon, statements, items):
    ids = [make_coupon()["id"] for _ in range(items)]
    statements.clear()
    edits = [{"id": coupon_id, "code": f"edited {coupon_id}"} for coupon_id in ids]
    bulk(*edits, *({"code": f"c{number}"} for number in range(items)))
    # Two look-ups (of codes, of coupons), the update, the insert, the events.
    assert len(without_key(statements)) == 5


def test_bulk_of_rejected_items_statements(bulk, statements):
    statements.clear()
    bulk({"code": []}, None, {"id": -1})
    assert len(without_key(statements)) == 0
