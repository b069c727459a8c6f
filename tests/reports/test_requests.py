"""Requests of reports: periods, errors, rights, order and files (reports 1 and 4)."""

import threading
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from sqlalchemy import event, insert

from app.auth.principals import ROLES, Capability
from app.db.session import db, run_in_transaction
from app.models import COUPON_REFUSALS, COUPONS, ORDER_REFUNDS, ORDERS, REDEMPTIONS
from app.services.reports import scope
from tests.reports.shops import random_shop

LISTS = {
    "coupons": ("uses", "orders", "discount", "revenue"),
    "customers": ("orders", "total", "refunded"),
}
"""The figures by which each list is sorted."""


@pytest.fixture
def client_of(app, admin):
    """Return a function: a client whose key allows some resources."""

    def make(*resources, permission="read"):
        key = {"description": "x", "permission": permission, "resources": list(resources)}
        created = admin.post("/keys", {"key": key}).json["key"]
        pair = (created["consumer_key"], created["consumer_secret"])
        return lambda path: app.test_client().get(path, auth=pair)

    return make


def test_the_default_period_is_30_days_until_today(admin):
    before = datetime.now(UTC).date()
    sales = admin.get("/reports/sales").json["sales"]
    last = datetime.fromisoformat(sales["to"]).date()
    assert before <= last <= datetime.now(UTC).date()
    assert sales["from"] == (last - timedelta(days=29)).isoformat()
    assert (sales["interval"], sales["time_zone"], len(sales["intervals"])) == ("day", "UTC", 30)
    until = admin.get("/reports/sales", {"filter[to]": "2026-03-31"}).json["sales"]
    assert (until["from"], until["to"]) == ("2026-03-02", "2026-03-31")


@pytest.mark.parametrize(
    "query",
    [
        {"filter[from]": "2026-11-02", "filter[to]": "2026-11-01"},
        {"filter[from]": "2024-01-01", "filter[to]": "2026-09-27"},  # 1,001 days
        {"filter[from]": "1970-01-01", "filter[to]": "9000-01-01", "filter[interval]": "year"},
        {"filter[from]": "1969-12-31"},
        {"filter[to]": "9001-01-01"},
        {"filter[from]": "2026-2-1"},
        {"filter[from]": "2026-02-30"},
        {"filter[interval]": "quarter"},
        {"filter[currency]": "EURO"},
        {"format": "xml"},
        {"fields": "orders,revenue"},
        {"fields": "orders,"},
    ],
)
def test_invalid_parameters(admin, query):
    response = admin.get("/reports/sales", query)
    assert response.status_code == 400
    assert {each["code"] for each in response.json["errors"]} == {"shop_api_invalid_param"}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("parameter", ["filter[orderby]", "filter[order]"])
def test_unknown_orders(admin, name, parameter):
    response = admin.get(f"/reports/{name}", {parameter: "net"})
    assert response.json["errors"][0]["code"] == "shop_api_invalid_param"


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("zone", "interval", "first", "last", "expected"),
    [
        ("America/New_York", "day", "2026-11-01", "2026-11-02",
         [("2026-11-01T04:00:00Z", "2026-11-01"), ("2026-11-02T05:00:00Z", "2026-11-02")]),
        ("America/New_York", "week", "2026-11-04", "2026-11-09",
         [("2026-11-02T05:00:00Z", "2026-W45"), ("2026-11-09T05:00:00Z", "2026-W46")]),
        ("Europe/Berlin", "month", "2026-03-31", "2026-04-01",
         [("2026-02-28T23:00:00Z", "2026-03"), ("2026-03-31T22:00:00Z", "2026-04")]),
        ("Asia/Kathmandu", "year", "2026-05-01", "2026-05-01",
         [("2025-12-31T18:15:00Z", "2026")]),
        ("Pacific/Apia", "day", "2011-12-29", "2011-12-31",
         [("2011-12-29T10:00:00Z", "2011-12-29"), ("2011-12-30T10:00:00Z", "2011-12-30"),
          ("2011-12-30T10:00:00Z", "2011-12-31")]),
    ],
)  # fmt: skip
def test_the_first_instant_and_the_label_of_intervals(
    client_with, zone, interval, first, last, expected
):
    query = {"filter[from]": first, "filter[to]": last, "filter[interval]": interval}
    sales = client_with(SHOP_TIMEZONE=zone).get("/reports/sales", query).json["sales"]
    assert [(each["start"], each["label"]) for each in sales["intervals"]] == expected
    assert sales["time_zone"] == zone


def test_hours_of_a_day_with_25_hours(client_with):
    query = {"filter[from]": "2026-11-01", "filter[to]": "2026-11-01", "filter[interval]": "hour"}
    client = client_with(SHOP_TIMEZONE="America/New_York")
    hours = client.get("/reports/sales", query).json["sales"]["intervals"]
    assert len(hours) == 25
    assert [(each["start"], each["label"]) for each in hours[1:3]] == [
        ("2026-11-01T05:00:00Z", "2026-11-01T01:00-04:00"),
        ("2026-11-01T06:00:00Z", "2026-11-01T01:00-05:00"),
    ]


@pytest.mark.both_databases
def test_exactly_1000_intervals(admin):
    query = {"filter[from]": "2024-01-01", "filter[to]": "2026-09-26"}
    assert len(admin.get("/reports/sales", query).json["sales"]["intervals"]) == 1000


@pytest.mark.sample(2)
@pytest.mark.parametrize("path", ["sales", "coupons", "customers", "refusals", "orders"])
def test_reports_require_their_capability(client_for, path):
    for role in ("administrator", "shop_manager"):
        assert client_for(role, "read").get(f"/reports/{path}").status_code == 200
    for role in ("customer", "subscriber"):
        response = client_for(role).get(f"/reports/{path}")
        assert response.status_code == 401
        assert response.json["errors"][0]["code"] == "shop_api_user_cannot_view_reports"
    assert client_for("administrator", "write").get(f"/reports/{path}").status_code == 401


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("path", "also"),
    [("sales", None), ("orders", None), ("coupons", "coupons"), ("refusals", "coupons"),
     ("customers", "customers")],
)  # fmt: skip
def test_reports_require_the_resources_of_what_they_name(client_of, path, also):
    assert client_of("orders")(f"/reports/{path}").status_code == 401
    status = client_of("reports")(f"/reports/{path}").status_code
    assert status == (401 if also else 200)
    if also:
        assert client_of("reports", also)(f"/reports/{path}").status_code == 200


def test_the_report_of_customers_requires_to_list_users(client_for, monkeypatch):
    """No role may view reports, but not list users. A later one could."""
    monkeypatch.setitem(ROLES, "subscriber", frozenset({Capability.VIEW_REPORTS}))
    client = client_for("subscriber")
    paths = ("sales", "coupons", "customers", "refusals", "orders")
    found = {path: client.get(f"/reports/{path}") for path in paths}
    codes = {each.status_code: path for path, each in found.items()}
    assert codes == {200: "orders", 401: "customers"}
    error = found["customers"].json["errors"][0]["code"]
    assert error == "shop_api_user_cannot_view_reports"


def _write_more(app, shop, number):
    """Add to every figure: accounts, an order of a guest, a use, a refund, and other currencies."""
    time, like = datetime(2026, 11, 1, tzinfo=UTC), shop.orders[0]
    order = like | {"id": 200_000 + number, "order_key": f"{number}", "customer_id": None,
                    "billing_email": "Åda@example.com", "billing_first_name": f"New {number}",
                    "status": "completed", "currency": "USD", "created_at": time}  # fmt: skip
    other = order | {"id": 300_000 + number, "order_key": f"other{number}", "currency": "EUR"}
    use = shop.redemptions[0] | {"coupon_id": 1000, "status": "confirmed", "confirmed_at": time}
    uses = [use | {"order_id": each["id"], "reference": f"{each['id']}"} for each in (order, other)]
    refund = {"order_id": order["id"], "created_at": time, "updated_at": time, "reason": "",
              "amount": Decimal(1), "line_items": [], "refunded_by": None}  # fmt: skip
    refusal = {"day": time.date(), "code": "x", "reason": f"expired{number}", "is_known": False,
               "count": 1, "first_at": time, "last_at": time}  # fmt: skip
    rows = {ORDERS: [order, other], REDEMPTIONS: uses, ORDER_REFUNDS: [refund],
            COUPON_REFUSALS: [refusal]}  # fmt: skip
    with app.app_context():
        for table, values in rows.items():
            run_in_transaction(lambda session, t=table, v=values: session.execute(insert(t), v))


@pytest.mark.sample(3)
@pytest.mark.both_databases
@pytest.mark.parametrize("limit", ["100", "-1"])
@pytest.mark.parametrize(
    "path", ["sales", "coupons", "coupons/1000", "customers", "orders", "refusals"]
)
def test_a_report_does_not_show_what_is_written_between_its_statements(app, admin, path, limit):
    shop = random_shop(app, 7, datetime(2026, 11, 1, tzinfo=UTC), currencies=("USD",))
    query = {"filter[from]": "2026-10-01", "filter[to]": "2026-11-30"}
    query |= {"filter[limit]": limit} if path in {"coupons", "customers", "refusals"} else {}
    _write_more(app, shop, 0)
    before, seen = admin.get(f"/reports/{path}", query).json, []

    def write(_connection, _cursor, statement, *_):
        is_of_report = statement.startswith(("SELECT", "WITH")) and "api_keys" not in statement
        if threading.current_thread() is reader and is_of_report:
            seen.append(statement)
            if len(seen) > 1:  # the first statement determines what a report shows
                writer = threading.Thread(target=_write_more, args=(app, shop, len(seen)))
                writer.start()
                writer.join()

    reader = threading.current_thread()
    with app.app_context():
        engines = db.engines["read"], db.engines["stream"]
    for engine in engines:
        event.listen(engine, "before_cursor_execute", write)
    try:
        during = admin.get(f"/reports/{path}", query).json
    finally:
        for engine in engines:
            event.remove(engine, "before_cursor_execute", write)
    assert during == before
    if len(seen) > 1:
        assert admin.get(f"/reports/{path}", query).json != before


@pytest.mark.sample(1)
@pytest.mark.both_databases
@pytest.mark.parametrize("name", LISTS)
def test_lists_are_sorted_and_paged(app, admin, name):
    random_shop(app, 7, datetime(2026, 11, 1, tzinfo=UTC))
    period = {"filter[from]": "2026-10-01", "filter[to]": "2026-11-30"}
    key = f"{name[:-1]}_reports"
    for figure in LISTS[name]:
        for order in ("asc", "desc"):
            query = period | {"filter[orderby]": figure, "filter[order]": order}
            every = admin.get(f"/reports/{name}", query | {"filter[limit]": "-1"}).json[key]
            values = [float(row[figure]) for row in every]
            assert len(values) > 3
            assert values == sorted(values, reverse=order == "desc"), (figure, order)
            page = admin.get(f"/reports/{name}", query | {"filter[limit]": "2", "page": "2"})
            assert (page.json[key], page.headers["X-Total"]) == (every[2:4], str(len(every)))


@pytest.mark.parametrize(
    ("path", "name"),
    [("sales", "sales"), ("coupons", "coupons"), ("customers", "customers"), ("orders", "orders"),
     ("refusals", "refusals"), ("coupons/{}", "coupon-{}")],
)  # fmt: skip
def test_files_are_named_by_their_report_and_period(admin, make_coupon, path, name):
    coupon = make_coupon(code="tea")["id"]
    query = {"format": "csv", "filter[from]": "2026-11-01", "filter[to]": "2026-11-30"}
    response = admin.get(f"/reports/{path.format(coupon)}", query)
    expected = f'attachment; filename="{name.format(coupon)}-2026-11-01-2026-11-30.csv"'
    assert response.headers["Content-Disposition"] == expected


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.both_databases
def test_all_rows_of_a_list_are_streamed(app, admin):
    """A list with more rows than the service has in memory at a time."""
    time = datetime(2026, 11, 1, tzinfo=UTC)
    shop = random_shop(app, "many", time, currencies=("USD",))
    order = shop.orders[0] | {"customer_id": None, "status": "completed", "created_at": time}
    use = shop.redemptions[0] | {"order_id": None, "status": "confirmed", "confirmed_at": time}
    refusal = {"day": time.date(), "reason": "expired", "is_known": False, "count": 1,
               "first_at": time, "last_at": time}  # fmt: skip
    many = range(100_000, 101_234)
    tables = {
        ORDERS: [
            order | {"id": n, "order_key": f"{n}", "billing_email": f"{n}@x.example"} for n in many
        ],
        COUPONS: [shop.coupons[0] | {"id": n, "code": f"many-{n}"} for n in many],
        REDEMPTIONS: [
            use | {"coupon_id": n, "code": f"many-{n}", "reference": f"{n}"} for n in many
        ],
        COUPON_REFUSALS: [refusal | {"code": f"many-{n}"} for n in many],
    }
    with app.app_context():
        for table, rows in tables.items():
            run_in_transaction(lambda session, t=table, r=rows: session.execute(insert(t), r))
    query = {"filter[from]": "2026-10-01", "filter[to]": "2026-11-30", "filter[limit]": "-1"}
    for name in ("coupons", "customers", "refusals"):
        rows = admin.get(f"/reports/{name}", query).json[f"{name[:-1]}_reports"]
        response = admin.get(f"/reports/{name}", query | {"format": "csv"}, buffered=False)
        parts = [part.decode() for part in response.iter_encoded()]
        assert len("".join(parts).splitlines()) == 1 + len(rows) > len(many), name
        assert max(part.count("\n") for part in parts) <= 501, name


@pytest.mark.both_databases
def test_a_statement_that_takes_too_long_names_the_remedy(admin, monkeypatch):
    class TooLong(Exception):
        """The error of a driver."""

    monkeypatch.setattr(scope, "DBAPIError", TooLong)
    monkeypatch.setattr(scope.timeouts, "is_statement_timeout", lambda _error: True)

    def snapshot():
        raise TooLong

    monkeypatch.setattr(scope.read_pool, "snapshot", snapshot)
    response = admin.get("/reports/sales")
    assert response.status_code == 503
    assert "Choose a shorter period." in response.json["errors"][0]["message"]
