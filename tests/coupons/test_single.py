"""Single coupons: retrieve and delete (spec 2.1, 3, 4.1; decisions 4, 13)."""

import pytest

from tests.api_client import refusal, reply
from tests.coupons.calls import DEFAULTS, NO_CODE, TRASHED, by_code, count, edit, read

FIELDS = ["id", "code", "type", "created_at", "updated_at", *list(DEFAULTS)[1:]]
REMOVED = (200, {"message": "Permanently deleted coupon"})
GONE = refusal("shop_api_invalid_coupon_id")


# --- read ---


@pytest.mark.both_databases
def test_read_by_id(admin, make_coupon):
    make_coupon()
    coupon = make_coupon()
    assert reply(admin.get(f"/coupons/{coupon['id']}")) == (200, {"coupon": coupon})


def test_read_has_the_fields_of_the_table_in_their_order(admin, make_coupon):
    assert list(read(admin, make_coupon()["id"])) == FIELDS


def test_read_by_id_with_leading_zeros(admin, make_coupon):
    coupon = make_coupon()
    assert reply(admin.get(f"/coupons/000{coupon['id']}")) == (200, {"coupon": coupon})


@pytest.mark.parametrize("coupon_id", [0, 999, 2**31, 2**63 - 1, 2**63, 2**64 + 1, 10**30, 10**400])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_unknown_id(admin, make_coupon, method, coupon_id):
    make_coupon()
    response = admin.request(method, f"/coupons/{coupon_id}", json={"coupon": {"amount": 1}})
    assert reply(response) == GONE


def test_update_of_id_0_creates_nothing(admin):
    assert reply(edit(admin, 0, code="summer")) == GONE
    assert count(admin) == {"count": 0}


@pytest.mark.parametrize("word", ["abc", "1a", "-1", "1.5", "+1", "%20", "1%20", "٣", "1,2"])
def test_id_of_other_than_digits_has_no_route(admin, make_coupon, word):
    make_coupon()
    assert reply(admin.get(f"/coupons/{word}")) == refusal("shop_api_no_route")


@pytest.mark.both_databases
@pytest.mark.parametrize("code", ["summer", "0", "a_b", "_", "a-b-", "été", "дядя", "สวัสดี", "a b"])
def test_read_by_code(admin, make_coupon, code):
    make_coupon(code="another")
    coupon = make_coupon(code=code)
    assert reply(by_code(admin, code)) == (200, {"coupon": coupon})


@pytest.mark.parametrize(
    "spelling",
    ["Big Summer", "BIG SUMMER", "big  summer", "big\tsummer", "big summer ", "big\nsummer"],
)
def test_read_by_code_is_normalized_as_on_create(admin, make_coupon, spelling):
    coupon = make_coupon(code=" Big \t Summer")
    assert reply(by_code(admin, spelling)) == (200, {"coupon": coupon})


@pytest.mark.both_databases
def test_read_by_code_composes_accents(admin, make_coupon):
    coupon = make_coupon(code="caf\u00e9")
    assert reply(by_code(admin, "CAFE\u0301")) == (200, {"coupon": coupon})


@pytest.mark.parametrize("code", ["unknown", "summe", "summer1", "a" * 1000])
def test_read_by_code_unknown(admin, make_coupon, code):
    make_coupon(code="summer")
    assert reply(by_code(admin, code)) == NO_CODE


@pytest.mark.parametrize(
    "code",
    ["-summer", " summer", "sum.mer", "sum+mer", "50%", "a&b", "a<b>", "a/b", "a;b", "\0", "a\0b"],
)
def test_read_by_code_outside_the_pattern_has_no_route(admin, make_coupon, code):
    make_coupon(code="summer")
    assert reply(by_code(admin, code)) == refusal("shop_api_no_route")


def test_code_that_looks_like_a_route_is_found_by_code(admin, make_coupon):
    for code in ("count", "bulk", "code", "1"):
        coupon = make_coupon(code=code)
        assert reply(by_code(admin, code)) == (200, {"coupon": coupon})


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ("code", ["code"]),
        ("id,amount", ["id", "amount"]),
        (" amount , id ", ["id", "amount"]),
        ("unknown", []),
        ("code,unknown", ["code"]),
        ("", FIELDS),
    ],
)
def test_read_selects_fields(admin, make_coupon, fields, names):
    coupon = make_coupon(code="summer")
    selected = (200, {"coupon": {name: coupon[name] for name in names}})
    assert reply(admin.get(f"/coupons/{coupon['id']}", {"fields": fields})) == selected
    assert reply(admin.get("/coupons/code/summer", {"fields": fields})) == selected


# --- delete ---


@pytest.mark.sample(3)
@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, TRASHED),
        ({"force": "true"}, REMOVED),
        ({"force": "false"}, TRASHED),
        ({"force": ""}, TRASHED),
        ({"force": "1"}, TRASHED),
        ({"force": "yes"}, TRASHED),
        ({"force": "True"}, TRASHED),
        ({"force": "TRUE"}, TRASHED),
        ({"force": " true"}, TRASHED),
        ({"force": "truer"}, TRASHED),
        ({"Force": "true"}, TRASHED),
    ],
    ids=str,
)
def test_delete(admin, make_coupon, query, expected):
    other = make_coupon()
    coupon = make_coupon(code="summer")
    path = f"/coupons/{coupon['id']}"
    assert reply(admin.delete(path, query)) == expected
    assert reply(admin.get(path)) == GONE
    assert reply(by_code(admin, "summer")) == NO_CODE
    assert reply(edit(admin, coupon["id"], amount=1)) == GONE
    assert reply(admin.delete(path)) == GONE
    assert reply(admin.delete(path, {"force": "true"})) == GONE
    assert reply(admin.get("/coupons")) == (200, {"coupons": [other]})
    assert count(admin) == {"count": 1}


def test_delete_does_not_read_force_from_the_body(admin, make_coupon):
    coupon = make_coupon()
    assert reply(admin.delete(f"/coupons/{coupon['id']}", json={"force": "true"})) == TRASHED


@pytest.mark.both_databases
def test_id_of_a_deleted_coupon_is_not_reused(admin, make_coupon):
    removed = make_coupon()
    admin.delete(f"/coupons/{removed['id']}", {"force": "true"})
    assert make_coupon()["id"] > removed["id"]
