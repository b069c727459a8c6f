"""The pages of coupons: table, forms, conflicts, trash, selection, uses, generated coupons."""

import csv
import json
import re
from datetime import UTC, datetime, timedelta
from io import StringIO
from urllib.parse import urlencode

import pytest
from flask import g
from sqlalchemy import select

from app.auth.principals import Capability, Principal
from app.db.read_pool import fetch
from app.db.session import run_in_transaction
from app.models import REDEMPTIONS
from app.plugins.admin import calls, forms, selections
from app.plugins.admin.history import differences
from app.plugins.admin.nouns import coupons
from tests.plugins.admin.browser_client import Browser

pytestmark = pytest.mark.one_database

HOSTILE = "\"><script>alert(1)</script>{{7*7}}'=1+1"
TODAY = datetime.now(UTC).date()

MARK = "\ufeff"
"""Byte order mark at the beginning of a CSV file, which Excel needs."""


def make(admin, code, **over):
    response = admin.post("/coupons", {"coupon": {"code": code, **over}})
    assert response.status_code == 201, response.get_json()
    return response.get_json()["coupon"]


def stored(admin, coupon_id):
    return admin.get(f"/coupons/{coupon_id}").get_json()["coupon"]


def test_the_table_of_an_empty_shop_says_what_to_do(browser):
    page = browser.get("/coupons")
    assert "No coupons yet" in page.text
    assert "generate a thousand" in page.text


def test_the_table_shows_states_and_counts(admin, browser):
    make(admin, "summer", amount="12.50", usage_limit=50)
    make(admin, "percent", type="percent", amount="15")
    make(admin, "old", expiry_date=str(TODAY))
    make(admin, "full", usage_limit=2, usage_count=2)
    gone = make(admin, "gone")
    admin.delete(f"/coupons/{gone['id']}")
    make(admin, "paused", active=False)
    make(admin, "later", starts_at="2040-01-01")
    page = browser.get("/coupons")
    tabs = "All 6 Active 2 Expired 1 Paused 1 Scheduled 1 Used up 1 Trash 1"
    assert tabs in page.text
    assert [text for text in ("$12.50", "15%", "2 of 2") if text not in page.text] == []
    for state, codes in {
        "active": {"summer", "percent"}, "expired": {"old"}, "used_up": {"full"}, "trash": {"gone"},
    }.items():  # fmt: skip
        shown = browser.get(f"/coupons?state={state}").text
        assert {
            code for code in ("summer", "percent", "old", "full", "gone") if code in shown
        } == codes


@pytest.mark.both_databases
def test_the_table_is_searched_sorted_and_paged(admin, browser):
    for number in range(12):
        make(admin, f"code-{number:02}", usage_count=number)
    first = browser.get("/coupons?sort=uses&order=desc")
    assert first.text.index("code-11") < first.text.index("code-02")
    assert "code-01" not in first.text
    assert "1\u201310 of 12" in first.text
    assert "11\u201312 of 12" in browser.get("/coupons?sort=uses&order=desc&page=2").text
    assert "1 entry" in browser.get("/coupons?q=ode-07").text
    assert "Nothing matches" in browser.get("/coupons?q=nothing").text
    assert browser.get("/coupons?sort=unknown").status == 400


def test_creating_a_coupon(admin, browser):
    page = browser.submit("/coupons/new", "_form", code="Summer", amount="10.50", usage_limit="5")
    assert page.status == 303
    (coupon,) = admin.get("/coupons").get_json()["coupons"]
    assert (coupon["code"], coupon["amount"], coupon["usage_limit"]) == ("summer", "10.50", 5)
    page = browser.get(page.location.removeprefix("/admin"))
    assert "Created." in page.text
    assert "Use SUMMER for 10.5% off" in page.text


def test_a_form_that_is_sent_twice_creates_one_coupon(admin, browser):
    values = browser.get("/coupons/new").form("_form") | {"code": "once", "amount": "5"}
    first, second = browser.post("/coupons/new", values), browser.post("/coupons/new", values)
    assert first.location == second.location
    assert admin.get("/coupons/count").get_json() == {"count": 1}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        ("amount", "10,50", "Write a number with a point"),
        ("amount", "1,000", "Write a number with a point"),
        ("amount", "1.000", "Write a number with a point"),
        ("minimum_amount", "1.500", "Write a number with a point"),
        ("amount", "1e3", "Write a number with a point"),
        ("amount", "10.505", "Would be converted to"),
        ("usage_limit", "many", "Write a whole number"),
        ("expiry_date", "29.11.2026", "Write a date"),
        ("product_ids", "7, abc", "Write the numbers of the IDs"),
        ("customer_emails", "nobody", "Other entries would be dropped"),
        ("code", "", "Fill in this field"),
        ("code", "<b>x</b>", "Contains markup"),
        ("code", "taken", "Another published coupon already has this code"),
        ("code", "x" * 5000, "longer than"),
    ],
)
def test_an_error_stands_beside_its_field_and_nothing_is_lost(admin, browser, field, text, message):
    make(admin, "taken")
    given = {"code": "new", "amount": "5", "description": "kept", field: text}
    page = browser.submit("/coupons/new", "_form", **given)
    assert page.status == 400
    assert "<title>Error:" in page.html
    assert f'href="#field-{field}"' in page.html
    assert message in page.text
    assert page.form("_form")["description"] == "kept"
    assert page.form("_form")[field] == text
    assert admin.get("/coupons/count").get_json() == {"count": 1}


def test_only_changed_fields_are_sent(admin, browser):
    coupon = make(admin, "a", amount="5", description="before", minimum_amount="20")
    path = f"/coupons/{coupon['id']}/edit"
    shown = browser.get(path).form("_form")
    page = browser.post(path, shown | {"description": "after"})
    assert page.status == 303
    event = admin.get("/events", {"filter[type]": "coupon.updated"}).get_json()["events"]
    assert len(event) == 1
    assert stored(admin, coupon["id"]) == coupon | {
        "description": "after", "updated_at": stored(admin, coupon["id"])["updated_at"],
    }  # fmt: skip
    assert browser.post(path, browser.get(path).form("_form")).location.endswith("done=unchanged")


def test_emptied_fields_are_none(admin, browser):
    coupon = make(
        admin, "a", usage_limit=5, minimum_amount="20", expiry_date="2030-01-01", product_ids=[7],
        individual_use=True,
    )  # fmt: skip
    path = f"/coupons/{coupon['id']}/edit"
    empty = dict.fromkeys(("usage_limit", "minimum_amount", "expiry_date", "product_ids"), "")
    browser.submit(path, "_form", **empty, individual_use=None)
    after = stored(admin, coupon["id"])
    assert after["usage_limit"] is after["expiry_date"] is None
    assert (after["minimum_amount"], after["product_ids"]) == ("0.00", [])
    assert after["individual_use"] is False


def test_a_use_in_between_is_no_conflict(admin, browser):
    coupon = make(admin, "a", description="before")
    path = f"/coupons/{coupon['id']}/edit"
    shown = browser.get(path).form("_form")
    use = {"redemption": {"code": "a", "reference": "cart-1"}}
    redemption = admin.post("/redemptions", use).get_json()["redemption"]
    admin.post(f"/redemptions/{redemption['id']}/confirm")
    assert browser.post(path, shown | {"description": "after"}).status == 303
    after = stored(admin, coupon["id"])
    assert (after["description"], after["usage_count"]) == ("after", 1)


@pytest.mark.parametrize(("uses", "status"), [(2, 303), (3, 412)])
def test_a_save_is_sent_three_times_at_most(admin, browser, monkeypatch, uses, status):
    """The coupon is used whenever the page has read it again."""
    coupon = make(admin, "a", description="before")
    path, numbers = f"/coupons/{coupon['id']}/edit", iter(range(2, uses + 1))
    shown = browser.get(path).form("_form")

    def use(number):
        admin.put(f"/coupons/{coupon['id']}", {"coupon": {"usage_count": number}})

    def record_then_use(name, **variables):
        found = calls.record_of(name, **variables)
        if (number := next(numbers, None)) is not None:
            use(number)
        return found

    monkeypatch.setattr(forms, "record_of", record_then_use)
    use(1)
    assert browser.post(path, shown | {"description": "after"}).status == status
    after = stored(admin, coupon["id"])
    assert (after["description"] == "after", after["usage_count"]) == (status == 303, uses)


@pytest.mark.both_databases
def test_a_conflict_shows_both_values_and_saves_the_chosen_one(admin, browser):
    coupon = make(admin, "a", description="before", amount="5")
    path = f"/coupons/{coupon['id']}/edit"
    shown = browser.get(path).form("_form")
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"description": "theirs", "amount": "6"}})
    page = browser.post(path, shown | {"description": "mine"})
    assert page.status == 409
    assert [text for text in ("theirs", "mine") if text not in page.text] == []
    choice = page.form("_etag")
    assert (choice["description"], choice["amount"]) == ("mine", "6.00")
    # With what the page shows, the next save sends the fields that were chosen, and no others.
    kept = json.loads(choice["_shown"])
    assert (kept["code"], kept["description"], kept["amount"]) == ("a", "theirs", "6.00")
    assert browser.post(path, choice).status == 303
    after = stored(admin, coupon["id"])
    assert (after["description"], after["amount"]) == ("mine", "6.00")


def test_as_a_request_shows_what_a_save_would_send(admin, browser):
    coupon = make(admin, "a")
    path = f"/coupons/{coupon['id']}/edit"
    values = browser.get(path).form("_form") | {"amount": "7", "_show": "request"}
    page = browser.post(path, values)
    assert page.status == 200
    assert "-X PUT" in page.text
    assert "{&#34;coupon&#34;: {&#34;amount&#34;: &#34;7&#34;}}" in page.html
    assert stored(admin, coupon["id"])["amount"] == "0.00"


def test_trash_undo_restore_and_delete(admin, browser):
    coupon = make(admin, "a")
    page = browser.post(f"/coupons/{coupon['id']}/trash")
    page = browser.get(page.location.removeprefix("/admin"))
    assert "Moved to the trash." in page.text
    assert "Undo" in page.text
    assert browser.post(f"/coupons/{coupon['id']}/restore").status == 303
    assert stored(admin, coupon["id"])["code"] == "a"
    assert browser.post(f"/coupons/{coupon['id']}/delete").status == 303
    assert browser.get(f"/coupons/{coupon['id']}").status == 404


def test_undo_is_offered_for_a_minute(admin, browser):
    coupon = make(admin, "a")["id"]
    browser.post(f"/coupons/{coupon}/trash")
    at = int(datetime.now(UTC).timestamp())
    for ago, offers in ((5, True), (65, False), (-30, False)):
        page = browser.get(f"/coupons?done=trashed&undo={coupon}&at={at - ago}")
        assert (f'action="/admin/coupons/{coupon}/restore"' in page.html) == offers, ago


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("/coupons/new", {"code": "b", "amount": "5"}),
        ("/customers/new", {"email": "ada@example.com"}),
        ("/webhooks/new", {"name": "ERP", "delivery_url": "https://erp.example/"}),
        ("/keys/new", {"description": "ERP"}),
        ("/batches/new", {"count": "2", "coupon.amount": "5"}),
        ("/orders/{order}/refund", {"amount": "1"}),
        ("/coupons/{coupon}/redeem", {"email": "ada@example.com"}),
    ],
)
def test_each_form_that_is_sent_twice_does_it_once(admin, browser, path, given):
    items = [{"name": "Tea", "price": "5", "quantity": 1}]
    order = {"line_items": items, "status": "completed"}
    order = admin.post("/orders", {"order": order}).json["order"]["id"]
    path = path.format(order=order, coupon=make(admin, "a")["id"])
    lists = ("/coupons/count", "/customers/count", "/webhooks", "/keys", "/coupons/batches",
             f"/orders/{order}/refunds", "/redemptions")  # fmt: skip

    def numbers():
        found = [next(iter(admin.get(each).json.values())) for each in lists]
        return [each if isinstance(each, int) else len(each) for each in found]

    values, before = browser.get(path).form("_form") | given, numbers()
    first = browser.post(path, values)
    once = numbers()
    assert sum(map(int.__sub__, once, before)) in {1, 3}, "a batch and its coupons"
    again = browser.post(path, values)
    assert (again.status, again.location, numbers()) == (first.status, first.location, once)


def test_a_use_of_an_order_leads_to_it_instead_of_releasing(admin, browser):
    coupon = make(admin, "a", amount="1")["id"]
    order = {"line_items": [{"name": "Tea", "price": "5", "quantity": 1}], "status": "completed",
             "coupon_lines": [{"code": "a"}]}  # fmt: skip
    order = admin.post("/orders", {"order": order}).json["order"]["id"]
    page = browser.get(f"/coupons/{coupon}")
    assert f'<a href="/admin/orders/{order}">Order {order}</a>' in page.html
    assert "/release" not in page.html


def test_trying_the_items_of_an_order(admin, browser):
    coupon = make(admin, "a")["id"]
    for price in ("11.00", "22.00"):
        items = [{"name": "Tea", "price": price, "quantity": 1}]
        order = admin.post("/orders", {"order": {"line_items": items}}).json["order"]
        path = f"/coupons/{coupon}/try"
        assert browser.get(path).form("_form")["items.0.price"] == price, "the latest"
    page = browser.get(f"{path}?order=%23{int(order['order_number']) - 1}")
    assert page.form("_form")["items.0.price"] == "11.00"
    assert "No order has this number." in browser.get(f"{path}?order=999").text


def test_duplicating_a_coupon(admin, browser):
    coupon = make(admin, "a", amount="5", expiry_date="2020-01-01", usage_count=3)
    form = browser.get(f"/coupons/new?from={coupon['id']}").form("_form")
    assert (form["code"], form["amount"], form["expiry_date"]) == ("a-copy", "5.00", "")
    browser.post("/coupons/new", form)
    (copy,) = [
        each for each in admin.get("/coupons").get_json()["coupons"] if each["code"] == "a-copy"
    ]
    assert (copy["amount"], copy["usage_count"]) == ("5.00", 0)


OPTIONS = {
    "starts_at": "2030-05-01T06:00:00Z", "tags": ["newsletter"], "combines_with": ["-loyalty"],
    "customer_tags": ["vip", "role:wholesale"], "first_order_only": True,
    "maximum_discount": "50.00", "buy_quantity": 2, "get_quantity": 1, "get_product_ids": [7],
}  # fmt: skip
TEXTS = {
    "starts_at": "2030-05-01T08:00", "tags": "newsletter", "combines_with": "-loyalty",
    "customer_tags": "vip\r\nrole:wholesale", "first_order_only": "true", "usage_limit_per_user": "1",
    "maximum_discount": "50.00", "buy_quantity": "2", "get_quantity": "1", "get_product_ids": "7",
}  # fmt: skip


def options_of(admin, code):
    query = {"q": code, "fields": ",".join(["code", "active", *OPTIONS])}
    found = admin.get("/coupons", query).get_json()["coupons"]
    return next(each for each in found if each.pop("code") == code)


def test_conditions_are_entered_shown_and_duplicated(app, admin, browser, monkeypatch):
    monkeypatch.setitem(app.config, "SHOP_TIMEZONE", "Europe/Berlin")
    page = browser.submit("/coupons/new", "_form", code="a", amount="5", **TEXTS)
    assert page.status == 303, page.text
    assert options_of(admin, "a") == OPTIONS | {"active": True}
    (coupon,) = admin.get("/coupons").get_json()["coupons"]
    assert (
        "May 1, 2030, 08:00 2030-05-01 06:00:00 UTC" in browser.get(f"/coupons/{coupon['id']}").text
    )
    browser.submit(f"/coupons/{coupon['id']}/edit", "_form", description="kept")
    assert options_of(admin, "a") == OPTIONS | {"active": True}
    form = browser.get(f"/coupons/new?from={coupon['id']}").form("_form")
    browser.post("/coupons/new", form)
    assert options_of(admin, "a-copy") == OPTIONS | {"active": True}
    empty = dict.fromkeys(TEXTS, "") | {"first_order_only": None}
    browser.submit(f"/coupons/{coupon['id']}/edit", "_form", **empty)
    plain = options_of(admin, make(admin, "plain")["code"])
    assert options_of(admin, "a") == plain


def test_coupons_are_paused_and_resumed(admin, browser):
    ids = [make(admin, code)["id"] for code in "ab"]
    page = browser.post("/coupons/selected", {"action": "pause", "id": ids})
    assert "2 records done" in page.text
    assert [options_of(admin, code)["active"] for code in "ab"] == [False, False]
    assert "Paused" in browser.get(f"/coupons/{ids[0]}").text
    browser.post("/coupons/selected", page.form("ids") | {"action": "resume"})
    assert [options_of(admin, code)["active"] for code in "ab"] == [True, True]
    browser.submit(f"/coupons/{ids[0]}/edit", "_form", active=None)
    assert [options_of(admin, code)["active"] for code in "ab"] == [False, True]


def test_selected_coupons_in_parts(admin, browser, monkeypatch):
    monkeypatch.setattr(selections, "PART", 2)
    for number in range(5):
        make(admin, f"code-{number}")
    make(admin, "other")
    sent = {"action": "trash", "everything": "1", "query": "q=code"}
    page = browser.post("/coupons/selected", sent)
    assert "2 records done" in page.text
    page = browser.post("/coupons/selected", page.form("after"))
    page = browser.post("/coupons/selected", page.form("after"))
    assert "5 records done" in page.text
    assert [each["code"] for each in admin.get("/coupons").get_json()["coupons"]] == ["other"]
    # Undone are those that were moved, not others in the trash that match.
    later = make(admin, "code-later")
    admin.delete(f"/coupons/{later['id']}")
    page = browser.post("/coupons/selected", page.form("ids") | {"action": "restore"})
    page = browser.post("/coupons/selected", page.form("after"))
    page = browser.post("/coupons/selected", page.form("after"))
    assert "5 records done" in page.text
    assert admin.get("/coupons/count").json == {"count": 6}


def test_selected_coupons_get_an_expiry_date_and_failures_are_named(admin, browser):
    ids = [make(admin, code)["id"] for code in "ab"]
    admin.delete(f"/coupons/{ids[0]}")
    page = browser.post(
        "/coupons/selected", {"action": "expiry", "expiry_date": "2030-05-01", "id": ids}
    )
    assert "1 record done , 1 failed" in page.text
    assert '<a class="back" href="/admin/coupons">Coupons</a>' in page.html
    assert "No published coupon has this ID" in page.text
    assert stored(admin, ids[1])["expiry_date"] == "2030-05-01T00:00:00Z"


def test_a_csv_file_has_no_formulas(admin, browser):
    make(admin, "a", description="=1+1", product_ids=[1, 2])
    make(admin, "b", description="@x")
    page = browser.post("/coupons/selected", {"action": "csv", "everything": "1", "query": ""})
    rows = list(csv.DictReader(StringIO(page.html.removeprefix(MARK))))
    assert [(row["Code"], row["Description"]) for row in rows] == [("a", "'=1+1"), ("b", "'@x")]
    assert page.headers["Content-Disposition"] == 'attachment; filename="coupons.csv"'


def test_a_csv_file_of_selected_coupons_has_the_columns_of_the_table(admin, browser):
    ids = [make(admin, code, amount="5", description="Tea")["id"] for code in "abc"]
    admin.delete(f"/coupons/{ids[2]}")
    every = browser.http.get("/admin/coupons?format=csv").text.splitlines()
    chosen = {"action": "csv", "id": ids[:2], "query": ""}
    lines = browser.post("/coupons/selected", chosen).html.splitlines()
    assert lines[0].removeprefix(MARK) == every[0].removeprefix(MARK)
    assert sorted(lines[1:]) == sorted(every[1:])
    trash = browser.http.get("/admin/coupons?state=trash&format=csv").text.splitlines()
    chosen = {"action": "csv", "id": ids[2:], "query": "state=trash"}
    assert browser.post("/coupons/selected", chosen).html.splitlines() == trash


def test_hostile_texts_stay_text(admin, browser):
    coupon = make(admin, "a", description=HOSTILE)
    for path in (f"/coupons/{coupon['id']}", f"/coupons/{coupon['id']}/edit", "/coupons?q=script"):
        page = browser.get(path)
        assert page.status == 200
        assert "<script>alert" not in page.html
        assert ">49" not in page.html
    for path in (f"/coupons?q={HOSTILE}", f"/coupons?state={HOSTILE}", f"/search?q={HOSTILE}",
                 f"/coupons/new?code={HOSTILE}", f"/sign-in?next={HOSTILE}", f"/coupons?done={HOSTILE}"):  # fmt: skip
        assert "<script>alert" not in browser.get(path).html


def test_the_history_shows_what_changed(admin, browser):
    coupon = make(admin, "a", amount="5")
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"amount": "6"}})
    text = browser.get(f"/coupons/{coupon['id']}").text
    assert "Changed" in text
    assert "Amount $5.00 → $6.00 administrator · by the API" in text
    assert "are not kept" not in text
    browser.submit(f"/coupons/{coupon['id']}/edit", "_form", amount="7")
    text = browser.get(f"/coupons/{coupon['id']}").text
    assert "Amount $6.00 → $7.00 administrator · on a page" in text


def test_the_history_of_the_trash_and_of_a_use_lists_no_other_fields(admin, browser):
    coupon = make(admin, "a", expiry_date="2030-01-31")
    browser.post(f"/coupons/{coupon['id']}/trash")
    browser.post(f"/coupons/{coupon['id']}/restore")
    use = admin.post("/redemptions", {"redemption": {"code": "a", "reference": "cart-1"}})
    number = use.json["redemption"]["id"]
    browser.post(f"/coupons/{coupon['id']}/redemptions/{number}/confirm")
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"expiry_date": "2031-02-28"}})
    html = re.sub(" · <a .*?</a>", "", browser.get(f"/coupons/{coupon['id']}").html)  # Undo
    entries = re.findall('<li><div class="section-head"><strong>.*?</li>', html, re.DOTALL)
    texts = [re.findall(r">\s*([^<>→]*[^<>→\s])\s*<", each) for each in entries]
    assert [(title, changes) for title, _time, *changes, _who in texts] == [
        ("Changed", ["Expires on", "Jan 31, 2030", "Feb 28, 2031"]),
        ("Used", []), ("Use reserved", []), ("Restored from the trash", []),
        ("Moved to the trash", []), ("Created", []),
    ]  # fmt: skip


def test_a_file_of_all_that_match_searches_once_for_many_coupons(admin, browser, monkeypatch):
    monkeypatch.setattr(coupons, "CSV_PART", 2)
    monkeypatch.setattr(coupons, "CSV_IDS", 5)
    calls, matching_ids = [], coupons.matching_ids
    monkeypatch.setattr(
        coupons, "matching_ids", lambda *given: calls.append(given[1:]) or matching_ids(*given)
    )
    ids = [make(admin, f"code-{number}")["id"] for number in range(7)]
    chosen = {"action": "csv", "everything": "1", "query": "q=code"}
    text = browser.post("/coupons/selected", chosen).html.removeprefix("\ufeff")
    codes = [f"code-{number}" for number in range(7)]
    assert [row["Code"] for row in csv.DictReader(StringIO(text))] == codes
    assert calls == [(0, 5), (ids[4], 5), (ids[6], 5)]


def test_the_history_shows_metadata_whose_name_looks_like_a_time(admin, app_with):
    values = [5, "soon", "2026-12-24", {"a": 1}, "0001-01-01T00:00:01Z", "2026-13-01T00:00:00Z"]
    metadata = {f"delivery{number}_date": value for number, value in enumerate(values)}
    coupon = make(admin, "a", metadata=dict.fromkeys(metadata, "2026-12-23"))
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"metadata": metadata}})
    browser = Browser(app_with(SHOP_TIMEZONE="America/New_York"), admin.key)
    page = browser.get(f"/coupons/{coupon['id']}")
    assert page.status == 200
    assert "Metadata, Delivery0 date 2026-12-23 → 5" in page.text
    assert "Metadata, Delivery2 date 2026-12-23 → 2026-12-24" in page.text


ITEM = {
    "id": 5, "price": "on request", "total": "NaN", "subtotal": "1e999999", "discount": "10%",
    "amount": "", "quantity": 1000, "campaign_id": 2**63 - 1, "old_date": "0001-01-01T00:00:01Z",
}  # fmt: skip
"""Metadata, or an item of an event of a plugin, with values that no field of this name has."""


def test_metadata_with_the_names_of_amounts_stays_as_it_is(admin, browser):
    plain = {"id": 5, "price": "5", "quantity": 1000}
    coupon = make(admin, "a", amount="5", metadata={"bundle": [plain]})
    path = f"/coupons/{coupon['id']}"
    changed = {"amount": "6", "metadata": {"bundle": [ITEM]}}
    response = admin.put(path, {"coupon": changed})
    assert response.status_code == 200, response.json
    text = browser.get(path).text
    assert "Amount $5.00 → $6.00" in text
    assert "#5 Price 5, Quantity 1000 → #5 Price on request, Total NaN, Subtotal 1e9" in text
    body = {"email": "ada@example.com", "metadata": {"bundle": [ITEM], "plain": [plain]}}
    number = admin.post("/customers", {"customer": body}).json["customer"]["id"]
    text = browser.get(f"/customers/{number}").text
    assert "#5 Price on request" in text
    assert "#5 Price 5, Quantity 1000" in text


def test_differences_of_a_plugin_can_have_any_values(app, admin):
    labels = {name: name for name in (*ITEM, "items")}
    with app.test_request_context():
        g.principal = Principal(admin.key.user_id, frozenset(Capability))
        for record in ({"currency": "EUR"}, {"currency": "JPY"}, {"type": "percent"}, {}):
            after = ITEM | {"amount": "10%", "campaign_id": 2**64 - 1, "items": [ITEM]}
            shown = {name: text for name, _, text in differences({}, after, labels, record)}
            expected = {name: ITEM[name] for name in ("price", "total", "subtotal", "discount")}
            assert shown.items() >= {**expected, "amount": "10%", "quantity": "1,000"}.items()
            assert "Price on request, Total NaN, Subtotal 1e999999" in shown["items"]


def test_the_text_to_send_says_what_a_coupon_offers(admin, browser):
    ships = make(admin, "ships", amount="0", enable_free_shipping=True, expiry_date="2030-01-31")
    text = "Use SHIPS until Jan 30, 2030 for free shipping"
    assert text in browser.get(f"/coupons/{ships['id']}").text
    mugs = make(admin, "mugs", type="fixed_product", amount="2")
    assert "Use MUGS for $2.00 off each product" in browser.get(f"/coupons/{mugs['id']}").text
    nothing = make(admin, "nothing", amount="0")
    assert "Text to send" not in browser.get(f"/coupons/{nothing['id']}").text


def test_correcting_the_count(admin, browser):
    coupon = make(admin, "a", usage_count=3)
    path = f"/coupons/{coupon['id']}/count"
    assert "Uses now 3" in browser.get(path).text
    page = browser.submit(path, "_form", usage_count="10", _show="request")
    assert f"<code>PUT /coupons/{coupon['id']}</code>" in page.html
    assert stored(admin, coupon["id"])["usage_count"] == 3
    assert browser.submit(path, "_form", usage_count="10").status == 303
    assert stored(admin, coupon["id"])["usage_count"] == 10
    shown = browser.get(path).form("_form")
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"usage_count": 11}})
    page = browser.post(path, shown | {"usage_count": "12"})
    assert page.status == 400
    assert "has changed in between" in page.text
    assert stored(admin, coupon["id"])["usage_count"] == 11


def test_trying_a_coupon_on_a_cart(admin, browser):
    coupon = make(admin, "a", type="percent", amount="10", minimum_amount="100")
    path = f"/coupons/{coupon['id']}/try"
    items = {"items.0.product_id": "7", "items.0.price": "50", "items.0.quantity": "1",
             "coupons": "nothing"}  # fmt: skip
    page = browser.post(path, items)
    assert "The customer would pay $50.00: nothing is discounted." in page.text
    assert "below the minimum amount" in page.text
    assert f"/admin/coupons/{coupon['id']}/edit#field-minimum_amount" in page.html
    page = browser.post(path, items | {"items.0.quantity": "3", "coupons": ""})
    assert "The customer would pay $135.00 instead of $150.00: $15.00 less." in page.text
    page = browser.post(path, items | {"items.0.price": "10,50"})
    assert (page.status, 'href="#field-items-0-price"' in page.html) == (400, True)
    assert "The cart is empty." in browser.post(path, {"items.0.price": ""}).text
    assert browser.get(path).form("items.0.price")["items.0.price"] == "100.00", "an example"
    assert admin.get("/redemptions/count").get_json() == {"count": 0}


def test_trying_a_cart_again_adds_no_lines(admin, browser):
    path = f"/coupons/{make(admin, 'a')['id']}/try"
    lines = lambda page: len(re.findall(r'name="items\.\d+\.price"', page.html))  # noqa: E731  # as short as its use
    shown = lines(browser.get(path))
    cart = {"items.1.product_id": "7", "items.1.price": "50", "items.1.quantity": "2",
            "items.1.on_sale": "true"}  # fmt: skip
    for _ in range(3):
        page = browser.post(path, cart)
        assert lines(page) == shown
        assert page.form("items.1.price").items() >= cart.items(), "where it was typed"
        assert "The customer would pay $100.00" in page.text
    changed = page.form("items.1.price") | {"items.1.price": "60"}
    assert "The customer would pay $120.00" in browser.post(path, changed).text
    full = {f"items.{number}.price": "5" for number in range(5)}
    assert lines(browser.post(path, full)) == 6, "one line to add"
    page = browser.post(path, cart | {"items.1.price": "5.5555555"})
    assert 'href="#field-items-1-price"' in page.html, "an error beside the line that is shown"


def test_redeeming_now_and_releasing(admin, browser):
    coupon = make(admin, "a", usage_limit=1)
    path = f"/coupons/{coupon['id']}/redeem"
    values = browser.get(path).form("_form") | {"email": "ada@example.com", "amount": "2.50"}
    page = browser.post(path, values | {"_show": "request"})
    assert "<code>POST /redemptions</code>" in page.html
    assert admin.get("/redemptions").get_json()["redemptions"] == []
    for _ in range(2):  # a double click
        assert browser.post(path, values).status == 303
    (use,) = admin.get("/redemptions").get_json()["redemptions"]
    assert (use["status"], use["email"], use["amount"]) == ("confirmed", "ada@example.com", "2.50")
    assert use["reference"] == f"counter-{values['_form']}"
    page = browser.submit(path, "_form", email="bob@example.com")
    assert page.status == 400
    assert "usage limit" in page.text
    assert "Code:" not in page.text, "the form has no such field"
    page = browser.get(f"/coupons/{coupon['id']}")
    assert "ada@example.com Redeemed on a page" in page.text
    unused = make(admin, "unused")["id"]
    header = browser.get(f"/coupons/{unused}/redemptions.csv").html
    assert header.startswith(f"{MARK}id,coupon_id,code,"), "a file without rows has the names"
    assert browser.post(f"/coupons/{coupon['id']}/redemptions/{use['id']}/release").status == 303
    assert stored(admin, coupon["id"])["usage_count"] == 0
    rows = list(
        csv.DictReader(
            StringIO(
                browser.get(f"/coupons/{coupon['id']}/redemptions.csv").html.removeprefix(MARK)
            )
        )
    )
    assert [(row["email"], row["status"]) for row in rows] == [("ada@example.com", "released")]


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_csv_file_has_all_uses_of_a_coupon(app, admin, browser):
    coupon, others = make(admin, "many"), 10_050
    assert browser.submit(f"/coupons/{coupon['id']}/redeem", "_form").status == 303
    (use,) = admin.get("/redemptions").get_json()["redemptions"]
    with app.app_context():
        row = dict(fetch(select(REDEMPTIONS))[0]._mapping)
        del row["id"]
        rows = [row | {"reference": f"copy-{number}"} for number in range(others)]
        run_in_transaction(lambda session: session.execute(REDEMPTIONS.insert(), rows))
    file = browser.get(f"/coupons/{coupon['id']}/redemptions.csv").html
    references = {row["reference"] for row in csv.DictReader(StringIO(file.removeprefix(MARK)))}
    assert references == {use["reference"], *(each["reference"] for each in rows)}


def test_a_use_of_an_account_names_its_address(admin, browser, make_customer, new_browser):
    coupon = make(admin, "a")["id"]
    for number, over in enumerate([{}, {"email": "given@example.com"}]):
        customer = make_customer(email=f"account-{number}@example.com")["id"]
        use = {"code": "a", "reference": f"cart-{number}", "customer_id": customer, **over}
        assert admin.post("/redemptions", {"redemption": use}).status_code == 201
    text = browser.get(f"/coupons/{coupon}").text
    assert ("account-0@example.com" in text, "given@example.com" in text) == (True, True)
    assert "account-1@example.com" not in text, "the use names another one"
    limited = new_browser("bob", "administrator", "read", ["coupons", "redemptions"])
    text = limited.get(f"/coupons/{coupon}").text
    assert ("account-0@example.com" in text, "given@example.com" in text) == (False, True)


def test_generating_coupons(admin, browser):
    form = browser.get("/batches/new").form("_form")
    values = form | {"count": "20", "prefix": "gift-", "coupon.amount": "5", "name": "Mailing"}
    for kind, unit in (("percent", "%"), ("fixed_cart", "USD")):
        given = {"_show": "form", "coupon.type": kind, "coupon.expiry_date": "2030-11-30"}
        preview = browser.post("/batches/new", values | given)
        assert f'data-currency="USD">{unit}<' in preview.html
        assert "Works until Nov 29, 2030, 23:59 UTC." in preview.text
    assert preview.html.count("<code>gift-") == 5
    page = browser.post("/batches/new", values | {"pattern": "summer", "_show": "form"})
    assert (page.status, page.html.count("<code>gift-summer</code>")) == (200, 5)
    page = browser.post("/batches/new", values | {"pattern": "summer"})
    assert (page.status, "1 possible codes" in page.text) == (400, True)
    assert browser.post("/batches/new", values | {"_form": "a\r\nb: c"}).status == 400
    page = browser.post("/batches/new", values)
    assert page.status == 303
    batch = int(page.location.split("/batches/")[1].split("?")[0])
    text = browser.get(f"/batches/{batch}").text
    assert "Batch Mailing" in text
    assert "Mailing Codes gift-####-#### Number 20" in browser.get("/batches").text
    rows = list(
        csv.DictReader(StringIO(browser.get(f"/batches/{batch}/codes.csv").html.removeprefix(MARK)))
    )
    assert len({row["code"] for row in rows}) == 20
    use = {"code": rows[0]["code"], "reference": "cart-1", "amount": "5"}
    use = admin.post("/redemptions", {"redemption": use}).get_json()["redemption"]
    admin.post(f"/redemptions/{use['id']}/confirm")
    text = browser.get(f"/batches/{batch}").text
    assert re.search("Uses last 30 days .* [A-Z][a-z]{2} [0-9]+ 1 ", text)
    assert admin.get("/coupons").get_json()["coupons"][0]["amount"] == "5.00"
    page = browser.post("/batches/new", values | {"count": "5", "pattern": "#"})
    assert "already sent with other values" in page.text
    page = browser.submit("/batches/new", "_form", count="5", pattern="#", **{"coupon.amount": "5"})
    assert (page.status, 'href="#field-pattern"' in page.html) == (400, True)
    assert browser.post(f"/batches/{batch}/trash").status == 303
    assert admin.get("/coupons/count").get_json() == {"count": 1}


@pytest.mark.parametrize(
    ("state", "codes"), [("active", ["d", "a"]), ("expired", ["b"]), ("used_up", ["c"])]
)
def test_the_api_filters_coupons_by_state(admin, state, codes):
    make(admin, "a", usage_limit=2, usage_count=1)
    make(admin, "b", usage_limit=1, usage_count=1, expiry_date=str(TODAY))
    make(admin, "c", usage_limit=1, expiry_date=str(TODAY + timedelta(days=2)))
    admin.post("/redemptions", {"redemption": {"code": "c", "reference": "cart-1"}})
    make(admin, "d")
    found = admin.get("/coupons", {"filter[state]": state}).get_json()["coupons"]
    assert [each["code"] for each in found] == codes
    count = admin.get("/coupons/count", {"filter[state]": state}).get_json()
    assert count == {"count": len(codes)}
    assert admin.get("/coupons", {"filter[orderby]": "uses"}).status_code == 200
    assert admin.get("/coupons", {"filter[state]": "unknown"}).status_code == 400


@pytest.mark.sample(2)
@pytest.mark.parametrize("number", ["²", "9" * 5000, "٣", "-1"])
def test_text_that_looks_like_a_number(admin, browser, number):
    coupon = make(admin, "a")
    selected = {"action": "trash", "id": [number], "after": number, "done": number}
    assert "0 records done" in browser.post("/coupons/selected", {**selected, "done": "x"}).text
    assert browser.post("/coupons/selected", selected).status == 200
    cart = {"items.0.product_id": number, "items.0.price": "50", "items.0.quantity": number,
            "items.0.product_category_ids": number, "customer_id": number}  # fmt: skip
    assert browser.post(f"/coupons/{coupon['id']}/try", cart).status == 400
    for path, name in [
        ("/coupons", "page"), ("/orders", "page"), ("/coupons/new", "from"), ("/coupons", "undo"),
        ("/coupons", "at"), (f"/coupons/{coupon['id']}/try", "order"), ("/events", "before"),
        ("/events", "resource_id"), ("/", "days"),
    ]:  # fmt: skip
        query = {"undo": "1", "at": "1"} | {name: number}
        assert browser.get(f"{path}?{urlencode(query)}").status in {200, 400, 404}, (path, name)
    assert stored(admin, coupon["id"])["code"] == "a"


def test_an_event_is_undone_after_a_question_that_shows_both_values(admin, browser):
    coupon = make(admin, "a", amount="5")
    path = f"/coupons/{coupon['id']}"
    admin.put(path, {"coupon": {"amount": "6", "usage_limit": 3}})
    html = browser.get(path).html
    event = re.search(r'href="/admin(/events/[0-9]+)#undo">Undo', html)[1]
    page = browser.get(event)
    assert "Undo this change?" in page.text
    assert "Amount $6.00 → $5.00" in page.text
    assert "Limit of uses 3 → \u2013" in page.text
    first, second = (browser.post(f"{event}/undo", page.form("_form")) for _ in range(2))
    assert (first.status, second.status) == (303, 303)  # pressed twice
    shown = browser.get(path).text
    assert shown.count(f"undo of event {event.rpartition('/')[2]}") == 1
    assert admin.get(path).json["coupon"]["amount"] == "5.00"
    again = browser.get(event)
    assert "This change cannot be undone. These fields have changed since" in again.text
    late = browser.post(f"{event}/undo", page.form("_form") | {"_form": "another"})
    assert late.status == 409
    assert "These fields have changed since" in late.text
    assert "Undo this change?" not in again.text


def test_a_move_to_the_trash_is_undone_from_its_event(admin, browser):
    coupon = make(admin, "a")
    browser.post(f"/coupons/{coupon['id']}/trash")
    page = browser.get(f"/events?resource=coupon&resource_id={coupon['id']}")
    event = re.search(r'href="/admin(/events/[0-9]+)">[0-9]+ coupon.deleted', page.html)[1]
    question = browser.get(event)
    assert "The record moves to the trash, or back from it." in question.text
    assert browser.post(f"{event}/undo", question.form("_form")).status == 303
    assert admin.get(f"/coupons/{coupon['id']}").status_code == 200


def test_events_of_a_user_and_of_a_request(admin, browser):
    coupon = make(admin, "a")
    for amount in "67":
        headers = {"X-Request-Id": f"r-{amount}"}
        admin.put(f"/coupons/{coupon['id']}", {"coupon": {"amount": amount}}, headers=headers)
    page = browser.get("/events?request_id=r-6").html
    assert page.count("coupon.updated</a>") == 1
    event = re.search(r'href="/admin(/events/[0-9]+)">[0-9]+ coupon.updated', page)[1]
    assert 'href="/admin/events?request_id=r-6"' in browser.get(event).html
    assert browser.get(f"/events?user_id={admin.key.user_id}").html.count("coupon.updated</a>") == 2
    assert browser.get("/events?user_id=999").html.count("coupon.updated</a>") == 0


@pytest.mark.both_databases
def test_all_errors_of_a_form_are_shown_at_once(admin, browser):
    """Those of texts, of the API, and what is rarely meant. Nothing is saved."""
    admin.post("/coupons", {"coupon": {"code": "taken"}})
    fields = {"code": "TAKEN", "minimum_amount": "1,5", "amount": "0"}
    page = browser.submit("/coupons/new", "code", **fields)
    assert page.status == 400
    assert page.html.count('aria-invalid="true"') == 2
    assert "The discount is 0." in page.text
    for amount, count in (("5", 3), ("1,5", 4)):
        fields = {"code": "taken", "amount": amount, "usage_limit": "-3", "customer_emails": "no"}
        page = browser.submit("/coupons/new", "code", **fields)
        assert page.html.count('aria-invalid="true"') == count
    fields = {"count": "x", "coupon.amount": "1,5", "coupon.usage_limit": "-3"}
    page = browser.submit("/batches/new", "count", **fields)
    assert page.html.count('aria-invalid="true"') == 3
    page = browser.submit("/coupons/new", "code", code="taken", amount="0")
    assert page.html.count('aria-invalid="true"') == 1
    assert "The discount is 0." in page.text
    page = browser.submit("/coupons/new", "code", code="new", amount="0")
    assert (page.status, page.html.count('aria-invalid="true"')) == (409, 0)
    assert [each["code"] for each in admin.get("/coupons").json["coupons"]] == ["taken"]
    assert [each["type"] for each in admin.get("/events").json["events"]][-1] == "coupon.created"
    assert len(admin.get("/events?resource=coupon").json["events"]) == 1
