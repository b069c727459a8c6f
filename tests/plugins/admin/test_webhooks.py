"""The pages of webhooks, events and keys, with the test client."""

import re
from contextlib import closing
from datetime import timedelta

import pytest
from sqlalchemy import update

from app.db.session import precise_now, run_in_transaction
from app.models import WEBHOOK_DELIVERIES, WEBHOOKS
from app.worker.loop import CycleInput, run_cycle
from tests.plugins.admin.browser_client import Browser
from tests.webhooks.receivers import Receiver

WEBHOOK = {"name": "ERP", "topics": ["order.*"], "delivery_url": "https://receiver.example/hooks"}


@pytest.fixture
def webhook(admin):
    """A webhook."""
    return admin.post("/webhooks", {"webhook": WEBHOOK}).json["webhook"]


def test_list_of_an_empty_shop_explains_webhooks(browser):
    assert "No webhooks yet" in browser.get("/webhooks").text


def test_create_shows_the_secret_once(browser, admin):
    page = browser.submit(
        "/webhooks/new", "delivery_url", name="CRM", topics=["customer.*", "order.created"],
        delivery_url="https://crm.example/in",
    )  # fmt: skip
    assert page.status == 200
    assert re.search("whsec_[A-Za-z0-9+/=]+", page.text)
    webhook = admin.get("/webhooks").json["webhooks"][0]
    assert webhook["topics"] == ["customer.*", "order.created"]
    shown = browser.get(f"/webhooks/{webhook['id']}")
    assert "CRM" in shown.text
    assert "whsec_" not in shown.text


def test_event_types_are_boxes(browser, admin, webhook):
    """Those of the webhook are checked, and unchecking all is an error."""
    page = browser.get(f"/webhooks/{webhook['id']}/edit")
    boxes = re.findall(r'name="topics" value="([^"]+)"( checked)?', page.html)
    assert [value for value, checked in boxes if checked] == ["order.*"]
    assert {"*", "coupon.*", "order.created", "customer.merged"} <= {value for value, _ in boxes}
    assert not [value for value, _ in boxes if value.startswith("key.")]
    page = browser.submit(f"/webhooks/{webhook['id']}/edit", "delivery_url", topics=None)
    assert (page.status, 'href="#field-topics"' in page.html) == (400, True)


def test_a_stored_reason_is_neither_markup_nor_a_template(app, browser, webhook):
    reason = "<i>100% failed: %(error)s"
    change = update(WEBHOOKS).values(status="disabled", disabled_reason=reason)
    with app.app_context():
        run_in_transaction(lambda session: session.execute(change))
    page = browser.get(f"/webhooks/{webhook['id']}")
    assert page.status == 200
    assert "&lt;i&gt;100% failed: %(error)s" in page.html


def test_refused_address_stands_beside_its_field(browser):
    page = browser.submit("/webhooks/new", "delivery_url", delivery_url="http://127.0.0.1/")
    assert page.status == 400
    assert 'id="field-delivery_url-error"' in page.html
    assert "SHOP_WEBHOOK_ALLOWED_NETWORKS" in page.text


def test_edit_pause_rotate_and_delete(browser, admin, webhook):
    path = f"/webhooks/{webhook['id']}"
    assert browser.submit(f"{path}/edit", "delivery_url", name="New name").status == 303
    assert browser.post(f"{path}/status", {"status": "paused"}).status == 303
    changed = admin.get(path).json["webhook"]
    assert (changed["name"], changed["status"]) == ("New name", "paused")
    assert "Activate" in browser.get(path).text
    assert "whsec_" in browser.post(f"{path}/rotate").text
    assert browser.post(f"{path}/delete").status == 303
    assert admin.get(path).status_code == 404


@pytest.mark.slow
def test_a_ping_leads_to_its_result_which_a_reload_shows_again(browser, app_with, admin, webhook):
    shop = app_with(SHOP_WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8")
    with closing(Receiver(lambda _: 200)) as receiver:
        allowed = Browser(shop, admin.key)
        hook = {"name": "ERP", "topics": "order.*", "delivery_url": receiver.url}
        allowed.submit("/webhooks/new", "delivery_url", **hook)
        number = admin.get("/webhooks?order=desc").json["webhooks"][0]["id"]
        page = allowed.post(f"/webhooks/{number}/ping")
        assert page.status == 303
        for _ in range(2):
            path = page.location.removeprefix("/admin")
            assert re.search(r"The receiver responded with 200 in \d+ ms", allowed.get(path).text)
        assert len(receiver.received) == 1
        assert "ping=" not in allowed.get(path).html, "no link of the page repeats it"
        refused = browser.post(f"/webhooks/{number}/ping")
    assert refused.status == 303
    text = browser.get(refused.location.removeprefix("/admin")).text
    assert "The ping failed: refused address." in text
    assert "SHOP_WEBHOOK_ALLOWED_NETWORKS" in text
    for query in ("ping=<b>&ms=1", "ping=200&ms=soon", "ping=200", "ms=1"):
        page = browser.get(f"/webhooks/{number}?{query}")
        assert page.status == 200
        assert "ping failed" not in page.text
        assert "responded" not in page.text


@pytest.mark.both_databases
def test_deliveries_are_listed_sent_again_and_replayed(app, browser, admin, webhook):
    admin.post("/orders", {"order": {"line_items": [{"name": "Tea", "total": "5.00"}]}})
    admin.get("/events")  # numbers the events
    path = f"/webhooks/{webhook['id']}"

    def queue():
        with app.app_context():
            run_cycle("gone", CycleInput((), (), {}))  # a worker that sends nothing
        return admin.get(f"{path}/deliveries").json["webhook_deliveries"]

    (delivery,) = queue()
    assert f'{path}/deliveries/{delivery["id"]}"' in browser.get(path).html
    shown = browser.get(f"{path}/deliveries/{delivery['id']}")
    assert shown.status == 200
    assert "order.created" in shown.text
    assert browser.get(f"{path}/deliveries/999").status == 404
    form = browser.get(path).form("after") | {"after": "0"}
    for action in (f"deliveries/{delivery['id']}/redeliver", "replay"):
        failed = update(WEBHOOK_DELIVERIES).values(state="failed", next_attempt_at=None)
        with app.app_context():
            run_in_transaction(lambda session, change=failed: session.execute(change))
        assert browser.post(f"{path}/{action}", form).status == 303
        assert "pending" in {each["state"] for each in queue()}, action
    assert "Queued." in browser.get(f"{path}?done=queued").text


def test_events_newest_first_with_filters_and_links(browser, admin):
    for code in ("a", "b"):
        admin.post("/coupons", {"coupon": {"code": code}})
    admin.post("/customers", {"customer": {"email": "ada@example.com"}})
    page = browser.get("/events")
    rows = re.findall('role="rowheader".*?</td>', page.html, re.DOTALL)
    assert ["customer.created" in row for row in rows] == [True, False, False]
    only = browser.get("/events?resource=coupon")
    assert "coupon.created" in only.text
    assert only.html.count('role="rowheader"') == 2
    event = admin.get("/events?type=coupon.created").json["events"][0]
    shown = browser.get(f"/events/{event['id']}")
    assert "coupon.created" in shown.text
    assert f"/admin/coupons/{event['resource_id']}" in shown.html
    assert browser.get("/events/999999").status == 404
    older = browser.get(f"/events?before={event['id']}")
    assert older.status == 200
    assert browser.get("/events?resource=unknown").status == 400


def test_keys_are_created_rotated_and_revoked(browser, admin):
    page = browser.submit(
        "/keys/new", "description", description="ERP sync", permission="read",
        resources="orders", username="erp", role="shop_manager",
    )  # fmt: skip
    assert page.status == 200
    assert re.search("ck_[0-9a-f]{40}", page.text)
    assert re.search("cs_[0-9a-f]{40}", page.text)
    key = next(each for each in admin.get("/keys").json["keys"] if each["username"] == "erp")
    assert (key["permission"], key["resources"]) == ("read", ["orders"])
    path = f"/keys/{key['id']}"
    assert "ERP sync" in browser.get("/keys").text
    assert "cs_" not in browser.get(path).text
    sent = {"_form": "a"}, {"_form": "a"}, {"_form": "b"}
    first, reloaded, other = (
        re.findall("cs_[0-9a-f]{40}", browser.post(f"{path}/rotate", form).text) for form in sent
    )
    assert first == reloaded
    assert first != other
    assert browser.post(f"{path}/revoke").status == 303
    assert admin.get(path).status_code == 404


def test_key_with_an_error_keeps_what_was_typed(browser):
    page = browser.submit("/keys/new", "description", description="Kept", expires_at="2020-01-01")
    assert page.status == 400
    assert 'value="Kept"' in page.html


def test_a_manager_sees_only_own_keys(new_browser):
    manager = new_browser(login="mia", role="shop_manager")
    page = manager.get("/keys")
    assert page.status == 200
    assert "mia" in page.text
    assert manager.get("/keys/new").status == 401
    assert manager.get("/webhooks").status in {200, 401}


def test_the_ping_of_another_dialect_is_a_delivery_without_an_event(admin, browser):
    given = {"name": "Till", "topic": "order.created", "delivery_url": "https://example.com/till"}
    created = admin.post("/wp-json/wc/v3/webhooks", given)
    assert created.status_code == 201, created.json
    page = browser.get(f"/webhooks/{created.json['id']}")
    assert "Send again Ping" in page.text
    assert "None" not in page.text


def test_a_late_worker_is_not_reported_as_missing(app, admin, browser, webhook):
    admin.post("/webhooks", {"webhook": WEBHOOK | {"name": "Other", "topics": ["coupon.*"]}})
    admin.post("/orders", {"order": {"line_items": [{"name": "Tea", "total": "5.00"}]}})
    admin.get("/events")  # numbers the events
    with app.app_context():
        run_cycle("gone", CycleInput((), (), {}))  # a worker that sends nothing

    def warns(minutes, **state):
        """Whether the page warns of a delivery that is due for minutes, in a state of webhooks."""
        values = dict.fromkeys(("lease_until", "last_delivery_at", "resume_at")) | state
        due = precise_now() - timedelta(minutes=minutes)
        with app.app_context():
            run_in_transaction(lambda session: (
                session.execute(update(WEBHOOK_DELIVERIES).values(next_attempt_at=due)),
                session.execute(update(WEBHOOKS).values(values)),
            ))  # fmt: skip
        return "No worker seems to run" in browser.get("/").text

    recently, later = precise_now() - timedelta(minutes=2), precise_now() + timedelta(minutes=9)
    assert not warns(3)
    assert warns(6)
    assert not warns(6, last_delivery_at=recently), "it sends, and is behind"
    assert not warns(6, resume_at=later), "the receiver fails, and is left alone"
    with app.app_context():
        other = update(WEBHOOKS).where(WEBHOOKS.c.name == "Other").values(lease_until=recently)
        assert warns(6)
        run_in_transaction(lambda session: session.execute(other))
    assert "No worker seems to run" not in browser.get("/").text, "it works for another webhook"


def test_pausing_a_webhook_that_has_changed_otherwise(browser, admin, webhook):
    path = f"/webhooks/{webhook['id']}"
    shown = browser.get(path).form("status")
    assert shown["_etag"]
    admin.put(path, {"webhook": {"name": "Other"}})
    assert browser.post(f"{path}/status", shown).location.endswith("done=saved")
    assert admin.get(path).json["webhook"]["status"] == "paused"
