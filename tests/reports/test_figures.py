"""The figures of reports, compared with an independent computation on random shops (reports 3)."""

import csv
import io
from datetime import timedelta
from decimal import Decimal

import pytest

from tests.api_client import refused_params
from tests.reports.independent import Reports
from tests.reports.shops import random_shop, utc

ZONES = {
    "America/New_York": "2026-11-01",  # the day has 25 hours
    "UTC": "2026-11-01",
    "Pacific/Apia": "2011-12-30",  # the day did not exist
    "Asia/Kathmandu": "2026-03-08",
    "Europe/Berlin": "2026-03-29",  # the day has 23 hours
    "Australia/Lord_Howe": "2026-04-05",  # the clock goes back by half an hour
}


@pytest.fixture
def plugged(client_with):
    """Return a function: a client of an app whose plugin has two statuses, of which one is paid."""

    def make(**over):
        client = client_with(SHOP_NAME="Reports", **over)  # an app of its own
        catalog = client.app.extensions["shop_api"]
        for name in {"shipped", "packed"} - catalog.order_statuses.keys():
            catalog.add_order_status(name, name.capitalize())
        client.app.config["SHOP_PAID_STATUSES"] = ("processing", "completed", "shipped")
        return client

    return make


def days(middle, before, after):
    day = utc(middle).date()
    return str(day - timedelta(days=before)), str(day + timedelta(days=after))


def params(first, last, **more):
    return {"filter[from]": first, "filter[to]": last} | {
        name if name in {"page", "format"} else f"filter[{name}]": value
        for name, value in more.items()
    }


@pytest.fixture(params=ZONES)
def case(app, request, plugged):
    """A random shop, a client, and a function that returns the independent reports of days."""
    zone = request.param
    shop = random_shop(app, f"{zone} 1", utc(ZONES[zone]))
    client = plugged(SHOP_TIMEZONE=zone)

    def reports(before, after, currency="USD"):
        first, last = days(ZONES[zone], before, after)
        return Reports(shop, zone, first, last, currency), params(first, last, currency=currency)

    return client, reports


@pytest.mark.sample(1)
@pytest.mark.both_databases
def test_sales(case):
    client, reports = case
    for interval in ["hour", "day", "week", "month", "year"]:
        for currency in ["USD", "EUR"]:
            expected, query = reports(3, 4, currency)
            sales = client.get("/reports/sales", query | {"filter[interval]": interval}).json[
                "sales"
            ]
            previous = expected.previous().sales()
            assert sales["totals"] == {**expected.sales(), "previous": previous}, (
                interval,
                currency,
            )
            assert sales["currencies"] == expected.currencies(), (interval, currency)
            found = {each["label"]: each for each in sales["intervals"]}
            assert len(found) == len(sales["intervals"]), (interval, currency)
            by_interval = expected.by_interval(interval, expected.sales)
            for label, figures in found.items():
                start = figures.pop("start")
                assert start.endswith("Z"), (interval, currency)
                del figures["label"]
                wanted = by_interval.pop(label, None)
                if wanted is None:
                    assert {figures["orders"], figures["uses"], figures["new_customers"]} == {0}, (
                        interval,
                        currency,
                    )
                else:
                    assert figures == wanted, (interval, currency)
            assert by_interval == {}, (interval, currency)


@pytest.mark.both_databases
@pytest.mark.parametrize("currency", ["USD", "EUR"])
def test_sales_of_a_shop_with_one_currency(app, plugged, currency):
    shop = random_shop(app, "one currency", utc("2026-11-01"), currencies=("USD",))
    first, last = days("2026-11-01", 9, 9)
    sales = plugged().get("/reports/sales", params(first, last, currency=currency)).json["sales"]
    expected = Reports(shop, "UTC", first, last, currency)
    assert sales["totals"] == {**expected.sales(), "previous": expected.previous().sales()}
    assert sales["currencies"] == expected.currencies()


@pytest.mark.sample(1)
@pytest.mark.both_databases
def test_coupons(case):
    client, reports = case
    for currency in ["USD", "EUR"]:
        expected, query = reports(6, 6, currency)
        rows = client.get("/reports/coupons", query | {"filter[limit]": "-1"}).json[
            "coupon_reports"
        ]
        code = lambda row: row["coupon"]["code"]  # noqa: E731  # as short as its use
        assert sorted(rows, key=code) == sorted(expected.coupons(), key=code), currency


@pytest.mark.sample(1)
@pytest.mark.both_databases
def test_one_coupon(case):
    client, reports = case
    expected, query = reports(6, 6)
    for coupon in expected.shop.coupons:
        of_coupon = lambda use, own=coupon["id"]: use["coupon_id"] == own  # noqa: E731  # as short as its use
        report = client.get(f"/reports/coupons/{coupon['id']}", query).json["coupon_report"]
        about = {name: coupon[name] for name in ("id", "code", "type", "status")}
        previous = expected.previous().coupon(of_coupon)
        assert report["coupon"] == about
        assert report["totals"] == {**expected.coupon(of_coupon), "previous": previous}
        by_day = expected.by_interval("day", lambda own=of_coupon: expected.coupon(own))
        for each in report["intervals"]:
            each.pop("start")
            label = each.pop("label")
            if label in by_day:
                assert each == by_day[label]
            else:
                assert each["uses"] == each["orders"] == 0


@pytest.mark.sample(1)
def test_some_figures_of_sales(case):
    client, reports = case
    expected, query = reports(3, 4)
    for wanted in ["average_order,uses", "net,tax", "customers", "new_customers,items", "refunds"]:
        names = wanted.split(",")
        sales = client.get("/reports/sales", query | {"fields": wanted}).json["sales"]
        previous, totals = expected.previous().sales(), expected.sales()
        assert sales["totals"].pop("previous") == {name: previous[name] for name in names}, wanted
        assert sales["totals"] == {name: totals[name] for name in names}, wanted
        lines = client.get("/reports/sales", query | {"fields": wanted, "format": "csv"}).text
        assert {*csv.DictReader(io.StringIO(lines)).fieldnames} == {"start", "label", *names}, (
            wanted
        )


@pytest.mark.sample(1)
def test_some_figures_of_coupons(case):
    """Which coupons are listed, and their order, are the same."""
    client, reports = case
    _, query = reports(6, 6)
    for wanted in ["average_order", "customers,last_use", "new_customers,uses"]:
        for limit in ["50", "-1"]:
            query |= {"filter[limit]": limit, "filter[orderby]": "revenue"}
            every = client.get("/reports/coupons", query).json["coupon_reports"]
            names = "coupon", *wanted.split(",")
            expected = [{name: row[name] for name in row if name in names} for row in every]
            found = client.get("/reports/coupons", query | {"fields": wanted}).json[
                "coupon_reports"
            ]
            assert found == expected, (wanted, limit)
            lines = client.get("/reports/coupons", query | {"fields": wanted, "format": "csv"}).text
            columns = csv.DictReader(io.StringIO(lines)).fieldnames
            assert [name for name in columns if not name.startswith("coupon_")] == [*expected[0]][
                1:
            ], (wanted, limit)


@pytest.mark.sample(1)
@pytest.mark.both_databases
def test_customers(case):
    client, reports = case
    for currency in ["USD", "EUR"]:
        expected, query = reports(6, 6, currency)
        rows = client.get("/reports/customers", query | {"filter[limit]": "-1"}).json
        person = lambda row: (row["customer"]["id"], row["customer"]["email"])  # noqa: E731  # as short as its use
        assert sorted(rows["customer_reports"], key=person) == sorted(
            expected.customers(), key=person
        ), currency


@pytest.mark.sample(1)
@pytest.mark.both_databases
def test_orders_by_status(case):
    client, reports = case
    expected, query = reports(6, 6)
    labels = client.get("/orders/statuses").json["order_statuses"]
    assert client.get("/reports/orders", query).json["order_reports"] == expected.statuses(labels)


@pytest.mark.sample(1)
def test_csv_has_the_same_rows(case):
    client, reports = case
    _, query = reports(6, 6)
    lists = {
        "coupons": "coupon_reports",
        "customers": "customer_reports",
        "orders": "order_reports",
    }
    for path in ["sales", "coupons", "customers", "orders"]:
        body = client.get(f"/reports/{path}", query | {"filter[limit]": "-1"}).json
        rows = body["sales"]["intervals"] if path == "sales" else body[lists[path]]
        as_csv = query | {"format": "csv", "filter[limit]": "-1"}
        response = client.get(f"/reports/{path}", as_csv)
        assert response.content_type == "text/csv; charset=utf-8", path
        found = list(csv.DictReader(io.StringIO(response.text)))
        assert len(found) == len(rows) > 0, path
        for row, cells in zip(rows, found, strict=True):
            flat = {}
            for name, value in row.items():
                inner = value.items() if isinstance(value, dict) else [("", value)]
                flat |= {f"{name}_{part}" if part else name: each for part, each in inner}
            shown = {name: "" if each is None else str(each) for name, each in flat.items()}
            assert [*cells.items()] == [*shown.items()], path


@pytest.mark.sample(1)
@pytest.mark.both_databases
@pytest.mark.parametrize("largest", [10**16, 2**63 - 1])
def test_large_sums(app, plugged, largest):
    """JSON parsers round large numbers, and SQLite adds 64-bit integers only."""
    shop = random_shop(app, 2, utc("2026-11-01"), largest=largest)
    client = plugged(SHOP_TIMEZONE="UTC")
    period = "2026-10-25", "2026-11-07"
    expected, query = Reports(shop, "UTC", *period), params(*period)
    if largest > 10**16 and app.config["DATABASE_URL"].startswith("sqlite"):
        for more in ({}, {"format": "csv"}):
            response = client.get("/reports/sales", query | more)
            assert refused_params(response) == ["filter[from]"]
        return
    totals = client.get("/reports/sales", query).json["sales"]["totals"]
    previous = totals.pop("previous")
    assert (totals, previous) == (expected.sales(), expected.previous().sales())
    assert len(totals["discount"]) > len("90071992547409.92")
    for orderby in ("discount", "revenue"):
        rows = client.get("/reports/coupons", query | {"filter[orderby]": orderby}).json
        wanted = sorted(expected.coupons(), key=lambda row: -Decimal(row[orderby]))
        assert rows["coupon_reports"] == wanted
    for limit in ("50", "-1"):
        rows = client.get("/reports/customers", query | {"filter[limit]": limit}).json
        wanted = sorted(expected.customers(), key=lambda row: -Decimal(row["total"]))
        assert [row["total"] for row in rows["customer_reports"]] == [
            row["total"] for row in wanted
        ]


@pytest.mark.sample(6)
@pytest.mark.both_databases
@pytest.mark.parametrize("path", ["coupons", "customers", "refusals"])
@pytest.mark.parametrize("format_", ["json", "csv"])
@pytest.mark.parametrize(("page", "limit"), [(10**30, 10), (1, 10**30), (10**30, 10**30)])
def test_numbers_beyond_those_of_a_database(admin, path, format_, page, limit):
    query = f"page={page}&filter[limit]={limit}&format={format_}"
    response = admin.get(f"/reports/{path}?{query}")
    assert response.status_code == 200
    if format_ == "csv":
        assert len(response.text.splitlines()) == 1  # the names of the columns
    else:
        assert not any(response.get_json().values())
