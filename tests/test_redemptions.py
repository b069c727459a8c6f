"""The ledger of redemptions: reserve, confirm, release, read (redemptions 4 and 6)."""

from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from conftest import codes, refusal, refused_params, reply, without_key
from sqlalchemy import event, update

from app.db.session import db, run_in_transaction
from app.models import Redemption

NOT_APPLICABLE = "shop_api_coupon_not_applicable"
USED_UP = ["usage_limit"]
USED_UP_BY_CUSTOMER = ["usage_limit_per_user"]


def post(client, code="summer", reference="cart-1", **over):
    return client.post(
        "/redemptions", {"redemption": {"code": code, "reference": reference} | over}
    )


def reserve(client, code="summer", reference="cart-1", **over):
    response = post(client, code, reference, **over)
    assert response.status_code in {200, 201}, response.get_json()
    return response.get_json()["redemption"]


def move(client, redemption, action):
    response = client.post(f"/redemptions/{redemption['id']}/{action}")
    assert response.status_code == 200, response.get_json()
    return response.get_json()["redemption"]


def rejected(response):
    """The codes of the reasons of a rejection."""
    assert codes(response) == (400, NOT_APPLICABLE)
    (entry,) = response.get_json()["errors"]
    assert entry["param"] == "redemption.code"
    return [reason["code"] for reason in entry["reasons"]]


def usage_count(client, coupon):
    return client.get(f"/coupons/{coupon['id']}").get_json()["coupon"]["usage_count"]


def uses(client, code="summer"):
    """Whether the coupon has reached its limit, as an evaluation sees it."""
    body = {"cart": {"coupons": [code], "items": [{"price": 10}]}}
    (result,) = client.post("/coupons/evaluate", body).get_json()["evaluation"]["coupons"]
    return [reason["code"] for reason in result["reasons"]]


@pytest.fixture
def expire(app):
    """Return a function: let a reservation expire, some seconds ago."""

    def write(redemption, seconds=0):
        moment = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=seconds)
        statement = (
            update(Redemption).where(Redemption.id == redemption["id"]).values(expires_at=moment)
        )
        with app.app_context():
            run_in_transaction(lambda session: session.execute(statement))
        return f"{moment.isoformat()[:19]}Z"

    return write


# --- reserve ---


def test_reserve(admin, make_coupon):
    coupon = make_coupon(code="summer", usage_limit=1)
    response = post(admin, "Summer", " cart-1 ", amount="5.5", email="Ada@example.com")
    redemption = response.get_json()["redemption"]
    assert reply(response) == (
        201,
        {
            "redemption": {
                "id": redemption["id"],
                "coupon_id": coupon["id"],
                "code": "summer",
                "reference": "cart-1",
                "order_id": None,
                "customer_id": 0,
                "email": "Ada@example.com",
                "amount": "5.50",
                "status": "reserved",
                "created_at": redemption["created_at"],
                "updated_at": redemption["created_at"],
                "expires_at": redemption["expires_at"],
            }
        },
    )
    created, expires = (
        datetime.fromisoformat(redemption[name]) for name in ("created_at", "expires_at")
    )
    assert expires - created == timedelta(seconds=900)
    path = f"/redemptions/{redemption['id']}"
    assert reply(admin.get(path)) == (200, {"redemption": redemption})
    assert usage_count(admin, coupon) == 0
    assert uses(admin) == USED_UP


def test_new_redemption_has_one_time_although_a_second_begins(admin, make_coupon, monkeypatch):
    make_coupon(code="summer")
    start, seconds = datetime.now(UTC).replace(microsecond=0), count()
    monkeypatch.setattr(
        "app.services.reservations.now", lambda: start + timedelta(seconds=next(seconds))
    )
    redemption = post(admin, "summer", "cart-1").get_json()["redemption"]
    assert redemption["updated_at"] == redemption["created_at"]


def test_the_same_code_and_reference_is_the_same_redemption(admin, make_coupon):
    make_coupon(code="summer", usage_limit=1)
    redemption = reserve(admin)
    again = post(admin, "SUMMER", email="other@example.com")
    assert reply(again) == (200, {"redemption": redemption})
    confirmed = move(admin, redemption, "confirm")
    assert reply(post(admin)) == (200, {"redemption": confirmed})


@pytest.mark.parametrize("limit", [1, 0])
def test_reserve_again_after_release(admin, make_coupon, limit):
    make_coupon(code="summer", usage_limit=limit)
    released = move(admin, reserve(admin), "release")
    again = post(admin, amount="1")
    redemption = again.get_json()["redemption"]
    assert again.status_code == 200
    assert (redemption["id"], redemption["status"]) == (released["id"], "reserved")
    assert redemption["amount"] == "1.00"


def test_reserve_again_after_expiry(admin, make_coupon, expire):
    make_coupon(code="summer", usage_limit=1)
    first = reserve(admin)
    expire(first)
    renewed = reserve(admin)
    assert renewed == first | {name: renewed[name] for name in ("updated_at", "expires_at")}
    assert rejected(post(admin, reference="cart-2")) == USED_UP
    expire(first)
    reserve(admin, reference="cart-2")
    assert rejected(post(admin)) == USED_UP


@pytest.mark.parametrize(
    ("terms", "over", "expected"),
    [
        ({"usage_limit": 1, "usage_count": 1}, {}, ["usage_limit"]),
        ({"expiry_date": "2020-01-01"}, {}, ["expired"]),
        ({"customer_emails": ["ada@example.com"]}, {}, ["email_not_allowed"]),
        ({"customer_emails": ["ada@example.com"]}, {"email": "ADA@example.com"}, None),
        ({"minimum_amount": 100, "product_ids": [1]}, {}, None),
        (
            {"usage_limit": 1, "usage_count": 2, "expiry_date": "2020-01-01"},
            {},
            ["usage_limit", "expired"],
        ),
    ],
)
def test_reasons(admin, make_coupon, terms, over, expected):
    make_coupon(code="summer", **terms)
    response = post(admin, **over)
    if expected is None:
        assert response.status_code == 201
    else:
        assert rejected(response) == expected


def test_unknown_code_and_a_coupon_in_the_trash(admin, make_coupon):
    assert rejected(post(admin)) == ["not_found"]
    coupon = make_coupon(code="summer")
    redemption = reserve(admin)
    admin.delete(f"/coupons/{coupon['id']}")
    assert rejected(post(admin, reference="cart-2")) == ["not_found"]
    assert reply(post(admin)) == (200, {"redemption": redemption})


# --- limits ---


def test_usage_limit(admin, make_coupon, expire):
    coupon = make_coupon(code="summer", usage_limit=2)
    first, second = (reserve(admin, reference=f"cart-{n}") for n in range(2))
    assert rejected(post(admin, reference="cart-3")) == USED_UP
    move(admin, first, "confirm")
    assert rejected(post(admin, reference="cart-3")) == USED_UP
    move(admin, second, "release")
    third = reserve(admin, reference="cart-3")
    assert rejected(post(admin, reference="cart-4")) == USED_UP
    expire(third)
    reserve(admin, reference="cart-4")
    assert usage_count(admin, coupon) == 1
    move(admin, first, "release")
    assert usage_count(admin, coupon) == 0
    reserve(admin, reference="cart-5")
    assert rejected(post(admin, reference="cart-6")) == USED_UP


def test_usage_count_continues_from_an_update(admin, make_coupon):
    coupon = make_coupon(code="summer", usage_limit=12)
    first, second = (move(admin, reserve(admin, reference=f"{n}"), "confirm") for n in range(2))
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"usage_count": 10}})
    move(admin, reserve(admin, reference="a"), "confirm")
    assert usage_count(admin, coupon) == 11
    reserve(admin, reference="b")
    assert rejected(post(admin, reference="c")) == USED_UP
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"usage_count": 1}})
    for redemption in (first, second):
        move(admin, redemption, "release")
    assert usage_count(admin, coupon) == 0


def test_limit_that_is_set_later_counts_earlier_reservations(admin, make_coupon, expire):
    coupon = make_coupon(code="summer")
    first, second, third = (reserve(admin, reference=f"{n}") for n in range(3))
    move(admin, third, "confirm")
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"usage_limit": 3}})
    assert rejected(post(admin, reference="a")) == USED_UP
    expire(first)
    reserve(admin, reference="a")
    assert rejected(post(admin, reference="b")) == USED_UP
    move(admin, second, "release")
    reserve(admin, reference="b")
    assert rejected(post(admin, reference="c")) == USED_UP


def test_confirm_after_the_limit_was_lowered(admin, make_coupon):
    coupon = make_coupon(code="summer", usage_limit=2)
    both = [reserve(admin, reference=f"{n}") for n in range(2)]
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"usage_limit": 1}})
    for redemption in both:
        assert move(admin, redemption, "confirm")["status"] == "confirmed"
    assert usage_count(admin, coupon) == 2


def customers(make_customer):
    ada = make_customer(email="ada@example.com", billing_address={"email": "billing@example.com"})
    bob = make_customer(email="bob@example.com")
    return {"ada": {"customer_id": ada["id"]}, "bob": {"customer_id": bob["id"]}}


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("ada", "ada", True),
        ("ada", "bob", False),
        ("ada", {"email": "ADA@example.com"}, True),
        ({"email": "ADA@example.com"}, "ada", True),
        ({"email": "x@example.com"}, {"email": "X@Example.com"}, True),
        ({"email": "x@example.com"}, {"email": "y@example.com"}, False),
        ("ada", {"email": "billing@example.com"}, False),
        ({"email": "billing@example.com"}, "ada", False),
        ("ada", {}, False),
        ({}, "ada", False),
        ({}, {}, False),
    ],
)
@pytest.mark.parametrize("usage_limit", [0, 5])
def test_limit_per_user(admin, make_coupon, make_customer, first, second, same, usage_limit):
    known = customers(make_customer)
    make_coupon(code="summer", usage_limit_per_user=1, usage_limit=usage_limit)
    redemption = reserve(admin, **(known[first] if isinstance(first, str) else first))
    other = known[second] if isinstance(second, str) else second
    response = post(admin, reference="cart-2", **other)
    if not same:
        assert response.status_code == 201
        return
    assert rejected(response) == USED_UP_BY_CUSTOMER
    move(admin, redemption, "confirm")
    assert rejected(post(admin, reference="cart-2", **other)) == USED_UP_BY_CUSTOMER
    move(admin, redemption, "release")
    reserve(admin, reference="cart-2", **other)


def test_limit_per_user_knows_the_email_stored_with_a_redemption(admin, make_coupon, make_customer):
    make_coupon(code="summer", usage_limit_per_user=1)
    ada = make_customer(email="ada@example.com")
    reserve(admin, customer_id=ada["id"], email="old@example.com")
    assert rejected(post(admin, reference="2", email="Old@example.com")) == USED_UP_BY_CUSTOMER
    assert rejected(post(admin, reference="2", email="ada@example.com")) == USED_UP_BY_CUSTOMER


# --- confirm and release ---


def test_confirm_and_release(admin, make_coupon):
    coupon = make_coupon(code="summer")
    redemption = reserve(admin)
    confirmed = move(admin, redemption, "confirm")
    assert confirmed == redemption | {
        "status": "confirmed", "expires_at": None, "updated_at": confirmed["updated_at"],
    }  # fmt: skip
    assert move(admin, redemption, "confirm") == confirmed
    assert usage_count(admin, coupon) == 1
    released = move(admin, redemption, "release")
    assert released == confirmed | {"status": "released", "updated_at": released["updated_at"]}
    assert move(admin, redemption, "release") == released
    assert usage_count(admin, coupon) == 0
    response = admin.post(f"/redemptions/{redemption['id']}/confirm")
    assert reply(response) == refusal(
        "shop_api_invalid_redemption_status", reason="it has been released."
    )
    assert admin.get(f"/redemptions/{redemption['id']}").get_json() == {"redemption": released}


@pytest.mark.parametrize("limit", [0, 1])
def test_expired_reservation_counts_as_released(admin, make_coupon, expire, limit):
    coupon = make_coupon(code="summer", usage_limit=limit)
    redemption = reserve(admin)
    moment = expire(redemption, 30)
    shown = redemption | {"status": "released", "updated_at": moment, "expires_at": moment}
    assert admin.get(f"/redemptions/{redemption['id']}").get_json() == {"redemption": shown}
    assert move(admin, redemption, "release") == shown
    assert uses(admin) == []
    confirmed = move(admin, redemption, "confirm")
    assert confirmed["status"] == "confirmed"
    assert usage_count(admin, coupon) == 1


@pytest.mark.parametrize("taken_by", ["reservation", "update"])
def test_expired_reservation_whose_slot_is_taken(admin, make_coupon, expire, taken_by):
    coupon = make_coupon(code="summer", usage_limit=1)
    redemption = reserve(admin)
    expire(redemption)
    if taken_by == "update":
        admin.put(f"/coupons/{coupon['id']}", {"coupon": {"usage_count": 1}})
    else:
        other = reserve(admin, reference="cart-2")
    assert rejected(admin.post(f"/redemptions/{redemption['id']}/confirm")) == USED_UP
    if taken_by == "reservation":
        move(admin, other, "release")
        move(admin, redemption, "confirm")
        assert usage_count(admin, coupon) == 1
        assert rejected(post(admin, reference="cart-3")) == USED_UP


def test_expired_reservation_of_a_coupon_that_has_expired(admin, make_coupon, expire):
    coupon = make_coupon(code="summer", usage_limit=1)
    redemption = reserve(admin)
    expire(redemption)
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"expiry_date": "2020-01-01"}})
    assert move(admin, redemption, "confirm")["status"] == "confirmed"


def test_order_controls_its_redemption(admin, app, make_coupon):
    make_coupon(code="summer")
    redemption = reserve(admin)
    statement = update(Redemption).values(order_id=5, reference="order-5")
    with app.app_context():
        run_in_transaction(lambda session: session.execute(statement))
    for action in ("confirm", "release"):
        response = admin.post(f"/redemptions/{redemption['id']}/{action}")
        assert reply(response) == refusal(
            "shop_api_invalid_redemption_status",
            reason="it belongs to an order. Update the order instead.",
        )


# --- what stays ---


def test_permanently_deleted_coupon_keeps_its_redemptions(admin, make_coupon):
    coupon = make_coupon(code="summer", usage_limit=1)
    redemption = reserve(admin)
    admin.delete(f"/coupons/{coupon['id']}", {"force": "true"})
    kept = redemption | {"coupon_id": None}
    path = f"/redemptions/{redemption['id']}"
    assert admin.get(path).get_json() == {"redemption": kept}
    new = make_coupon(code="summer", usage_limit=1)
    other = reserve(admin)
    assert (other["coupon_id"], other["id"] == kept["id"]) == (new["id"], False)
    assert move(admin, kept, "confirm")["coupon_id"] is None
    assert usage_count(admin, new) == 0


def test_deleted_customer_leaves_the_redemptions(admin, make_coupon, make_customer):
    make_coupon(code="summer")
    ada = make_customer()
    redemption = reserve(admin, customer_id=ada["id"])
    assert redemption["customer_id"] == ada["id"]
    admin.delete(f"/customers/{ada['id']}")
    path = f"/redemptions/{redemption['id']}"
    assert admin.get(path).get_json() == {"redemption": redemption | {"customer_id": 0}}


# --- rejected requests ---


@pytest.mark.one_database
@pytest.mark.parametrize("body", [None, {}, {"redemption": None}, {"cart": {}}])
def test_missing_redemption(admin, body):
    expected = refusal("shop_api_missing_redemption_data")
    assert reply(admin.post("/redemptions", body)) == expected


@pytest.mark.one_database
@pytest.mark.parametrize("code", [None, "", " <b> "])
def test_missing_code(admin, code):
    assert reply(post(admin, code)) == refusal("shop_api_missing_coupon_code")


@pytest.mark.one_database
@pytest.mark.parametrize(
    "over",
    [
        {"reference": None},
        {"reference": ""},
        {"reference": " "},
        {"reference": "x" * 192},
        {"reference": "order-1"},
        {"reference": ["a"]},
        {"expires_in": 59},
        {"expires_in": 604_801},
        {"amount": "a"},
        {"customer_id": "ada"},
        {"email": "x" * 255},
    ],
)
def test_input_that_cannot_be_understood(admin, make_coupon, over):
    make_coupon(code="summer")
    assert refused_params(post(admin, **over)) == [f"redemption.{name}" for name in over]


@pytest.mark.parametrize("customer_id", [-1, 999_999])
def test_unknown_customer(admin, make_coupon, customer_id):
    make_coupon(code="summer")
    _, body = refusal("shop_api_invalid_customer_id", param="redemption.customer_id")
    assert reply(post(admin, customer_id=customer_id)) == (400, body)


def test_capabilities(admin, client_for, make_coupon):
    make_coupon(code="summer")
    redemption = reserve(admin)
    nobody = client_for("customer")
    path = f"/redemptions/{redemption['id']}"
    assert reply(post(nobody, None)) == refusal("shop_api_user_cannot_create_redemption")
    for action in ("confirm", "release"):
        expected = refusal("shop_api_user_cannot_edit_redemption")
        assert reply(nobody.post(f"{path}/{action}")) == expected
    assert reply(nobody.get(path)) == refusal("shop_api_user_cannot_read_redemption")
    assert reply(nobody.get("/redemptions")) == (200, {"redemptions": []})
    assert nobody.get("/redemptions").headers["X-Total"] == "0"
    expected = refusal("shop_api_user_cannot_read_redemptions_count")
    assert reply(nobody.get("/redemptions/count")) == expected


@pytest.mark.parametrize("redemption_id", ["999999", "9" * 30])
def test_unknown_id(admin, redemption_id):
    expected = refusal("shop_api_invalid_redemption_id")
    assert reply(admin.get(f"/redemptions/{redemption_id}")) == expected
    for action in ("confirm", "release"):
        assert reply(admin.post(f"/redemptions/{redemption_id}/{action}")) == expected


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_redemptions_are_native_only(admin, version):
    assert admin.get(f"/wc-api/{version}/redemptions").status_code == 404


def test_idempotency_key(admin, make_coupon):
    make_coupon(code="summer", usage_limit=1)
    body = {"redemption": {"code": "summer", "reference": "1"}}
    first = admin.post("/redemptions", body, headers={"Idempotency-Key": "a"})
    again = admin.post("/redemptions", body, headers={"Idempotency-Key": "a"})
    assert (first.status_code, reply(again)) == (201, reply(first))
    assert again.headers["Idempotent-Replayed"] == "true"


# --- cost ---


def test_statements_of_a_redemption(admin, make_coupon, statements):
    make_coupon(code="summer", usage_limit=5)
    statements.clear()
    reserve(admin)
    # The coupon, the slot with the redemption, the event. SQLite inserts the redemption separately.
    on_sqlite = admin.app.config["DATABASE_URL"].startswith("sqlite")
    assert len(without_key(statements)) == 3 + on_sqlite
    statements.clear()
    for number in range(5):
        post(admin, reference=f"other-{number}")
    statements.clear()
    assert rejected(post(admin, reference="late")) == USED_UP
    assert len(without_key(statements)) == 2  # a rejection needs no transaction


# SQLite does not show which parts of a statement it ran.
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_live_reservations_are_counted_only_at_the_limit(app, admin, make_coupon):
    """A coupon can have any number of live reservations, so counting them can take long."""
    make_coupon(code="summer", usage_limit=2)
    seen = []

    def note(connection, cursor, statement, parameters, *_):
        if "FROM coupons" in statement:
            seen.append((statement, parameters))

    with app.app_context():
        event.listen(db.engines["read"], "before_cursor_execute", note)
        reserve(admin, reference="first")
        event.remove(db.engines["read"], "before_cursor_execute", note)
        (read,) = seen

        def skips_a_count():
            with db.engines["read"].connect() as connection:
                rows = connection.exec_driver_sql(f"EXPLAIN ANALYZE {read[0]}", read[1])
                return any("never executed" in row[0] for row in rows)

        assert skips_a_count()
        reserve(admin, reference="second")
        assert not skips_a_count()


def test_same_reference_takes_no_second_slot(admin, make_coupon):
    """The INSERT finds the earlier redemption after its slot was taken."""
    coupon = make_coupon(code="summer", usage_limit=3)
    first = reserve(admin)
    for _ in range(5):
        assert reply(post(admin)) == (200, {"redemption": first})
    again = admin.post(f"/redemptions/{first['id']}/release").get_json()["redemption"]
    assert again["status"] == "released"
    response = post(admin)
    assert response.status_code == 200
    assert response.get_json()["redemption"]["id"] == first["id"]
    for number in range(2):
        reserve(admin, reference=f"other-{number}")
    assert rejected(post(admin, reference="late")) == USED_UP
    query = {"filter[coupon_id]": coupon["id"], "filter[status]": "reserved"}
    assert admin.get("/redemptions/count", query).get_json() == {"count": 3}
