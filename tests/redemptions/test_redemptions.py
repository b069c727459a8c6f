"""Redemptions: reserve, confirm and release, and their cost (redemptions 4 and 6)."""

from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from sqlalchemy import event, update
from sqlalchemy.sql.dml import Insert

from app.db.session import db, run_in_transaction
from app.models import Redemption
from tests.api_client import codes, refusal, reply, without_key
from tests.redemptions.calls import USED_UP, move, post, rejected, reserve, usage_count


def uses(client, code="summer"):
    """Whether the coupon has reached its limit, as an evaluation sees it."""
    body = {"cart": {"coupons": [code], "items": [{"price": 10}]}}
    (result,) = client.post("/coupons/evaluate", body).get_json()["evaluation"]["coupons"]
    return [reason["code"] for reason in result["reasons"]]


# --- reserve ---


@pytest.mark.both_databases
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
                "confirmed_at": None,
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
        "app.services.redemptions.writes.now", lambda: start + timedelta(seconds=next(seconds))
    )
    redemption = post(admin, "summer", "cart-1").get_json()["redemption"]
    assert redemption["updated_at"] == redemption["created_at"]


@pytest.mark.both_databases
def test_the_same_code_and_reference_is_the_same_redemption(admin, make_coupon):
    make_coupon(code="summer", usage_limit=1)
    redemption = reserve(admin)
    again = post(admin, "SUMMER", email="other@example.com")
    assert reply(again) == (200, {"redemption": redemption})
    confirmed = move(admin, redemption, "confirm")
    assert reply(post(admin)) == (200, {"redemption": confirmed})


@pytest.mark.both_databases
def test_use_that_is_released_as_it_expires_cannot_be_confirmed(admin, make_coupon, monkeypatch):
    make_coupon(code="summer", usage_limit=1)
    redemption = reserve(admin)
    expiry = datetime.fromisoformat(redemption["expires_at"])
    times = iter([expiry - timedelta(seconds=1)])
    for module in (
        "services.redemptions.writes",
        "services.redemptions.stored",
        "models.redemption",
    ):
        monkeypatch.setattr(f"app.{module}.now", lambda: next(times, expiry), raising=False)
    assert move(admin, redemption, "release")["status"] == "released"
    monkeypatch.undo()
    response = admin.post(f"/redemptions/{redemption['id']}/confirm")
    assert codes(response) == (409, "shop_api_invalid_redemption_status")


@pytest.mark.parametrize("limit", [1, 0])
def test_reserve_again_after_release(admin, make_coupon, limit):
    make_coupon(code="summer", usage_limit=limit)
    released = move(admin, reserve(admin), "release")
    again = post(admin, amount="1")
    redemption = again.get_json()["redemption"]
    assert again.status_code == 200
    assert (redemption["id"], redemption["status"]) == (released["id"], "reserved")
    assert redemption["amount"] == "1.00"


@pytest.mark.both_databases
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


# --- confirm and release ---


@pytest.mark.both_databases
def test_confirm_and_release(admin, make_coupon):
    coupon = make_coupon(code="summer")
    redemption = reserve(admin)
    confirmed = move(admin, redemption, "confirm")
    assert confirmed == redemption | {
        "status": "confirmed", "expires_at": None, "updated_at": confirmed["updated_at"],
        "confirmed_at": confirmed["updated_at"],
    }  # fmt: skip
    assert move(admin, redemption, "confirm") == confirmed
    assert usage_count(admin, coupon) == 1
    released = move(admin, redemption, "release")
    assert released == confirmed | {
        "status": "released", "updated_at": released["updated_at"], "confirmed_at": None,
    }  # fmt: skip
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
    timestamp = expire(redemption, 30)
    shown = redemption | {"status": "released", "updated_at": timestamp, "expires_at": timestamp}
    assert admin.get(f"/redemptions/{redemption['id']}").get_json() == {"redemption": shown}
    assert move(admin, redemption, "release") == shown
    assert uses(admin) == []
    confirmed = move(admin, redemption, "confirm")
    assert confirmed["status"] == "confirmed"
    assert usage_count(admin, coupon) == 1


@pytest.mark.both_databases
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


@pytest.mark.both_databases
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


@pytest.mark.both_databases
def test_deleted_customer_leaves_the_redemptions(admin, make_coupon, make_customer):
    make_coupon(code="summer")
    ada = make_customer()
    redemption = reserve(admin, customer_id=ada["id"])
    assert redemption["customer_id"] == ada["id"]
    admin.delete(f"/customers/{ada['id']}")
    path = f"/redemptions/{redemption['id']}"
    assert admin.get(path).get_json() == {"redemption": redemption | {"customer_id": 0}}


# --- cost ---


@pytest.mark.both_databases
def test_statements_of_a_redemption(admin, make_coupon, statements):
    code = "counted"
    make_coupon(code=code, usage_limit=5)
    statements.clear()
    reserve(admin, code=code)
    # The coupon, its slot, the redemption, and the event.
    assert len(without_key(statements)) == 4
    statements.clear()
    for number in range(5):
        post(admin, code=code, reference=f"other-{number}")
    statements.clear()
    assert rejected(post(admin, code=code, reference="late")) == USED_UP
    assert len(without_key(statements)) == 2  # a rejection needs no transaction


TODAY = datetime.now(UTC).date()


@pytest.mark.parametrize(
    ("terms", "given", "reasons"),
    [
        ({"expiry_date": str(TODAY)}, {}, ["expired"]),
        ({"expiry_date": str(TODAY + timedelta(2))}, {}, []),
        ({"customer_emails": ["*@example.com"]}, {}, ["email_not_allowed"]),
        ({"customer_emails": ["*@example.com"]}, {"email": "ada@example.com"}, []),
        ({"usage_limit_per_user": 1}, {"email": "ada@example.com"}, []),
        ({"usage_limit": 0}, {}, []),
    ],
    ids=str,
)
def test_first_reservation_of_a_code_checks_its_conditions(
    request, admin, make_coupon, terms, given, reasons
):
    code = request.node.callspec.id.lower()[:60]
    coupon = make_coupon(**({"code": code, "usage_limit": 2} | terms))
    response = post(admin, code=code, **given)
    if reasons:
        assert rejected(response) == reasons
    else:
        assert response.status_code == 201
        stored = response.get_json()["redemption"]
        assert (stored["coupon_id"], stored["status"]) == (coupon["id"], "reserved")
        assert post(admin, code=code, **given).status_code == 200
    count = admin.get("/redemptions/count", {"filter[coupon_id]": coupon["id"]})
    assert count.get_json() == {"count": 0 if reasons else 1}


# SQLite does not show which parts of a statement it ran.
@pytest.mark.both_databases
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
        admin.post("/coupons/evaluate", {"cart": {"coupons": ["summer"], "items": []}})
        event.remove(db.engines["read"], "before_cursor_execute", note)
        (read,) = seen

        def skips_a_count():
            with db.engines["read"].connect() as connection:
                rows = connection.exec_driver_sql(f"EXPLAIN ANALYZE {read[0]}", read[1])
                return sum("never executed" in row[0] for row in rows)

        reserve(admin, reference="first")
        skipped = skips_a_count()
        reserve(admin, reference="second")
        assert skips_a_count() < skipped


@pytest.mark.both_databases
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


def test_reservation_builds_no_statement_and_looks_for_no_metadata(admin, make_coupon, monkeypatch):
    """Both took a tenth of its time."""
    make_coupon(code="summer")
    reserve(admin, reference="cart-1")  # the first one compiles its statements
    work = []
    build = Insert.__init__
    monkeypatch.setattr(
        Insert, "__init__", lambda *given, **more: work.append(given) or build(*given, **more)
    )
    reserve(admin, reference="cart-2")
    assert work == []
