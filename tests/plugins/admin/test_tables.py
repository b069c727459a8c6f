"""Filters, sizes and CSV files of the tables of records."""

import csv
import io

import pytest

from app.db import search
from app.plugins.admin import reports


@pytest.fixture
def shop(admin):
    """Two customers, orders of different days and totals, whose IDs it returns, and coupons."""

    def add(path, name, **values):
        return admin.post(path, {name: values}).json[name]

    ada = add("/customers", "customer", email="ada@example.com", first_name="Ada", tags=["vip"])
    add("/customers", "customer", email="bob@example.com", first_name="=Bob")
    numbers = []
    for day, price, currency in ((1, "10", "USD"), (2, "20", "EUR"), (3, "30", "USD")):
        order = add(
            "/orders",
            "order",
            customer_id=ada["id"],
            status="completed",
            currency=currency,
            created_at=f"2026-05-0{day}T23:30:00Z",
            billing_address={"first_name": "Ada", "email": "ada@example.com", "city": "Köln"},
            line_items=[{"name": "Tea", "price": price, "quantity": 1}],
        )
        numbers.append(order["id"])
    for number in range(30):
        add("/coupons", "coupon", code=f"code {number:02}", amount=str(number + 1))
    return numbers


def rows_of(page):
    assert page.headers["Content-Type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(page.html.removeprefix("\ufeff"))))


def places(page, shop):
    return [place for place, each in enumerate(shop, 1) if f">#{each}</a>" in page.html]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("from=2026-05-02", [2, 3]),
        ("to=2026-05-02", [1, 2]),
        ("from=2026-05-02&to=2026-05-02", [2]),
        ("total_min=20", [2, 3]),
        ("total_min=10.01&total_max=29.99", [2]),
        ("from=2026-05-01&total_max=10", [1]),
    ],
)
def test_orders_by_day_and_total(shop, browser, query, found):
    page = browser.get(f"/orders?{query}")
    assert places(page, shop) == found
    assert f"All {len(found)} " in page.text


def test_days_are_those_of_the_shop(app, monkeypatch, shop, browser):
    monkeypatch.setitem(app.config, "SHOP_TIMEZONE", "Europe/Berlin")
    page = browser.get("/orders?from=2026-05-03&to=2026-05-03")
    assert places(page, shop) == [2]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("total_spent_min=0.01", ["Ada"]),
        ("total_spent_max=0", ["=Bob"]),
        ("total_spent_min=60&sort=total_spent&order=desc", ["Ada"]),
        ("total_spent_min=60.01", []),
        ("role=all&total_spent_max=59.99&from=2026-01-01", ["=Bob"]),
        ("to=2020-01-01", []),
    ],
)
def test_customers_by_day_and_spent(shop, browser, query, found):
    page = browser.get(f"/customers?{query}")
    assert [each for each in ("Ada", "=Bob") if f">{each}</a>" in page.html] == found


def test_an_amount_that_is_not_a_number_is_an_error(shop, admin):
    for path, name in (("/orders", "total_min"), ("/customers", "total_spent_max")):
        response = admin.get(f"{path}?{name}=ten")
        assert response.status_code == 400
        assert name in response.json["errors"][0]["message"]


@pytest.mark.both_databases
def test_csv_of_what_the_table_shows(shop, browser):
    orders = rows_of(browser.get("/orders?total_min=20&sort=total&order=asc&format=csv"))
    assert [
        (row["Order"], row["Customer"], row["Ordered"], row["Total"], row["Currency"], row["City"])
        for row in orders
    ] == [
        (str(shop[1]), "Ada", "2026-05-02 23:30", "20.00", "EUR", "Köln"),
        (str(shop[2]), "Ada", "2026-05-03 23:30", "30.00", "USD", "Köln"),
    ]
    customers = rows_of(browser.get("/customers?sort=total_spent&order=asc&format=csv"))
    assert [(row["Name"], row["Spent"], row["Tags"]) for row in customers] == [
        ("'=Bob", "0.00", ""),
        ("Ada", "60.00", "vip"),
    ]
    coupons = rows_of(browser.get("/coupons?q=code+1&sort=amount&order=desc&format=csv&rows=25"))
    assert [(row["Code"], row["Amount"], row["State"]) for row in coupons] == [
        (f"code {number}", f"{number + 1}.00", "Active") for number in range(19, 9, -1)
    ]
    assert "{" not in "".join(coupons[0].values())


def test_csv_of_the_trash(shop, browser, admin):
    admin.delete(f"/orders/{shop[1]}")
    (row,) = rows_of(browser.get("/orders?state=trash&format=csv"))
    assert (row["Order"], row["Status"]) == (str(shop[1]), "Completed")
    assert "Download CSV" in browser.get("/orders?state=trash").text


@pytest.mark.both_databases
def test_numbers_of_rows(shop, browser):
    page = browser.get("/coupons?sort=code&order=asc")
    assert page.html.count('name="id"') == 10
    assert "/admin/coupons?sort=code&amp;order=asc&amp;rows=25" in page.html
    page = browser.get("/coupons?sort=code&order=asc&rows=25")
    assert page.html.count('name="id"') == 25
    assert "1\N{EN DASH}25 of 30" in page.text
    page = browser.get("/coupons?sort=code&order=asc&rows=25&page=2")
    assert [f"code {number}" in page.text for number in (24, 25, 29)] == [False, True, True]
    assert browser.get("/coupons?rows=7").html.count('name="id"') == 10
    assert browser.get("/customers?rows=50").status == browser.get("/orders?rows=100").status == 200


def test_page_is_not_read_from_a_replica(shop, browser, monkeypatch):
    """It shows what was just written, whatever its size. Files are read from a replica."""
    monkeypatch.setattr(reports, "current_replicas", pytest.fail)
    assert browser.get("/coupons?rows=25").status == 200


def test_csv_needs_the_right_of_the_list(shop, new_browser):
    assert (
        new_browser("eva", "administrator", resources=["coupons"]).get("/orders?format=csv").status
        == 401
    )


def test_a_total_that_is_not_complete_has_a_plus(shop, browser, monkeypatch):
    monkeypatch.setattr(search, "MOST_COUNTED", 26)
    page = browser.get("/coupons?q=code")
    assert "of 26+" in page.text
    assert "Select all 26+ that match" in page.text
    assert "of 30" in browser.get("/coupons").text


def test_a_table_says_that_two_letters_are_looked_for_in_the_newest_orders(
    shop, browser, monkeypatch
):
    monkeypatch.setitem(search.MOST_COMPARED, "orders", 2)
    note = "One or two letters are looked for in the newest records only."
    for letters in ("zq", "ex"):  # none and some of the newest orders have them
        assert note in browser.get(f"/orders?q={letters}").text
    assert note not in browser.get("/orders?q=zqx").text
    assert note not in browser.get("/customers?q=zq").text
