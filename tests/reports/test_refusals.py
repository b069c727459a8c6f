"""Refused coupon codes: what counts, what is kept, and that no request depends on it (reports 4)."""

from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import select, text, update

from app.db.read_pool import fetch
from app.db.session import db, now, run_in_transaction
from app.models import COUPON_REFUSALS
from app.models.refused_cart import REFUSED_CARTS
from app.services.api_keys.writes import OPERATOR
from app.services.coupons.refusals import MAX_UNKNOWN, CartSummary, refusals_of
from app.services.maintenance import cleanup
from app.services.maintenance.cleanup import sweep
from app.services.reports.refusals import latest_refusals


@pytest.fixture
def refused(app, admin):
    """Return a function: the report, after the numbers are written, without its times."""

    def read(**query):
        refusals_of(app).flush()
        rows = admin.get("/reports/refusals", query).get_json()["refusal_reports"]
        for row in rows:
            assert row["first_at"] <= row["last_at"]
        return [(row["code"], row["coupon_id"], row["reason"], row["count"]) for row in rows]

    return read


def evaluate(client, *codes):
    return client.post("/coupons/evaluate", {"cart": {"coupons": list(codes), "items": []}})


@pytest.mark.both_databases
def test_each_operation_counts_each_code_once(admin, make_coupon, refused):
    coupon = make_coupon(code="spring", minimum_amount="50.00", usage_limit=1)
    evaluate(admin, "Spring", "SPRING", "unknown")
    evaluate(admin, "spring")
    admin.post("/redemptions", {"redemption": {"code": "nothing", "reference": "a"}})
    line = {"coupon_lines": [{"code": "spring"}]}
    admin.post("/orders", {"order": line})
    admin.post("/orders/bulk", {"orders": [line, {}]})
    assert refused() == [
        ("spring", coupon["id"], "minimum_amount", 4),
        ("nothing", None, "not_found", 1),
        ("unknown", None, "not_found", 1),
    ]


def test_legacy_orders_count(admin, make_coupon, refused):
    make_coupon(code="spring", minimum_amount="50.00")
    admin.post("/wc-api/v3/orders", {"order": {"coupon_lines": [{"code": "spring"}]}})
    assert [row[3] for row in refused()] == [1]


def test_accepted_and_repeated_requests_do_not_count(admin, make_coupon, refused):
    make_coupon(code="spring", usage_limit=1)
    use = {"redemption": {"code": "spring", "reference": "a"}}
    key = {"Idempotency-Key": "refused"}
    assert admin.post("/redemptions", use).status_code == 201
    assert admin.post("/redemptions", use).status_code == 200
    orders = {"orders": [{"coupon_lines": [{"code": "spring"}]}]}
    for _ in range(3):  # the stored response
        (result,) = admin.post("/orders/bulk", orders, headers=key).get_json()["orders"]
        assert result["error"]["code"] == "shop_api_coupon_not_applicable"
    assert [row[2:] for row in refused()] == [("usage_limit", 1)]


@pytest.mark.both_databases
def test_reasons_are_counted_by_themselves_and_add_up(admin, make_coupon, refused):
    make_coupon(code="spring", minimum_amount="50.00")
    evaluate(admin, "spring")
    assert [row[2:] for row in refused()] == [("minimum_amount", 1)]
    make_coupon(code="other")
    admin.put(
        "/coupons/{id}".format(**admin.get("/coupons/code/spring").get_json()["coupon"]),
        {"coupon": {"expiry_date": "2020-01-01"}},
    )
    evaluate(admin, "spring")
    evaluate(admin, "spring")
    assert [row[2:] for row in refused()] == [("expired", 2), ("minimum_amount", 1)]


@pytest.mark.parametrize("code", ["ada@example.com", "4111 1111222 33", "1234567"])
def test_personal_codes_are_not_kept(admin, make_coupon, refused, code):
    evaluate(admin, code)
    assert refused() == [("", None, "not_found", 1)]
    coupon = make_coupon(code=code, minimum_amount="1.00")
    evaluate(admin, code)
    assert (code, coupon["id"], "minimum_amount", 1) in refused()


@pytest.mark.slow
@pytest.mark.both_databases
def test_at_most_5000_unknown_codes_of_a_day_are_kept(app, admin, make_coupon, refused):
    make_coupon(code="spring", minimum_amount="50.00")
    counters = refusals_of(app)
    for number in range(MAX_UNKNOWN + 20):
        counters.count([(f"guess {number}", "not_found", CartSummary())])
    counters.flush()
    codes = ("guess 1", "not_found"), ("late", "not_found"), ("spring", "minimum_amount")
    counters.count([(*each, CartSummary()) for each in codes])
    rows = {row[0]: row[3] for row in refused(limit=-1)}
    assert len(rows) == MAX_UNKNOWN + 2
    assert (rows[""], rows["guess 1"], rows["spring"]) == (21, 2, 1)
    assert "late" not in rows


def test_the_first_100_characters_of_a_code_are_kept(app, refused):
    refusals_of(app).count([("x" * 150, "not_found", CartSummary())])
    assert refused() == [("x" * 100, None, "not_found", 1)]


def test_memory_is_bounded(app, refused):
    counters = refusals_of(app)
    for number in range(30_000):
        counters.count([(f"{number}" * 50, "not_found", CartSummary())])
    assert len(counters._pending) <= 2 * MAX_UNKNOWN + 1
    assert sum(row[3] for row in refused(limit=-1)) == 30_000


@pytest.mark.both_databases
def test_days_of_the_shop_and_retention(app, admin, refused):
    with app.app_context():
        kept = app.config["SHOP_EVENTS_DAYS"]
        rows = [
            {"day": now().date() - timedelta(days=age), "code": "x", "reason": "expired",
             "is_known": False, "count": 1, "first_at": now(), "last_at": now()}
            for age in (0, 1, kept, kept + 5)
        ]  # fmt: skip
        run_in_transaction(lambda session: session.execute(COUPON_REFUSALS.insert(), rows))
    day = rows[1]["day"].isoformat()
    assert [row[3] for row in refused(**{"from": day, "to": day})] == [1]
    with app.app_context():
        sweep()
        assert len(fetch(select(COUPON_REFUSALS.c.day))) == 3


def test_requests_do_not_depend_on_the_counters(app, admin, refused):
    """The table of refusals is missing, as in the schema of a release before it."""
    with app.app_context(), db.engine.begin() as connection:
        connection.execute(text("ALTER TABLE coupon_refusals RENAME TO other"))
    try:
        assert evaluate(admin, "unknown").status_code == 200
        refusals_of(app).flush()
    finally:
        with app.app_context(), db.engine.begin() as connection:
            connection.execute(text("ALTER TABLE other RENAME TO coupon_refusals"))
    assert refused() == [("unknown", None, "not_found", 1)]


def test_csv_is_safe_in_spreadsheets(admin, refused):
    evaluate(admin, "=1+1")
    assert refused() == [("=1+1", None, "not_found", 1)]
    response = admin.get("/reports/refusals", {"format": "csv"})
    lines = response.text.splitlines()
    assert lines[0] == "code,coupon_id,reason,count,first_at,last_at"
    assert lines[1].startswith("'=1+1,,not_found,1,")


@pytest.mark.both_databases
def test_the_latest_refusals_have_the_customer_the_sum_and_the_reason(
    app, admin, make_coupon, make_customer
):
    make_coupon(code="spring", minimum_amount="50.00")
    ann, bob = make_customer(email="ann@example.com"), make_customer(email="bob@example.com")
    item = {"price": "12.50", "quantity": 2}
    cart = {"coupons": ["spring", "nothing"], "items": [item]}
    admin.post("/coupons/evaluate", {"cart": cart | {"customer_id": ann["id"]}})
    line = {"name": "Mug", "quantity": 1, "price": "9"}
    order = {"coupon_lines": [{"code": "spring"}], "line_items": [line]}
    admin.post("/orders", {"order": order | {"billing_address": {"email": "Guest@Example.com"}}})
    use = {"code": "typo", "reference": "a", "customer_id": bob["id"]}
    admin.post("/redemptions", {"redemption": use})
    bobs = {"customer_id": bob["id"], "currency": "EUR"}
    admin.post("/orders/bulk", {"orders": [order | bobs]})
    refusals_of(app).flush()

    def latest(**query):
        with app.app_context():
            rows = latest_refusals(OPERATOR, **query)
        return [(row.code, row.email, row.reason, row.total, row.currency) for row in rows]

    assert latest(code="spring") == [
        ("spring", "bob@example.com", "minimum_amount", Decimal("9"), "EUR"),
        ("spring", "guest@example.com", "minimum_amount", Decimal("9"), "USD"),
        ("spring", "ann@example.com", "minimum_amount", Decimal("25"), "USD"),
    ]
    cart = {"coupons": ["Spring"], "items": [], "email": "Bob@example.com"}
    admin.post("/coupons/evaluate", {"cart": cart})
    refusals_of(app).flush()
    assert latest(customer=(bob["id"], bob["email"])) == [
        ("spring", "bob@example.com", "minimum_amount", None, "USD"),
        ("spring", "bob@example.com", "minimum_amount", Decimal("9"), "EUR"),
        ("typo", "bob@example.com", "not_found", None, "USD"),
    ]
    data = admin.get("/persons/data", {"email": "guest@example.com"}).get_json()
    (refused,) = data["person_data"]["refused_codes"]
    assert (refused["code"], refused["total"]) == ("spring", "9.00")
    for person in (
        {"email": "guest@example.com"},
        {"customer_id": ann["id"]},
        {"customer_id": bob["id"]},
    ):
        erased = admin.post("/persons/erase", {"person": person})
        assert erased.status_code == 200, erased.get_json()
    assert latest(code="spring") == []
    with app.app_context():
        left = fetch(select(REFUSED_CARTS.c.email_normalized))
    assert all(row[0].startswith("erased:") for row in left)


@pytest.mark.both_databases
def test_a_refusal_that_is_not_written_yet_is_erased_with_its_guest(app, admin, monkeypatch):
    order = {"status": "completed", "billing_address": {"email": "guest@example.com"}}
    assert admin.post("/orders", {"order": order}).status_code == 201
    cart = {"coupons": ["spring"], "email": "Guest@example.com", "items": []}
    admin.post("/coupons/evaluate", {"cart": cart})
    admin.post("/coupons/evaluate", {"cart": {**cart, "email": "other@example.com"}})
    person = {"person": {"email": "guest@example.com"}}
    assert admin.post("/persons/erase", person).status_code == 200
    refusals_of(app).flush()

    def emails():
        with app.app_context():
            return [row.email for row in latest_refusals(OPERATOR, code="spring")]

    assert emails() == ["other@example.com"]
    later = now() + timedelta(seconds=60)  # the guest comes back
    monkeypatch.setattr("app.services.coupons.refusals.now", lambda: later)
    admin.post("/coupons/evaluate", {"cart": cart})
    refusals_of(app).flush()
    assert emails() == ["guest@example.com", "other@example.com"]


def test_refusals_with_customers_are_kept_for_a_week_and_are_limited(app, admin, monkeypatch):
    monkeypatch.setattr(cleanup, "MOST_REFUSED_CARTS", 3)
    refusals = refusals_of(app)
    for number in range(5):
        refusals.count([(f"code{number}", "not_found", CartSummary())])
    refusals.flush()

    def codes():
        with app.app_context():
            sweep()
            return [row.code for row in fetch(select(REFUSED_CARTS.c.code))]

    assert codes() == ["code2", "code3", "code4"]
    old = update(REFUSED_CARTS).where(REFUSED_CARTS.c.code == "code3")
    with app.app_context():
        past = now() - timedelta(days=8)
        run_in_transaction(lambda session: session.execute(old.values(created_at=past)))
    assert codes() == ["code2", "code4"]
    for number in range(600):
        refusals.count([("x", "not_found", CartSummary(number))])
    refusals.flush()
    with app.app_context():
        assert len(fetch(select(REFUSED_CARTS))) == 2  # of no account


def test_erasing_a_guest_with_refused_codes_only_is_an_event(admin, refused):
    cart = {"coupons": ["nowhere"], "email": "only@example.com", "items": []}
    assert admin.post("/coupons/evaluate", {"cart": cart}).status_code == 200
    refused()
    person = {"person": {"email": "only@example.com"}}
    assert admin.post("/persons/erase", person).status_code == 200
    newest = admin.get("/events", {"order": "desc", "limit": 1}).get_json()["events"]
    assert [each["type"] for each in newest] == ["person.erased"]
    assert admin.post("/persons/erase", person).status_code == 404
