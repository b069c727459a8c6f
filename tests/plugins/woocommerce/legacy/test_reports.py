"""Reports of the legacy API, in the form and with the arithmetic of the recorded server."""

from datetime import timedelta
from decimal import Decimal

import pytest
from flask import Flask

from app.db.session import now
from app.plugins.woocommerce.reports import woocommerce_period
from tests.factories import LINE_ITEM, insert_order
from tests.reports.shops import utc

REPORTS = "/wc-api/v3/reports"
SALES = f"{REPORTS}/sales"


def order(app, created, **over):
    """Insert an order of 20.00 with 2.00 of taxes, 1.50 of shipping and 3 units."""
    sums = {
        "total": Decimal("20.00"), "cart_tax": Decimal("1.50"), "shipping_tax": Decimal("0.50"),
        "total_shipping": Decimal("1.50"), "total_discount": Decimal("0.25"),
    }  # fmt: skip
    given = {"created_at": utc(created), "status": "completed", "currency": "USD", "items": 3}
    return insert_order(app, **sums | given | over)


def refund(admin, order_id, amount):
    body = {"order_refund": {"amount": amount}}
    response = admin.post(f"/orders/{order_id}/refunds", body)
    assert response.status_code == 201, response.text


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_names(admin, version):
    body = admin.get(f"/wc-api/{version}/reports").get_json()
    assert body == {"reports": ["sales", "sales/top_sellers"]}


@pytest.mark.both_databases
def test_sales_by_day(app, admin):
    order(app, "2025-04-01T10:00")
    order(app, "2025-04-01T23:59:59", status="on-hold")
    order(app, "2025-04-02T00:00", status="refunded")
    for status in ("pending", "cancelled", "failed", "trash"):
        order(app, "2025-04-02T12:00", status=status)
    order(app, "2025-04-02T12:00", currency="EUR")
    order(app, "2025-04-03T00:00")
    query = {"filter[date_min]": "2025-04-01", "filter[date_max]": "2025-04-02"}
    day = {"tax": "4.00", "shipping": "3.00", "discount": "0.50", "customers": 0}
    assert admin.get(SALES, query).get_json() == {
        "sales": {
            "total_sales": "60.00",
            "net_sales": "49.50",
            "average_sales": "24.75",
            "total_orders": 3,
            "total_items": 9,
            "total_tax": "6.00",
            "total_shipping": "4.50",
            "total_refunds": 0,
            "total_discount": "0.75",
            "totals_grouped_by": "day",
            "totals": {
                "2025-04-01": {"sales": "40.00", "orders": 2, "items": 6, **day},
                "2025-04-02": {
                    "sales": "20.00", "orders": 1, "items": 3, "tax": "2.00", "shipping": "1.50",
                    "discount": "0.25", "customers": 0,
                },
            },
            "total_customers": 0,
        }
    }  # fmt: skip


@pytest.mark.both_databases
def test_refunds_of_the_period_reduce_its_sales(app, admin):
    order_id = order(app, "2025-04-01T10:00")
    refund(admin, order_id, "5.25")
    sales = admin.get(SALES).get_json()["sales"]  # today
    assert (sales["total_sales"], sales["total_refunds"]) == ("-5.25", 5.25)
    assert next(iter(sales["totals"].values()))["sales"] == "0.00"


@pytest.mark.parametrize(
    ("first", "last", "grouped", "parts"),
    [
        ("2025-04-01", "2025-07-15", "day", 106),
        ("2025-04-01", "2025-07-31", "day", 122),
        ("2025-04-01", "2025-08-01", "month", 5),
        ("2025-04-01", "2025-12-31", "month", 9),
        ("2025-05-01", "2025-04-01", "day", 1),
    ],
)
def test_long_periods_are_grouped_by_month(admin, first, last, grouped, parts):
    query = {"filter[date_min]": first, "filter[date_max]": last}
    sales = admin.get(SALES, query).get_json()["sales"]
    assert (sales["totals_grouped_by"], len(sales["totals"])) == (grouped, parts)
    assert min(sales["totals"]) == first[: 7 if grouped == "month" else 10]


def test_names_of_periods(app: Flask):
    with app.app_context():
        today = now().date()
        first = today.replace(day=1)
        before = first - timedelta(days=1)
        found = {
            name: (period.first, period.last, period.interval)
            for name in (None, "week", "month", "last_month", "year")
            for period in [woocommerce_period(name)]
        }
    assert found == {
        None: (today, today, "day"),
        "week": (today - timedelta(days=6), today, "day"),
        "month": (first, today, "day"),
        "last_month": (before.replace(day=1), before, "day"),
        "year": (today.replace(month=1, day=1), today, "month"),
    }


def test_last_day_alone_begins_twenty_years_ago(admin):
    sales = admin.get(SALES, {"filter[date_max]": "2025-04-01"}).get_json()["sales"]
    assert min(sales["totals"]) == f"{now().year - 20}-{now().month:02}"


@pytest.mark.both_databases
def test_top_sellers(app, admin):
    def lines(*products):
        return [
            {**LINE_ITEM, "product_id": product, "name": f"Product {product}", "quantity": quantity}
            for product, quantity in products
        ]

    order(app, "2025-04-01T10:00", line_items=lines((1, 2), (2, 5)))
    order(app, "2025-04-02T10:00", line_items=lines((1, 4), (3, 5)))
    order(app, "2025-04-02T10:00", line_items=lines((2, 9)), status="refunded")
    order(app, "2025-04-03T10:00", line_items=lines((3, 9)))
    query = {"filter[date_min]": "2025-04-01", "filter[date_max]": "2025-04-02"}
    path = f"{REPORTS}/sales/top_sellers"
    expected = [
        {"title": "Product 1", "product_id": 1, "quantity": 6},
        {"title": "Product 2", "product_id": 2, "quantity": 5},
        {"title": "Product 3", "product_id": 3, "quantity": 5},
    ]
    assert admin.get(path, query).get_json() == {"top_sellers": expected}
    query["filter[limit]"] = "1"
    assert admin.get(path, query).get_json() == {"top_sellers": expected[:1]}
    assert admin.get(path).get_json() == {"top_sellers": []}


def test_top_sellers_without_refunded_units(app, admin):
    lines = [{**LINE_ITEM, "id": each, "product_id": each, "quantity": 4} for each in (1, 2)]
    order_id = order(app, "2025-04-01T10:00", line_items=lines, next_item_id=3)
    body = {"order_refund": {"line_items": [{"id": 1, "quantity": 3, "total": "1.00"}]}}
    refunded = admin.post(f"/orders/{order_id}/refunds", body)
    assert refunded.status_code == 201, refunded.text
    query = {"filter[date_min]": "2025-04-01", "filter[limit]": "1"}
    found = admin.get(f"{REPORTS}/sales/top_sellers", query).get_json()["top_sellers"]
    assert [(each["product_id"], each["quantity"]) for each in found] == [(2, 4)]
    query = {"filter[date_min]": "2025-04-01"}
    found = admin.get(f"{REPORTS}/sales/top_sellers", query).get_json()["top_sellers"]
    assert [(each["product_id"], each["quantity"]) for each in found] == [(2, 4), (1, 1)]
    query["filter[date_max]"] = "2025-04-02"  # the refund is of today
    found = admin.get(f"{REPORTS}/sales/top_sellers", query).get_json()["top_sellers"]
    assert [(each["product_id"], each["quantity"]) for each in found] == [(1, 4), (2, 4)]


@pytest.mark.parametrize("path", ["", "/sales", "/sales/top_sellers"])
def test_the_capability_is_required(client_for, path):
    error = client_for("customer", "read_write").get(REPORTS + path)
    assert error.status_code == 401
    (entry,) = error.get_json()["errors"]
    assert entry["code"] == "woocommerce_api_user_cannot_read_report"
