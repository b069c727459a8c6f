"""``POST /coupons`` (spec 2.1, 4.1; decisions 4, 13)."""

import re
from datetime import UTC, datetime

import pytest

from tests.api_client import codes, refusal, reply
from tests.coupons.calls import (
    DEFAULTS,
    INPUT,
    NO_CODE,
    OUTPUT,
    TAKEN,
    TRASHED,
    UNSTORABLE,
    by_code,
    count,
    edit,
    read,
)

TYPES = (
    "Invalid coupon type - the coupon type must be any of these: "
    "fixed_cart, percent, fixed_product, percent_product, buy_x_get_y"
)
INVALID_TYPE = refusal("shop_api_invalid_coupon_type", words=TYPES)


def test_create_with_a_code_only(admin):
    before = datetime.now(UTC).replace(microsecond=0)
    response = admin.post("/coupons", {"coupon": {"code": "summer"}})
    coupon = response.get_json()["coupon"]
    made = {"id": coupon["id"], "created_at": coupon["created_at"]}
    expected = DEFAULTS | made | {"code": "summer", "updated_at": coupon["created_at"]}
    assert reply(response) == (201, {"coupon": expected})
    assert coupon["id"] > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", coupon["created_at"])
    assert before <= datetime.fromisoformat(coupon["created_at"]) <= datetime.now(UTC)
    assert read(admin, coupon["id"]) == coupon


@pytest.mark.both_databases
def test_create_with_every_field(admin):
    response = admin.post("/coupons", {"coupon": INPUT})
    coupon = response.get_json()["coupon"]
    made = {name: coupon[name] for name in ("id", "created_at", "updated_at")}
    assert reply(response) == (201, {"coupon": OUTPUT | made})
    assert read(admin, coupon["id"]) == coupon


def test_create_ignores_what_is_not_accepted(admin):
    given = {
        "code": "summer",
        "id": 4711,
        "created_at": "2001-01-01T00:00:00Z",
        "updated_at": ["not even a date"],
        "status": "trash",
        "author_id": 1,
        "unknown": {"a": [1]},
    }
    response = admin.post("/coupons", {"coupon": given, "other": 1})
    coupon = response.get_json()["coupon"]
    made = {name: coupon[name] for name in ("id", "created_at", "updated_at")}
    assert reply(response) == (201, {"coupon": DEFAULTS | made | {"code": "summer"}})
    assert coupon["id"] != 4711
    assert not coupon["created_at"].startswith("2001")


@pytest.mark.both_databases
def test_create_with_null_everywhere_takes_the_defaults(admin):
    response = admin.post("/coupons", {"coupon": dict.fromkeys(DEFAULTS) | {"code": "summer"}})
    coupon = response.get_json()["coupon"]
    made = {name: coupon[name] for name in ("id", "created_at", "updated_at", "code")}
    assert reply(response) == (201, {"coupon": DEFAULTS | made})


def test_create_with_a_known_type(make_coupon):
    for kind in ("fixed_cart", "percent", "fixed_product", "percent_product"):
        assert make_coupon(type=kind)["type"] == kind


def test_type_unknown(admin, make_coupon):
    coupon = make_coupon()
    for kind in ("", "unknown", "fixed cart", 5):
        create = admin.post("/coupons", {"coupon": {"code": "x", "type": kind}})
        assert reply(create) == INVALID_TYPE, kind
        assert reply(edit(admin, coupon["id"], type=kind)) == INVALID_TYPE, kind


@pytest.mark.both_databases
@pytest.mark.parametrize("code", ["SUMMER", " summer ", "<b>Summer</b>", "su\u0007mmer"])
def test_create_with_a_taken_code(admin, make_coupon, code):
    make_coupon(code="summer")
    assert reply(admin.post("/coupons", {"coupon": {"code": code}})) == TAKEN
    assert count(admin) == {"count": 1}


@pytest.mark.both_databases
@pytest.mark.parametrize("force", ["false", "true"])
def test_create_with_the_code_of_a_deleted_coupon(admin, make_coupon, force):
    first = make_coupon(code="summer")
    admin.delete(f"/coupons/{first['id']}", {"force": force})
    second = make_coupon(code="summer")
    assert second["id"] != first["id"]
    assert reply(by_code(admin, "summer")) == (200, {"coupon": second})


@pytest.mark.both_databases
def test_trash_holds_several_coupons_with_one_code(admin, make_coupon):
    for _ in range(3):
        assert reply(admin.delete(f"/coupons/{make_coupon(code='summer')['id']}")) == TRASHED
    assert reply(by_code(admin, "summer")) == NO_CODE


def test_create_with_a_code_that_cannot_be_stored(admin):
    for code in UNSTORABLE:
        response = admin.post("/coupons", {"coupon": {"code": code}})
        assert codes(response) == (400, "shop_api_cannot_create_coupon"), code
    assert count(admin) == {"count": 0}


# Each row violates its own rule and all later rules. The response reports the first of them.
@pytest.mark.parametrize(
    ("role", "body", "status", "code"),
    [
        ("customer", {"amount": "x"}, 400, "missing_coupon_data"),
        ("customer", {"coupon": {"amount": "x", "type": "x"}}, 400, "invalid_param"),
        ("customer", {"coupon": {"type": "x"}}, 401, "user_cannot_create_coupon"),
        ("administrator", {"coupon": {"type": "x"}}, 400, "missing_coupon_code"),
        ("administrator", {"coupon": {"code": None, "type": "x"}}, 400, "missing_coupon_code"),
        (
            "administrator",
            {"coupon": {"code": "Taken", "type": "x"}},
            400,
            "coupon_code_already_exists",
        ),
        ("administrator", {"coupon": {"code": " ", "type": "x"}}, 400, "invalid_coupon_type"),
        ("administrator", {"coupon": {"code": " "}}, 400, "cannot_create_coupon"),
    ],
)
def test_create_checks_in_the_specified_order(
    client_for, admin, make_coupon, role, body, status, code
):
    make_coupon(code="taken")
    assert codes(client_for(role).post("/coupons", body)) == (status, f"shop_api_{code}")
    assert count(admin) == {"count": 1}
