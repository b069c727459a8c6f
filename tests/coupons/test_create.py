"""``POST /coupons`` (spec 2.1, 4.1; decisions 4, 13)."""

import re
from datetime import UTC, datetime

import pytest

from tests.api_client import codes, reply
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
INVALID_TYPE = (400, {"errors": [{"code": "shop_api_invalid_coupon_type", "message": TYPES}]})


def test_create_with_a_code_only(admin):
    before = datetime.now(UTC).replace(microsecond=0)
    response = admin.post("/coupons", {"coupon": {"code": "summer"}})
    coupon = response.get_json()["coupon"]
    assert reply(response) == (
        201,
        {
            "coupon": DEFAULTS
            | {
                "id": coupon["id"],
                "code": "summer",
                "created_at": coupon["created_at"],
                "updated_at": coupon["created_at"],
            }
        },
    )
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


@pytest.mark.parametrize("kind", ["fixed_cart", "percent", "fixed_product", "percent_product"])
def test_create_with_a_known_type(make_coupon, kind):
    assert make_coupon(type=kind)["type"] == kind


@pytest.mark.parametrize("kind", ["", "unknown", "fixed cart", 5])
def test_type_unknown(admin, make_coupon, kind):
    coupon = make_coupon()
    assert reply(admin.post("/coupons", {"coupon": {"code": "x", "type": kind}})) == INVALID_TYPE
    assert reply(edit(admin, coupon["id"], type=kind)) == INVALID_TYPE


@pytest.mark.both_databases
@pytest.mark.parametrize("code", ["summer", "SUMMER", " summer ", "<b>Summer</b>", "su\u0007mmer"])
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


@pytest.mark.parametrize("code", UNSTORABLE, ids=lambda code: repr(code[:20]))
def test_create_with_a_code_that_cannot_be_stored(admin, code):
    response = admin.post("/coupons", {"coupon": {"code": code}})
    assert codes(response) == (400, "shop_api_cannot_create_coupon")
    assert count(admin) == {"count": 0}


# Each row violates its own rule and all later rules. The response reports the first of them.
CREATE_ORDER = {
    "wrapper key": ("customer", {"amount": "x"}, (400, "shop_api_missing_coupon_data")),
    "types": (
        "customer",
        {"coupon": {"amount": "x", "type": "x"}},
        (400, "shop_api_invalid_param"),
    ),
    "capability": (
        "customer",
        {"coupon": {"type": "x"}},
        (401, "shop_api_user_cannot_create_coupon"),
    ),
    "code required": (
        "administrator",
        {"coupon": {"type": "x"}},
        (400, "shop_api_missing_coupon_code"),
    ),
    "code null": (
        "administrator",
        {"coupon": {"code": None, "type": "x"}},
        (400, "shop_api_missing_coupon_code"),
    ),
    "code unique": (
        "administrator",
        {"coupon": {"code": "Taken", "type": "x"}},
        (400, "shop_api_coupon_code_already_exists"),
    ),
    "type known": (
        "administrator",
        {"coupon": {"code": " ", "type": "x"}},
        (400, "shop_api_invalid_coupon_type"),
    ),
    "storable": (
        "administrator",
        {"coupon": {"code": " "}},
        (400, "shop_api_cannot_create_coupon"),
    ),
}


@pytest.mark.parametrize(
    ("role", "body", "expected"), CREATE_ORDER.values(), ids=list(CREATE_ORDER)
)
def test_create_checks_in_the_specified_order(client_for, admin, make_coupon, role, body, expected):
    make_coupon(code="taken")
    assert codes(client_for(role).post("/coupons", body)) == expected
    assert count(admin) == {"count": 1}
