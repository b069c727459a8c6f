"""The pages of reports, with the test client."""

import csv
import io

import pytest


@pytest.fixture
def sold(admin):
    """A shop with two orders, a refund and a coupon of a campaign."""
    campaign = admin.post("/campaigns", {"campaign": {"name": "Spring"}}).json["campaign"]["id"]
    coupons = [
        {"code": "spring", "amount": "5", "campaign_id": campaign},
        {"code": "other", "amount": "1"},
    ]
    for coupon in coupons:
        assert admin.post("/coupons", {"coupon": coupon}).status_code == 201
    customer = {"email": "ada@example.com", "first_name": "Ada", "last_name": "King"}
    customer_id = admin.post("/customers", {"customer": customer}).json["customer"]["id"]
    items = [{"name": "Mug", "product_id": 4, "price": "20.00", "quantity": 2}]
    for code, more in (("spring", {"customer_id": customer_id}), ("other", {})):
        order = {
            "status": "completed",
            "line_items": items,
            "coupon_lines": [{"code": code}],
            **more,
        }
        response = admin.post("/orders", {"order": order})
        assert response.status_code == 201, response.json
    order_id = response.json["order"]["id"]
    refund = {"order_refund": {"amount": "9.00"}}
    assert admin.post(f"/orders/{order_id}/refunds", refund).status_code == 201
    return campaign


@pytest.mark.usefixtures("sold")
def test_sales_have_figures_before_and_after_refunds(browser):
    page = browser.get("/reports")
    assert page.status == 200
    assert "Revenue $74.00" in page.text
    assert "Refunds $9.00" in page.text
    assert "before: $0.00" in page.text
    assert "30 entries" in page.text, "each day of the period"
    assert "Revenue is the sum of the orders before refunds." in page.text
    page = browser.get("/")
    assert "$65.00 after refunds" in page.text
    assert "? Revenue is the sum of the orders before refunds." in page.text


def test_coupons_of_one_campaign(browser, sold):
    page = browser.get("/reports?state=coupons")
    assert ("spring" in page.text, "other" in page.text) == (True, True)
    assert page.text.index("spring") < page.text.index("other"), "the larger discount first"
    page = browser.get("/reports?state=coupons&sort=discount&order=asc")
    assert page.text.index("other") < page.text.index("spring")
    page = browser.get(f"/reports?state=coupons&campaign={sold}")
    assert ("spring" in page.text, ">other<" in page.html) == (True, False)


@pytest.mark.usefixtures("sold")
def test_customers_and_refusals(browser):
    page = browser.get("/reports?state=customers")
    assert "Ada King" in page.text
    assert "Guest 1 $39.00" in " ".join(
        page.text.replace("Orders ", "").replace("Revenue ", "").split()
    )
    assert browser.get("/reports?state=refusals").status == 200


def test_an_account_without_name_and_address_is_named_by_its_id(browser, new_browser, admin):
    number = new_browser("bob", "customer").key.user_id
    order = {
        "status": "completed",
        "customer_id": number,
        "line_items": [{"name": "A", "price": "1"}],
    }
    path = f"/orders/{admin.post('/orders', {'order': order}).json['order']['id']}"
    link = f'href="/admin/customers/{number}">#{number}</a>'
    for page in ("/reports?state=customers", path):
        assert link in browser.get(page).html, page
    assert f"#{number}" in browser.get("/orders").text


@pytest.mark.usefixtures("sold")
def test_a_free_period_keeps_its_form_without_rows(browser):
    page = browser.get("/reports?state=coupons&from=2020-01-01&to=2020-01-31")
    assert 'value="2020-01-31"' in page.html
    assert "Nothing matches." in page.text
    page = browser.get("/reports?from=2020-01-01&to=2020-03-31&interval=month")
    assert [label in page.text for label in ("2020-01", "2020-02", "2020-03")] == [True] * 3
    assert "3 entries" in page.text
    page = browser.get("/reports?from=2020-02-01&to=2020-01-01")
    assert page.status == 400


@pytest.mark.usefixtures("sold")
@pytest.mark.parametrize("name", ["", "coupons", "customers", "refusals"])
def test_all_rows_as_csv(admin, browser, name):
    page = browser.get(
        f"/reports?state={name}&from=2026-01-01&to=2030-12-31&interval=year&format=csv"
    )
    assert page.response.mimetype == "text/csv"
    path = f"/reports/{name or 'sales'}"
    query = {"from": "2026-01-01", "to": "2030-12-31", "format": "csv"}
    query |= {"limit": -1} if name else {"interval": "year"}
    expected = admin.get(path, query).get_data(as_text=True)
    assert page.html == expected
    assert len(list(csv.reader(io.StringIO(page.html)))) > (0 if name == "refusals" else 1)


def test_a_key_without_reports_has_no_page(new_browser):
    browser = new_browser(role="shop_manager", resources=["coupons"])
    assert browser.get("/reports").status == 401
    assert "/admin/reports" not in browser.get("/coupons").html
