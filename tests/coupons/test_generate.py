"""Generated coupons: ``POST /coupons/generate`` (migration 3)."""

import re

import pytest
from sqlalchemy import select

from app.db.read_pool import fetch
from app.db.session import db
from app.models import Coupon
from app.schemas.examples import coupons as examples
from tests.api_client import Client, at_the_same_time, codes, refusal, refused_params, reply
from tests.coupons.batches import GENERATE, generate, listed

CHARSET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
COUPON = {"type": "percent", "amount": "10", "usage_limit": 1, "description": "Spring"}


def test_generated_coupons_are_published_with_the_given_fields(admin, make_batch):
    batch = make_batch(25, pattern="####-####", coupon=COUPON)
    shown = {"id": batch["id"], "name": "", "created_at": batch["created_at"], "count": 25}
    assert batch == shown | {
        "prefix": "SPRING-",
        "pattern": "####-####",
        "charset": CHARSET.lower(),
        "unused": 25,
        "reserved": 0,
        "used": 0,
        "trashed": 0,
    }
    found = listed(admin, batch)
    assert len({coupon["code"] for coupon in found}) == len(found) == 25
    same = [{**coupon, "id": 0, "code": ""} for coupon in found]
    assert same == same[:1] * 25
    single = admin.post("/coupons", {"coupon": {"code": "single", **COUPON}}).get_json()["coupon"]
    times = {"created_at": batch["created_at"], "updated_at": batch["created_at"]}
    assert same[0] == single | {"id": 0, "code": ""} | times
    letters = CHARSET.lower()
    for coupon in found:
        assert re.fullmatch(f"spring-[{letters}]{{4}}-[{letters}]{{4}}", coupon["code"])
        by_code = admin.get(f"/coupons/code/{coupon['code'].upper()}").get_json()["coupon"]
        assert by_code == coupon
    assert admin.get("/coupons/count").get_json() == {"count": 26}
    assert admin.get("/coupons/count", {"filter[batch]": batch["id"]}).get_json() == {"count": 25}
    assert admin.get("/coupons", {"filter[q]": "spring-"}).headers["X-Total"] == "25"


def test_the_defaults_are_those_of_a_coupon(admin, make_batch, make_coupon):
    for over in ({}, {"coupon": None}, {"coupon": {}}, {"prefix": None, "pattern": None}):
        (coupon, *_) = listed(admin, make_batch(1, **over))
        plain = make_coupon()
        same = {name: plain[name] for name in ("id", "code", "created_at", "updated_at")}
        assert coupon | same == plain


def test_a_batch_writes_one_event(admin, make_batch):
    batch = make_batch(25)
    (event,) = admin.get("/events").get_json()["events"]
    assert (event["type"], event["resource"]) == ("coupon_batch.created", "coupon_batch")
    assert (event["resource_id"], event["user_id"]) == (batch["id"], admin.key.user_id)
    names = ("id", "created_at", "count", "prefix", "pattern", "charset")
    assert event["data"] == {"coupon_batch": {name: batch[name] for name in names}}
    generate(admin, pattern="none")
    assert len(admin.get("/events").get_json()["events"]) == 1


def test_input_that_is_not_understood(admin, everything):
    before = everything()
    for name, values in (
        ("count", [0, -1, 10_001, 10**30, "many", None, []]),
        ("pattern", [[], "#" * 501, "#" * 100_000, "a\0#", "<####"]),
        ("prefix", ["R&D-", True]),
        ("charset", ["", "AB-", "A" * 257]),
        ("coupon", [[]]),
    ):
        for value in values:
            response = generate(admin, **{name: value})
            assert refused_params(response) == [f"generate.{name}"], (name, value)
    for field, value in (("amount", "abc"), ("product_ids", 3)):
        response = generate(admin, coupon={field: value})
        assert refused_params(response) == [f"generate.coupon.{field}"]
    assert everything() == before


def test_pattern_that_is_too_small(admin, everything):
    before = everything()
    for over, size in (
        ({"pattern": "no-placeholder"}, "1"),
        ({"charset": "A"}, "1"),
        ({"charset": "aAaA"}, "1"),
        ({"pattern": "####", "charset": "0123456789"}, "10,000"),
        ({"pattern": "<b###########>x"}, "1"),
    ):
        remedy = "Add # signs, or set allow_guessable."
        details = {"size": size, "minimum": "10,000,000", "remedy": remedy}
        assert reply(generate(admin, **over)) == refusal("shop_api_pattern_too_small", **details)
    assert everything() == before


def test_guessable_codes_on_request(admin, make_batch):
    over = {"pattern": "####", "charset": "0123456789", "allow_guessable": True}
    assert make_batch(100, **over)["unused"] == 100
    response = generate(admin, 101, **over)
    details = {"size": "10,000", "minimum": "10,100", "remedy": "Add # signs."}
    assert reply(response) == refusal("shop_api_pattern_too_small", **details)


def test_request_that_is_rejected(admin, everything):
    before = everything()
    too_large = {"count": 10_000, "coupon": {"description": "x" * 20_000}}
    for over, code in (
        ({"coupon": {"type": "gift"}}, "shop_api_invalid_coupon_type"),
        ({"prefix": "x" * 400, "pattern": "#" * 101}, "shop_api_cannot_create_coupon"),
        (too_large, "shop_api_cannot_create_coupon"),
    ):
        assert codes(generate(admin, **over)) == (400, code)
    assert everything() == before


@pytest.mark.parametrize("body", [None, {}, [], {"generate": None}, {"coupon": {}}])
def test_missing_wrapper(admin, body):
    assert reply(admin.post(GENERATE, body)) == refusal("shop_api_missing_generate_data")


def test_checks_come_in_the_specified_order(admin, client_for, everything):
    """Wrapper, types, capability, then what the service decides (decisions 13)."""
    customer = client_for("customer", "read_write")
    before = everything()
    assert codes(customer.post(GENERATE, {})) == (400, "shop_api_missing_generate_data")
    assert refused_params(generate(customer, 0)) == ["generate.count"]
    wrong = {"pattern": "none", "coupon": {"type": "gift"}}
    cannot = refusal("shop_api_user_cannot_create_coupon")
    assert reply(generate(customer, **wrong)) == cannot
    assert reply(generate(customer)) == cannot
    assert codes(generate(admin, **wrong)) == (400, "shop_api_invalid_coupon_type")
    wrong = {"pattern": "none", "prefix": "x" * 500}
    assert codes(generate(admin, **wrong)) == (400, "shop_api_cannot_create_coupon")
    assert codes(generate(client_for("administrator", "read", "reader"))) == (
        401,
        "shop_api_authentication_error",
    )
    after = everything()
    assert after["coupons"] == before["coupons"] == []
    assert after["coupon_batches"] == []


def test_ten_thousand_codes_at_once(app, admin, make_batch):
    batch = make_batch(10_000)
    with app.app_context():
        rows = fetch(select(Coupon.code, Coupon.search_text).where(Coupon.batch_id == batch["id"]))
    assert len({row.code for row in rows}) == 10_000
    assert all(row.search_text == row.code for row in rows)
    assert admin.get(f"/coupons/batches/{batch['id']}").get_json()["batch"]["unused"] == 10_000


def test_codes_of_existing_coupons_are_not_taken(admin, make_batch, statements):
    """Of a hundred codes that the pattern has, 99 are taken. Finding the last one takes no loop."""
    taken = [{"code": f"x-{number:02}"} for number in range(100) if number != 42]
    assert admin.post("/coupons/bulk", {"coupons": taken}).status_code == 200
    over = {"prefix": "X-", "pattern": "##", "charset": "0123456789", "allow_guessable": True}
    statements.clear()
    (coupon,) = listed(admin, make_batch(1, **over))
    assert coupon["code"] == "x-42"
    refused = generate(admin, 1, **over)
    assert len(statements) < 50
    reason = "existing coupons already use most codes of the pattern."
    assert reply(refused) == refusal("shop_api_cannot_create_coupon", reason=reason)
    assert admin.get("/coupons/batches").headers["X-Total"] == "1"


def test_a_coupon_in_the_trash_does_not_block_its_code(admin, make_batch):
    taken = [{"code": f"x-{number:02}"} for number in range(100)]
    created = admin.post("/coupons/bulk", {"coupons": taken}).get_json()["coupons"]
    admin.delete(f"/coupons/{created[42]['id']}")
    over = {"prefix": "X-", "pattern": "##", "charset": "0123456789", "allow_guessable": True}
    (coupon,) = listed(admin, make_batch(1, **over))
    assert coupon["code"] == "x-42"


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_ten_thousand_coupons_are_deleted_in_a_shop_that_had_none(app, make_batch):
    """The first delete finds an empty table, and what PostgreSQL learns from it must not remain."""
    with app.app_context():
        engine = db.engine.execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        make_batch(1)
        connection.exec_driver_sql("DELETE FROM coupons")
        connection.exec_driver_sql("VACUUM ANALYZE coupons, coupons_search")
        connection.exec_driver_sql("DELETE FROM coupons")
        make_batch(10_000)
        # The statement timeout of the service applies.
        assert connection.exec_driver_sql("DELETE FROM coupons").rowcount == 10_000


def test_generation_at_the_same_time_gives_distinct_codes(app, admin, make_coupon):
    """Six requests for 100 of 10,000 codes, which collide with certainty."""
    over = {"prefix": "", "pattern": "####", "charset": "0123456789", "allow_guessable": True}

    def send(_):
        return generate(Client(app, admin.key), 100, **over)

    responses = at_the_same_time(send, range(6))
    assert [response.status_code for response in responses] == [201] * 6
    with app.app_context():
        stored = [row.code for row in fetch(select(Coupon.code))]
    assert len(set(stored)) == len(stored) == 600
    assert {batch["unused"] for batch in admin.get("/coupons/batches").get_json()["batches"]} == {
        100
    }


def test_same_idempotency_key_generates_once(app, admin):
    headers = {"Idempotency-Key": "campaign-1"}
    body = {"generate": {"count": 5}}
    first, *others = at_the_same_time(
        lambda _: Client(app, admin.key).post(GENERATE, body, headers=headers), range(4)
    )
    assert [other.data for other in others] == [first.data] * 3
    assert admin.get("/coupons/count").get_json() == {"count": 5}


def test_example_is_real(admin):
    response = admin.post(GENERATE, {"generate": examples.NEW_BATCH})
    batch = response.get_json()["batch"]
    times = {name: batch[name] for name in ("id", "created_at")}
    assert reply(response) == (201, {"batch": examples.BATCH | times})
