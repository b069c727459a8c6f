"""What the pages say, and the limits of what they are made of (admin 2, 3 and 5)."""

import html as markup
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import Formatter

import pytest
from sqlalchemy import delete

from app.api.view_docs import documented
from app.db.session import run_in_transaction
from app.errors import ERRORS, ShopError
from app.models import EVENTS
from app.plugins import admin as pages
from app.plugins.admin import NOUNS, html
from app.plugins.admin.calls import operations
from app.plugins.admin.form_fields import specs_of
from app.plugins.admin.forms import ERROR_FIELDS, Form
from app.plugins.admin.nouns import coupon_uses
from app.schemas.orders.refund import OrderRefundCreate

FOLDER = Path(pages.__file__).parent

FORMS = {
    "create_coupon": ("coupon", None), "update_coupon": ("coupon", None),
    "create_coupon_batch": ("coupon_batch", None), "create_customer": ("customer", None),
    "update_customer": ("customer", None), "create_webhook": ("webhook", None),
    "update_webhook": ("webhook", None), "create_order": ("order", None),
    "create_order_refund": ("", OrderRefundCreate),
}  # fmt: skip
"""The operations of forms of records: the resource, or the schema of the form."""


def form_of(name):
    resource, schema = FORMS[name]
    noun = NOUNS.get(resource)
    if noun:
        schema = noun.create_schema if name.startswith("create") else noun.update_schema
    return Form.of_new(specs_of(schema), resource, {})


@pytest.mark.parametrize("code", ERROR_FIELDS)
def test_an_error_of_a_service_stands_beside_its_field(app, code):
    with app.test_request_context():
        names = [name for name in FORMS if code in documented(operations()[name].view, "codes", {})]
        names = names or [
            name
            for name in FORMS
            if ERROR_FIELDS[code] in {spec.name for spec in form_of(name).specs}
        ]
        assert names, "no form has the field"
        for name in names:
            form = form_of(name)
            details = {each[1]: "x" for each in Formatter().parse(ERRORS[code][1]) if each[1]}
            form.note(ShopError(code, **details))
            (field,) = form.errors
            assert field.removeprefix("coupon.") == ERROR_FIELDS[code], name


def test_the_end_of_a_coupon_is_named_in_both_zones(app, monkeypatch):
    year = datetime.now(UTC).year
    with app.test_request_context():
        assert html.works_until(f"{year}-11-30") == "Nov 29, 23:59 UTC"
        monkeypatch.setitem(app.config, "SHOP_TIMEZONE", "America/New_York")
        assert html.works_until(f"{year}-11-30") == "Nov 29, 23:59 UTC (Nov 29, 18:59 in New York)"
        assert html.works_until("") == ""


def test_times_are_local_with_utc_as_a_tooltip_and_as_text_on_the_record(
    app, admin, browser, monkeypatch
):
    monkeypatch.setitem(app.config, "SHOP_TIMEZONE", "America/New_York")
    coupon = admin.post("/coupons", {"coupon": {"code": "tea"}}).json["coupon"]
    page = browser.get(f"/coupons/{coupon['id']}")
    created = datetime.fromisoformat(coupon["created_at"].replace("Z", "+00:00"))
    exact = f"{created:%Y-%m-%d %H:%M:%S} UTC"
    assert f'title="{exact}"' in page.html
    assert f'<small class="muted">{exact}</small>' in page.html
    with app.test_request_context():
        assert html.short_time(created) in page.text


def test_uses_of_a_limit_with_reservations(admin, browser):
    coupon = admin.post("/coupons", {"coupon": {"code": "tea", "usage_limit": 3}}).json["coupon"]
    for number in range(3):
        use = {"code": "tea", "reference": f"cart-{number}"}
        use = admin.post("/redemptions", {"redemption": use}).json["redemption"]
    admin.post(f"/redemptions/{use['id']}/confirm")
    row = browser.get("/coupons?state=used_up").text
    assert "Used up" in row
    assert "3 of 3, 2 of them reserved" in row
    assert "3 of 3 2 of them reserved" in browser.get(f"/coupons/{coupon['id']}").text


def test_addresses_are_links_only_if_they_are_http(app):
    with app.test_request_context():
        link = html.external("https://erp.example/a?b=c")
        assert 'rel="noreferrer noopener"' in link
        assert "(erp.example)" in link
        for text in ("javascript:alert(1)", "//evil.example", "https://a b", "http://[", "data:x"):
            assert "<a " not in html.external(text)


def test_a_use_that_cannot_be_confirmed_says_so_and_offers_both_ways(admin, browser, monkeypatch):
    """The reservation can end before its confirmation, which no request alone can cause."""
    coupon = admin.post("/coupons", {"coupon": {"code": "tea"}}).json["coupon"]["id"]

    def call(name, **arguments):
        if name == "confirm_redemption":
            raise ShopError("shop_api_invalid_redemption_status", reason="it is released")
        raise AssertionError(name)

    monkeypatch.setattr(coupon_uses, "call", call)
    page = browser.submit(f"/coupons/{coupon}/redeem", "_form", email="ada@example.com")
    use = admin.get("/redemptions").json["redemptions"][0]
    assert (page.status, use["status"]) == (409, "reserved")
    assert "The use is reserved, but not confirmed" in page.text
    for way in ("confirm", "release"):
        assert f'action="/admin/coupons/{coupon}/redemptions/{use["id"]}/{way}"' in page.html


def test_unused_codes_of_a_batch_are_downloaded_and_trashed(admin, browser):
    batch = admin.post("/coupons/generate", {"generate": {"count": 3}}).json["batch"]["id"]
    coupon = admin.get("/coupons").json["coupons"][0]
    use = {"code": coupon["code"], "reference": "cart-1"}
    use = admin.post("/redemptions", {"redemption": use}).json["redemption"]["id"]
    admin.post(f"/redemptions/{use}/confirm")
    page = browser.get(f"/batches/{batch}")
    assert "Move 2 unused coupons to the trash?" in page.text
    codes = browser.get(f"/batches/{batch}/codes.csv?unused=1").html
    assert (codes.count("\n"), coupon["code"] in codes) == (3, False)
    assert browser.post(f"/batches/{batch}/trash").status == 303
    assert [each["code"] for each in admin.get("/coupons").json["coupons"]] == [coupon["code"]]


def test_plots_have_a_title_for_each_point_and_their_numbers_as_a_table(admin, browser):
    items = [{"name": "Tea", "price": "5", "quantity": 1}]
    admin.post("/orders", {"order": {"status": "completed", "line_items": items}})
    page = browser.get("/")
    figures = re.findall('<figure class="plot">.*?</figure>', page.html, re.DOTALL)
    assert len(figures) == 3
    for figure in figures:
        assert figure.count("<title>") == figure.count('<th scope="row">') == 30
    assert 'class="series open"' in figures[0], "today has not ended"
    assert "Compared with the 30 days before" in page.text
    assert "↑" not in page.text
    assert page.text.count(" new ") >= 2, "without a previous value"
    for days in ("7", "90", "365"):
        plot = browser.get(f"/?days={days}").html
        assert 0 < plot.count("<title>") / 3 <= 400


def test_no_page_has_inline_styles_or_scripts(admin, browser):
    admin.post("/coupons", {"coupon": {"code": "tea"}})
    for path in ("/", "/coupons", "/coupons/1", "/coupons/1/edit", "/orders", "/data", "/keys"):
        page = browser.get(path)
        assert not re.search(r"\sstyle=|\son\w+=|<style|<script(?! src=)", page.html), path


def test_the_script_and_the_stylesheet_stay_small():
    lines = {
        name: len((FOLDER / "static" / name).read_text().splitlines())
        for name in ("admin.js", "admin.css")
    }
    assert (lines["admin.js"] <= 250, lines["admin.css"] <= 400) == (True, True), lines


def test_history_says_from_when_changes_are_kept(app, admin, browser):
    coupon = admin.post("/coupons", {"coupon": {"code": "tea"}}).json["coupon"]["id"]
    admin.put(f"/coupons/{coupon}", {"coupon": {"description": "green"}})
    assert "are not kept" not in browser.get(f"/coupons/{coupon}").text
    created = delete(EVENTS).where(EVENTS.c.type == "coupon.created")
    day = datetime.now(UTC) - timedelta(days=app.config["SHOP_HISTORY_DAYS"])
    with app.test_request_context():
        run_in_transaction(lambda session: session.execute(created))
        expected = f"Changes before {html.short_date(day.date())} are not kept."
    assert expected in markup.unescape(browser.get(f"/coupons/{coupon}").text)


def test_a_long_history_leads_to_the_earlier_events(admin, browser):
    other, coupon = (
        admin.post("/coupons", {"coupon": {"code": code}}).json["coupon"]["id"] for code in "ab"
    )
    for number in range(31):
        admin.put(f"/coupons/{coupon}", {"coupon": {"description": f"{number}"}})
    text = browser.get(f"/coupons/{coupon}").html
    assert "are not kept" not in text
    earlier = markup.unescape(re.search('href="/admin([^"]+)">Earlier events', text)[1])
    page = browser.get(earlier)
    assert f"Only events of coupon {coupon}." in page.text
    assert [kind for kind in ("created", "updated") if f"coupon.{kind}</a>" not in page.html] == []
    assert f"coupon {other}" not in page.text


def test_what_no_form_of_a_record_offers(app):
    never = re.compile("usage_count|password|order_key|^total|_total$|total_")
    with app.test_request_context():
        names = {name: {spec.name for spec in form_of(name).specs} for name in FORMS}
    assert all(names.values())
    assert {
        name: found
        for name, fields in names.items()
        if (found := list(filter(never.search, fields)))
    } == {}
