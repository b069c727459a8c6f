"""``PUT /coupons/{id}`` (spec 2.1, 4.1; decisions 4, 13)."""

from datetime import UTC, datetime

import pytest

from tests.api_client import codes, refused_params, reply
from tests.coupons.calls import (
    DEFAULTS,
    EVERY_FIELD,
    INPUT,
    NO_CODE,
    OUTPUT,
    TAKEN,
    UNSTORABLE,
    by_code,
    edit,
    read,
)

LONG_AGO = datetime(2020, 2, 29, 12, 30, 15, tzinfo=UTC)


@pytest.mark.both_databases
def test_update_every_field(admin, make_coupon):
    coupon = make_coupon()
    response = edit(admin, coupon["id"], **INPUT)
    updated_at = response.get_json()["coupon"]["updated_at"]
    assert reply(response) == (200, {"coupon": coupon | OUTPUT | {"updated_at": updated_at}})
    assert read(admin, coupon["id"]) == response.get_json()["coupon"]


@pytest.mark.parametrize("field", EVERY_FIELD)
def test_update_of_one_field_leaves_the_others(admin, make_coupon, field):
    given, output = EVERY_FIELD[field]
    coupon = make_coupon(**INPUT | {field: DEFAULTS.get(field, "before")})
    response = edit(admin, coupon["id"], **{field: given})
    updated_at = response.get_json()["coupon"]["updated_at"]
    expected = coupon | {field: output, "updated_at": updated_at}
    assert reply(response) == (200, {"coupon": expected})
    assert read(admin, coupon["id"]) == expected


@pytest.mark.both_databases
def test_update_moves_updated_at_only(admin, make_coupon, store):
    coupon = make_coupon()
    store(coupon["id"], created_at=LONG_AGO, updated_at=LONG_AGO)
    before = datetime.now(UTC).replace(microsecond=0)
    edited = edit(admin, coupon["id"], amount=1).get_json()["coupon"]
    assert edited["created_at"] == "2020-02-29T12:30:15Z"
    assert before <= datetime.fromisoformat(edited["updated_at"]) <= datetime.now(UTC)


def test_update_without_a_supplied_field_changes_nothing(admin, make_coupon, store):
    coupon = make_coupon(**INPUT)
    store(coupon["id"], created_at=LONG_AGO, updated_at=LONG_AGO)
    before = read(admin, coupon["id"])
    unaccepted = {"id": 99, "created_at": "2001-01-01", "updated_at": "2001-01-01"}
    for fields in ({}, dict.fromkeys(INPUT), unaccepted, {"unknown": 1}):
        assert reply(edit(admin, coupon["id"], **fields)) == (200, {"coupon": before}), fields
        assert read(admin, coupon["id"]) == before, fields


@pytest.mark.both_databases
@pytest.mark.parametrize("code", ["summer", "SUMMER", "winter"])
def test_update_of_the_code(admin, make_coupon, code):
    coupon = make_coupon(code="summer")
    edited = edit(admin, coupon["id"], code=code).get_json()["coupon"]
    assert edited["code"] == code.lower()
    assert reply(by_code(admin, code)) == (200, {"coupon": edited})


def test_update_of_the_code_frees_the_old_one(admin, make_coupon):
    coupon = make_coupon(code="summer")
    edit(admin, coupon["id"], code="winter")
    assert reply(by_code(admin, "summer")) == NO_CODE
    assert make_coupon(code="summer")["id"] != coupon["id"]


@pytest.mark.both_databases
def test_update_to_a_taken_code(admin, make_coupon, store):
    make_coupon(code="summer")
    coupon = make_coupon(code="winter")
    store(coupon["id"], updated_at=LONG_AGO)
    before = read(admin, coupon["id"])
    assert reply(edit(admin, coupon["id"], code=" Summer", amount=5)) == TAKEN
    assert read(admin, coupon["id"]) == before


@pytest.mark.both_databases
def test_update_to_the_code_of_a_trashed_coupon(admin, make_coupon):
    admin.delete(f"/coupons/{make_coupon(code='summer')['id']}")
    coupon = make_coupon(code="winter")
    assert edit(admin, coupon["id"], code="summer").get_json()["coupon"]["code"] == "summer"


def test_update_to_a_code_that_cannot_be_stored(admin, make_coupon):
    coupon = make_coupon()
    for code in UNSTORABLE:
        response = edit(admin, coupon["id"], code=code, amount=5)
        assert codes(response) == (400, "shop_api_cannot_update_coupon"), code
    assert read(admin, coupon["id"]) == coupon


@pytest.mark.both_databases
def test_update_of_code_or_description_is_found_by_a_search(admin, make_coupon):
    coupon = make_coupon(code="summer", description="sun")
    edited = edit(admin, coupon["id"], description="Snow").get_json()["coupon"]
    assert admin.get("/coupons", {"filter[q]": "sNOW"}).get_json() == {"coupons": [edited]}
    assert admin.get("/coupons", {"filter[q]": "sun"}).get_json() == {"coupons": []}
    assert admin.get("/coupons", {"filter[q]": "summ"}).get_json() == {"coupons": [edited]}


# Each row violates its own rule and all later rules. The response reports the first of them.
@pytest.mark.parametrize(
    ("role", "coupon_id", "body", "status", "code"),
    [
        ("customer", 999, {"amount": "x"}, 400, "missing_coupon_data"),
        ("customer", 999, {"coupon": {"amount": "x"}}, 400, "invalid_param"),
        ("customer", 999, {"coupon": {"code": "taken", "type": "x"}}, 404, "invalid_coupon_id"),
        ("customer", None, {"coupon": {"code": "taken"}}, 401, "user_cannot_edit_coupon"),
        (
            "administrator",
            None,
            {"coupon": {"code": "Taken", "type": "x"}},
            400,
            "coupon_code_already_exists",
        ),
        ("administrator", None, {"coupon": {"code": " ", "type": "x"}}, 400, "invalid_coupon_type"),
        ("administrator", None, {"coupon": {"code": " "}}, 400, "cannot_update_coupon"),
    ],
)
def test_update_checks_in_the_specified_order(
    client_for, admin, make_coupon, role, coupon_id, body, status, code
):
    make_coupon(code="taken")
    coupon = make_coupon()
    response = client_for(role).put(f"/coupons/{coupon_id or coupon['id']}", body)
    assert codes(response) == (status, f"shop_api_{code}")
    assert read(admin, coupon["id"]) == coupon


def test_rejected_update_changes_nothing(admin, make_coupon):
    coupon = make_coupon()
    response = edit(admin, coupon["id"], description="new", code="new", amount="x", usage_limit=[])
    assert sorted(refused_params(response)) == ["coupon.amount", "coupon.usage_limit"]
    assert read(admin, coupon["id"]) == coupon
