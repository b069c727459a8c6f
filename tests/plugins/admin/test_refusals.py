"""The page of refused codes, with the test client."""

import pytest

from app.services.coupons.refusals import refusals_of


@pytest.fixture
def refuse(app, admin):
    """Return a function: evaluates codes, and writes the refusals."""

    def evaluate(*codes):
        for code in codes:
            admin.post("/coupons/evaluate", {"cart": {"coupons": [code], "items": []}})
        refusals_of(app).flush()

    return evaluate


def test_page_without_refusals_explains_itself(browser):
    assert browser.get("/refusals").status == 200


def test_each_refused_code_has_its_likely_repair(admin, browser, make_coupon, refuse):
    near = make_coupon(code="summer15")
    old = make_coupon(code="oldie", expiry_date="2020-01-01")
    refuse("sumer15", "summer51", "oldie", "nothing-like-it")
    page = browser.get("/refusals")
    assert page.status == 200
    assert page.html.count(f'href="/admin/coupons/{near["id"]}">summer15</a>') == 2
    assert f"/admin/coupons/new?from={old['id']}" in page.html
    assert "Duplicate with a new date" in page.text
    assert "nothing-like-it" in page.text
    page = browser.get("/refusals?days=7")
    assert page.html.count('class="bar-mark open"') == 1, "today"
    assert page.html.count('<th scope="row">') == 7
    reports = admin.get("/reports/refusals").get_json()["refusal_reports"]
    assert f'<td class="number">{sum(each["count"] for each in reports)}</td>' in page.html
    assert browser.get("/refusals?days=x&page=2").status == 200


def test_refused_codes_are_escaped(browser, refuse):
    refuse("<script>alert(1)</script>")
    assert "<script>alert" not in browser.get("/refusals").html


def test_page_needs_the_capability(new_browser):
    assert new_browser(login="sue", role="customer").get("/refusals").status == 401


def test_carts_that_are_tried_on_a_page_do_not_count(admin, browser, make_coupon, refuse):
    coupon = make_coupon(code="tea", minimum_amount="50.00")["id"]
    cart = {"items.0.price": "5", "items.0.quantity": "1", "coupons": "unknown"}
    page = browser.post(f"/coupons/{coupon}/try", cart)
    assert page.text.count("Does not apply") == 2
    refuse("other")
    codes = [row["code"] for row in admin.get("/reports/refusals").json["refusal_reports"]]
    assert codes == ["other"]
