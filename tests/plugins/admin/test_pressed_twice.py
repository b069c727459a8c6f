"""Forms that are sent twice, and buttons of pages that are out of date (admin 5)."""

import re

import pytest
from sqlalchemy import func, select

from app.db.read_pool import fetch
from app.db.session import db
from tests.plugins.admin.filled_shop import fill
from tests.plugins.admin.test_rights import pages

pytestmark = pytest.mark.one_database

LAST = ("/trash", "/restore", "/selected", "/delete", "/revoke", "/end")
TYPED = {
    "/coupons/new": {"code": "twice", "amount": "5"},
    "/customers/new": {"email": "twice@example.com"},
    "/batches/new": {"count": "2", "coupon.amount": "5"},
    "/campaigns/new": {"name": "Twice"},
    "/coupons/1/active": {"active": "true"},  # a paused coupon has no further use
    "/orders/1/notes": {"note": "Twice."},
    "/orders/1/refund": {"amount": "1.00"},
}
"""What is typed in the fields that are required, by the addresses of forms."""

SENT = {
    "/batches/new", "/batches/1/trash", "/coupons/new", "/coupons/1/count", "/coupons/1/edit",
    "/campaigns/1/active", "/campaigns/1/edit", "/campaigns/new", "/coupons/1/active",
    "/coupons/1/redeem", "/coupons/1/redemptions/1/confirm", "/coupons/1/redemptions/1/release",
    "/coupons/1/trash", "/customers/new", "/customers/1/edit", "/customers/1/delete",
    "/invitations/1/withdraw", "/keys/1/revoke", "/keys/links/1/revoke", "/orders/1/notes", "/orders/1/refund",
    "/orders/new", "/orders/1/edit",
    "/orders/1/refunds/1/delete", "/orders/1/status", "/orders/1/trash", "/sessions/1/end",
    "/webhooks/1/delete", "/webhooks/1/deliveries/1/redeliver", "/webhooks/1/edit",
    "/webhooks/1/ping", "/webhooks/1/status", "/data/imports/1/cancel", "/customers/1/note",
    "/language",
}  # fmt: skip
"""The addresses of the forms that end with a redirect."""


def _forms(browser, paths):
    """The forms of pages that send a POST request, each once, with those that remove at the end."""
    found = {}
    for path in paths:
        for action, method, values in browser.get(path).forms():
            target = (action or f"/admin{path}").removeprefix("/admin")
            if method == "post" and "/sign-" not in target:
                found.setdefault(target, dict(values))
    # Refunds before their order, the trash before deleting what is in it, and sessions last.
    last = sorted((each for each in found if each.endswith(LAST)), key=_rank, reverse=True)
    return [(each, found[each]) for each in (*sorted(found.keys() - last), *last)]


def _rank(target):
    return not target.startswith("/sessions/"), target.count("/"), target


def _counts(app):
    with app.app_context():
        tables = db.metadata.sorted_tables
        return {each.name: fetch(select(func.count()).select_from(each))[0][0] for each in tables}


def _button(page, end):
    """The values of the form whose address ends with a word."""
    return next(dict(values) for action, _, values in page.forms() if action.endswith(end))


def _without_time(address):
    return re.sub(r"&?(at|ms)=\d+", "", address)


@pytest.mark.slow
def test_each_form_that_is_sent_twice_shows_the_same_result(app, admin, browser, new_browser):
    new_browser("bob")
    ids = fill(app, admin, browser, lambda kind: f"word {kind}")
    paths = [path for method, path, _needs in pages(app, ids) if method == "GET"]
    sent = set()
    for target, shown in _forms(browser, paths):
        name = re.sub("[0-9]+", "1", target)
        values = shown | TYPED.get(name, {})
        first = browser.post(target, values)
        rows = _counts(app)
        again = browser.post(target, values)
        if first.status == 303 and "/sign-in" not in again.html:
            assert (again.status, _without_time(again.location)) == (
                303,
                _without_time(first.location),
            ), target
            assert _counts(app) == rows, target
            sent.add(name)
    assert sent == SENT


@pytest.mark.parametrize("kind", ["coupon", "order"])
def test_a_second_press_of_restore_shows_the_record(admin, browser, kind):
    number = admin.post(f"/{kind}s", {kind: {"code": "a"} if kind == "coupon" else {}}).json[kind][
        "id"
    ]
    admin.delete(f"/{kind}s/{number}")
    for _ in range(2):
        page = browser.post(f"/{kind}s/{number}/restore")
        assert page.location == f"/admin/{kind}s/{number}?done=restored"
    for _ in range(2):
        page = browser.post(f"/{kind}s/selected", {"action": "trash", "id": str(number)})
        assert "1 record done" in page.text
    for _ in range(2):
        page = browser.post(f"/{kind}s/selected", {"action": "restore", "id": str(number)})
        assert "1 record done" in page.text
    shown = _button(browser.get(f"/{kind}s/{number}"), "/trash")
    admin.delete(f"/{kind}s/{number}?force=true")
    assert browser.post(f"/{kind}s/{number}/restore").status == 404
    assert browser.post(f"/{kind}s/{number}/trash", shown).status == 404
    page = browser.post(f"/{kind}s/selected", {"action": "trash", "id": str(number)})
    assert "1 record done" not in page.text


def test_a_second_press_of_delete_shows_the_table(admin, browser):
    records = {"coupons": {"code": "a"}, "orders": {}, "customers": {"email": "a@example.com"}}
    for kind, values in records.items():
        noun = kind.removesuffix("s")
        number = admin.post(f"/{kind}", {noun: values}).json[noun]["id"]
        shown = _button(browser.get(f"/{kind}/{number}"), "/delete")
        for _ in range(2):
            page = browser.post(f"/{kind}/{number}/delete", shown)
            assert page.location == f"/admin/{kind}?done=deleted"
        assert browser.post(f"/{kind}/{number}/delete").status == 404  # of no page


@pytest.mark.parametrize("action", ["trash", "delete"])
@pytest.mark.parametrize(
    ("kind", "before", "after", "shows"),
    [
        (
            "coupon",
            {"code": "a", "amount": "5"},
            {"amount": "7"},
            "Amount When you began 5.00 Now 7.00",
        ),
        (
            "order",
            {"status": "pending"},
            {"status": "processing"},
            "Status When you began Pending payment Now Processing",
        ),
    ],
)
def test_a_record_that_has_changed_is_not_removed(
    admin, browser, kind, before, after, shows, action
):
    path = f"/{kind}s/{admin.post(f'/{kind}s', {kind: before}).json[kind]['id']}"
    shown = _button(browser.get(path), action)
    admin.put(path, {kind: after})
    page = browser.post(f"{path}/{action}", shown)
    assert page.status == 409
    assert f"Someone else changed this {kind}" in page.text
    assert shows in page.text
    assert admin.get(path).status_code == 200
    assert browser.post(f"{path}/{action}", page.form("_shown")).status == 303
    assert admin.get(path).status_code == 404


def test_a_use_in_between_does_not_keep_a_coupon(admin, browser):
    path = f"/coupons/{admin.post('/coupons', {'coupon': {'code': 'a'}}).json['coupon']['id']}"
    shown = _button(browser.get(path), "/trash")
    admin.post("/redemptions", {"redemption": {"code": "a", "reference": "1"}})
    assert browser.post(f"{path}/trash", shown).status == 303


@pytest.mark.both_databases
def test_a_refund_of_a_page_before_another_refund_is_not_recorded(admin, browser):
    line = {"name": "Tea", "price": "20", "quantity": 1}
    order = admin.post("/orders", {"order": {"line_items": [line]}}).json["order"]
    path = f"/orders/{order['id']}/refund"
    values = browser.get(path).form("amount") | {"amount": "10.00"}
    admin.post(f"{path}s", {"order_refund": {"amount": "10.00", "reason": "Broken"}})
    page = browser.post(path, values)
    assert page.status == 400
    assert "Someone else recorded or deleted a refund" in page.text
    assert "Already refunded $10.00" in page.text
    assert len(admin.get(f"{path}s").json["order_refunds"]) == 1
    for _ in range(2):
        sent = browser.post(path, page.form("amount"))
        assert sent.location.endswith("done=refunded")
    assert len(admin.get(f"{path}s").json["order_refunds"]) == 2
