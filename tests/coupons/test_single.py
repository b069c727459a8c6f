"""Single coupons: retrieve and delete (spec 2.1, 3, 4.1; decisions 4, 13)."""

import pytest

from tests.api_client import refusal, reply
from tests.coupons.calls import DEFAULTS, NO_CODE, TRASHED, by_code, count, edit, read

FIELDS = ["id", "code", "type", "created_at", "updated_at", *list(DEFAULTS)[1:]]
REMOVED = (200, {"message": "Permanently deleted coupon"})
GONE = refusal("shop_api_invalid_coupon_id")


# --- read ---


@pytest.mark.both_databases
def test_read_has_the_fields_of_the_table_in_their_order(admin, make_coupon):
    make_coupon()
    coupon = make_coupon()
    for spelling in (coupon["id"], f"000{coupon['id']}"):
        assert reply(admin.get(f"/coupons/{spelling}")) == (200, {"coupon": coupon})
    assert list(read(admin, coupon["id"])) == FIELDS


def test_unknown_id(admin, make_coupon):
    make_coupon()
    body = {"coupon": {"amount": 1}}
    for coupon_id in (0, 999, 2**31, 2**63 - 1, 2**63, 2**64 + 1, 10**30, 10**400):
        for method in ("GET", "PUT", "DELETE"):
            response = admin.request(method, f"/coupons/{coupon_id}", json=body)
            assert reply(response) == GONE, (method, coupon_id)


def test_update_of_id_0_creates_nothing(admin):
    assert reply(edit(admin, 0, code="summer")) == GONE
    assert count(admin) == {"count": 0}


def test_id_of_other_than_digits_has_no_route(admin, make_coupon):
    make_coupon()
    for word in ("abc", "1a", "-1", "1.5", "+1", "%20", "1%20", "٣", "1,2"):
        assert reply(admin.get(f"/coupons/{word}")) == refusal("shop_api_no_route"), word


@pytest.mark.both_databases
def test_read_by_code(admin, make_coupon):
    for code in ("summer", "0", "a_b", "_", "a-b-", "été", "дядя", "สวัสดี", "a b"):
        coupon = make_coupon(code=code)
        assert reply(by_code(admin, code)) == (200, {"coupon": coupon}), code
    # Codes that look like a route.
    for code in ("count", "bulk", "code", "1"):
        coupon = make_coupon(code=code)
        assert reply(by_code(admin, code)) == (200, {"coupon": coupon}), code


@pytest.mark.both_databases
def test_read_by_code_is_normalized_as_on_create(admin, make_coupon):
    coupon = make_coupon(code=" Caf\u00e9 \t Summer")
    for code in (
        "Café Summer",
        "CAFÉ SUMMER",
        "café  summer",
        "café\tsummer",
        "café summer ",
        "café\nsummer",
        "CAFE\u0301 summer",
    ):
        assert reply(by_code(admin, code)) == (200, {"coupon": coupon}), code


def test_read_by_code_unknown(admin, make_coupon):
    make_coupon(code="summer")
    for code in ("unknown", "summe", "summer1", "a" * 1000):
        assert reply(by_code(admin, code)) == NO_CODE, code


def test_read_by_code_outside_the_pattern_has_no_route(admin, make_coupon):
    make_coupon(code="summer")
    signs = ("sum.mer", "sum+mer", "50%", "a&b", "a<b>", "a/b", "a;b", "\0", "a\0b")
    for code in ("-summer", " summer", *signs):
        assert reply(by_code(admin, code)) == refusal("shop_api_no_route"), code


def test_read_selects_fields(admin, make_coupon):
    coupon = make_coupon(code="summer")
    for fields, names in (
        ("code", ["code"]),
        ("id,amount", ["id", "amount"]),
        (" amount , id ", ["id", "amount"]),
        ("unknown", []),
        ("code,unknown", ["code"]),
        ("", FIELDS),
    ):
        selected = (200, {"coupon": {name: coupon[name] for name in names}})
        assert reply(admin.get(f"/coupons/{coupon['id']}", {"fields": fields})) == selected
        assert reply(admin.get("/coupons/code/summer", {"fields": fields})) == selected


# --- delete ---


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("queries", "expected"),
    [
        ([{"force": "true"}], REMOVED),
        ([{}, {"force": "false"}, {"force": ""}, {"force": "1"}, {"force": "yes"}], TRASHED),
        ([{"force": "True"}, {"force": "TRUE"}, {"force": " true"}, {"force": "truer"}], TRASHED),
        ([{"Force": "true"}], TRASHED),
    ],
    ids=str,
)
def test_delete(admin, make_coupon, queries, expected):
    other = make_coupon()
    for query in queries:
        coupon = make_coupon(code="summer")
        path = f"/coupons/{coupon['id']}"
        assert reply(admin.delete(path, query)) == expected, query
        trash = admin.get("/coupons/trash", {"fields": "id"}).get_json()["coupons"]
        assert ({"id": coupon["id"]} in trash) == (expected == TRASHED), query
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
