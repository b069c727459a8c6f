"""The overview and the search."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import update

from app.db.session import now, run_in_transaction
from app.errors import unavailable
from app.models import IMPORT_RUNS, WEBHOOKS
from app.plugins.admin.reports import Plot, Point, change, sparkline, steps


def test_an_empty_shop_shows_the_first_steps_and_loads_the_demo_shop(admin, browser):
    page = browser.get("/")
    assert "Create a coupon" in page.text
    assert "Load the demo shop" in page.text
    assert browser.post("/demo").status == 303
    page = browser.get("/")
    assert "Revenue" in page.text
    assert page.html.count("<svg viewBox") >= 9
    assert "demo-percent" in page.text
    before = admin.get("/orders/count").get_json()
    assert browser.post("/demo").status == 303  # not a second time
    assert admin.get("/orders/count").get_json() == before
    assert browser.get("/?days=365").status == 200


def test_the_first_steps_lead_from_a_coupon_to_its_cart(admin, browser):
    page = browser.get("/")
    assert page.html.count('class="button') == 3
    assert "/coupons/new?then=try" in page.html
    page = browser.submit("/coupons/new?then=try", "_form", code="tea", amount="10")
    coupon = admin.get("/coupons").get_json()["coupons"][0]["id"]
    assert page.location == f"/admin/coupons/{coupon}/try?done=created"
    page = browser.get("/")
    assert "You have created tea." in page.text
    assert f'class="button primary" href="/admin/coupons/{coupon}/try"' in page.html
    assert "Load the demo shop" not in page.text
    redemption = {"code": "tea", "reference": "cart-1", "email": "ada@example.com"}
    admin.post("/redemptions", {"redemption": redemption})
    assert "Revenue" in browser.get("/").text


def test_a_key_that_cannot_know_of_sales_sees_no_first_steps(new_browser):
    page = new_browser("bob", "subscriber").get("/")
    assert "Welcome" not in page.text
    assert "Your key cannot read reports." in page.text
    assert "Your key cannot read orders." in page.text


def test_a_key_for_coupons_alone_sees_the_first_steps_until_a_coupon_is_used(
    admin, make_coupon, new_browser
):
    browser = new_browser(resources=["coupons"])
    assert "Connect your shop" in browser.get("/").text
    coupon = make_coupon(code="tea")
    make_coupon(code="milk")
    page = browser.get("/")
    assert "You have created milk." in page.text
    assert "Connect your shop" in page.text
    assert "no orders yet" not in page.text, "the key cannot know"
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"usage_count": 1}})
    page = browser.get("/")
    assert "Connect your shop" not in page.text
    assert page.text.count("Your key cannot read reports.") == 1
    assert 'name="days"' not in page.html, "a period of reports that it cannot read"


def test_the_search_opens_an_exact_or_single_match(admin, browser):
    one = admin.post("/coupons", {"coupon": {"code": "tea"}}).get_json()["coupon"]
    admin.post("/coupons", {"coupon": {"code": "teapot"}})
    assert browser.get("/search?q=TEA").location == f"/admin/coupons/{one['id']}"
    page = browser.get("/search?q=teap")
    assert page.location.startswith("/admin/coupons/")
    assert "Nothing matches" in browser.get("/search?q=nothing").text
    for number in range(10):
        admin.post("/coupons", {"coupon": {"code": f"teapot-{number}"}})
    page = browser.get("/search?q=eapot")
    assert page.html.count('href="/admin/coupons/') == 10
    assert "/admin/coupons?q=eapot" in page.html
    assert "/admin/customers?q=" not in page.html


def test_an_exact_match_comes_before_newer_ones(admin, browser):
    """Ten newer records contain the text, too."""
    items = [{"name": "Tea", "price": "5", "quantity": 1}]
    number = admin.post("/orders", {"order": {"line_items": items}}).json["order"]["id"]
    own = admin.post("/orders", {"order": {"order_number": "W-1"}}).json["order"]["id"]
    coupon = admin.post("/coupons", {"coupon": {"code": "w-1"}}).json["coupon"]["id"]
    person = {"email": "ada@example.com", "first_name": "Ada"}
    customer = admin.post("/customers", {"customer": person}).json["customer"]["id"]
    for each in range(11):
        more = {"order_number": f"W-1{each}", "transaction_id": f"{number}-{each}"}
        admin.post("/orders", {"order": more})
        admin.post("/coupons", {"coupon": {"code": f"w-1-{each}"}})
        more = {"email": f"{each}ada@example.com", "first_name": "Ada"}
        admin.post("/customers", {"customer": more})
    assert browser.get(f"/search?q={number}").location == f"/admin/orders/{number}"
    assert browser.get(f"/search?q=%23{number}").location == f"/admin/orders/{number}"
    assert browser.get("/search?q=ADA@example.com").location == f"/admin/customers/{customer}"
    page = browser.get("/search?q=W-1")
    found = re.findall(r'<li><a href="/admin/(\w+)/(\d+)"', page.html)
    assert [found[0], found[10]] == [("orders", str(own)), ("coupons", str(coupon))]
    assert len(found) == 20


@pytest.mark.both_databases
def test_the_search_is_one_statement_for_each_kind(browser, statements):
    browser.get("/search")
    for text in "tea", "t", "te", "tea*pot", "%", "#1", "ada@example.com", "\ufffd":
        statements.clear()
        browser.get("/search", query_string={"q": text})
        # The session, and the key that is read again after a second, have their own.
        of_records = [each for each in statements if not re.search("sessions|api_keys", each)]
        assert len(of_records) <= 4, f"{text}: orders, customers, coupons and campaigns"


def test_one_or_two_letters_find_whole_codes_and_lead_to_the_tables(admin, browser):
    for code in ("te", "tea", "x", "te-1"):
        admin.post("/coupons", {"coupon": {"code": code}})
    assert browser.get("/search?q=TE").location.startswith("/admin/coupons/")
    page = browser.get("/search?q=ea")
    assert "One or two characters find whole numbers and codes only." in page.text
    assert "As a request" not in page.text, "of a search without results"
    for kind in ("orders", "customers", "coupons", "campaigns"):
        assert f'href="/admin/{kind}?q=ea"' in page.html


@pytest.mark.parametrize(
    ("value", "before", "words"),
    [
        ("112", "100", "↑ 12% more"), ("88", "100", "↓ 12% less"), ("5", "0", "new"),
        ("100", "100", "as before"), ("0", "0", ""), ("100.5", "100", "↑ 0.5% more"),
    ],
)  # fmt: skip
def test_a_change_in_words(value, before, words):
    assert change(Decimal(value), Decimal(before)) == words


@pytest.mark.parametrize("top", ["0", "1", "3", "7", "99", "100.01", "123456", "0.5"])
def test_grid_lines_are_few_round_and_reach_the_top(top):
    grid = steps(Decimal(top))
    assert grid[0] == 0
    assert grid[-1] >= Decimal(top)
    assert 2 <= len(grid) <= 5


@pytest.mark.both_databases
def test_a_report_that_takes_too_long_leaves_the_rest_of_the_page(admin, browser, monkeypatch):
    order = {"line_items": [{"name": "Tea", "price": "5", "quantity": 1}]}
    admin.post("/orders", {"order": order})
    coupon = admin.post("/coupons", {"coupon": {"code": "tea"}}).get_json()["coupon"]

    def reading(_actor):
        raise unavailable("The report takes longer than a statement may.")

    for module in ("coupons", "lists", "sales"):
        monkeypatch.setattr(f"app.services.reports.{module}.reading", reading)
    page = browser.get("/?days=365")
    assert page.status == 200
    assert page.text.count("takes too long. Choose a shorter period.") == 2
    assert "$5.00" in page.text, "the latest orders"
    assert "Last 7 days" in page.text
    page = browser.get(f"/coupons/{coupon['id']}")
    assert (page.status, "<svg viewBox" in page.html) == (200, False)


def test_axes_of_amounts_name_the_currency(app):
    points = [Point("Nov 1", Decimal(1500))]
    with app.app_context():
        assert Plot("Revenue", points, is_money=True).values == ["$1.5k", "$1k", "$500", "$0"]
        assert Plot("Orders", points).values == ["1.5k", "1k", "500", "0"]


def test_warnings_about_webhooks_and_imports(app, admin, browser, make_coupon):
    use = {"code": make_coupon(code="tea")["code"], "reference": "cart-1"}
    admin.post("/redemptions", {"redemption": use})
    hook = {"name": "ERP", "topics": ["order.*"], "delivery_url": "https://erp.example/"}
    admin.post("/webhooks", {"webhook": hook})
    assert 'class="notice"' not in browser.get("/").html
    long_ago = now() - timedelta(days=1)
    run = {"source": "shop.sql", "created": 1, "updated": 0, "progress_at": long_ago}

    def break_both(session):
        session.execute(update(WEBHOOKS).values(failing_since=long_ago))
        session.execute(IMPORT_RUNS.insert().values(run))

    with app.app_context():
        run_in_transaction(break_both)
    page = browser.get("/")
    assert "Failing webhooks: 1. Open" in page.text
    assert "Interrupted imports: 1. Open" in page.text
    assert '<a href="/admin/webhooks">Open</a>' in page.html
    assert '<a href="/admin/data">Open</a>' in page.html


@pytest.mark.parametrize("values", [["-5", "-1"], ["-5", "0"], ["3", "-5"], ["0", "0"]])
def test_a_sparkline_stays_within_its_picture(values):
    line = re.search(r'd="M(.*?)"', sparkline([Decimal(each) for each in values]))[1]
    assert all(0 <= float(pair.split()[1]) <= 28 for pair in line.split("L"))
