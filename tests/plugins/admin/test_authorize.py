"""A service asks for a key, and a person approves it (wc-auth of WooCommerce)."""

import json
import ssl
import threading
from base64 import b64encode
from urllib.parse import urlencode

import pytest
import trustme

from app.plugins.admin import authorize
from tests.api_client import Client
from tests.plugins.admin.browser_client import ORIGIN, Browser
from tests.webhooks.receivers import LOOPBACK, Receiver

pytestmark = pytest.mark.one_database


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture
def callback(authority, tmp_path, monkeypatch):
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    receiver = Receiver(tls=context)
    receiver.respond = lambda _: 200
    yield receiver
    receiver.close()


@pytest.fixture
def shop(make_app, admin):
    app = make_app(SHOP_WEBHOOK_ALLOWED_NETWORKS=f"{LOOPBACK},::1")
    return Browser(app, admin.key)


def asked(callback="https://app.example/keys", **over):
    return {
        "app_name": "Shipping Pro",
        "scope": "read_write",
        "user_id": "123",
        "return_url": "https://app.example/back?a=1",
        "callback_url": callback,
    } | over


def path_of(**over):
    return f"/authorize?{urlencode(asked(**over))}"


def count(admin):
    return len(admin.get("/keys").get_json()["keys"])


def test_service_gets_a_key_after_the_person_has_approved(shop, admin, callback):
    before = count(admin)
    start = shop.http.get(f"/wc-auth/v1/authorize?{urlencode(asked(callback.url))}")
    assert start.status_code == 302
    page = shop.get(start.headers["Location"].removeprefix("/admin"))
    assert page.status == 200
    for text in (
        "Shipping Pro",
        "Read and write",
        "coupons, customers, orders, reports",
        "localhost",
    ):
        assert text.lower() in page.text.lower()
    assert "form-action 'self' https://app.example;" in page.headers["Content-Security-Policy"]
    assert (count(admin), callback.received) == (before, [])  # nothing has happened yet
    done = shop.post("/authorize", page.form("callback_url"))
    assert (done.status, done.location) == (
        303,
        "https://app.example/back?a=1&success=1&user_id=123",
    )
    (sent,) = callback.received
    assert sent.headers["content-type"] == "application/json;charset=UTF-8"
    body = json.loads(sent.body)
    assert list(body) == ["key_id", "user_id", "consumer_key", "consumer_secret", "key_permissions"]
    assert (body["user_id"], body["key_permissions"]) == ("123", "read_write")
    key = admin.get(f"/keys/{body['key_id']}").get_json()["key"]
    assert (key["description"], key["expires_at"]) == ("Shipping Pro", None)
    assert key["resources"] == ["coupons", "customers", "orders", "reports", "webhooks"]
    basic = {"Authorization": _basic(body)}
    assert Client(shop.app).get("/orders", headers=basic).status_code == 200
    assert Client(shop.app).get("/keys", headers=basic).status_code == 401


def _basic(body):
    pair = f"{body['consumer_key']}:{body['consumer_secret']}"
    return f"Basic {b64encode(pair.encode()).decode()}"


@pytest.mark.parametrize("response", [500, 302, 404])
def test_key_is_revoked_if_the_callback_fails(shop, admin, callback, response):
    callback.respond = lambda _: response
    before = count(admin)
    page = shop.submit(path_of(callback=callback.url), "callback_url")
    assert page.status == 400
    assert (
        f"localhost has not accepted the key (status {response}), so it was revoked." in page.text
    )
    assert 'href="https://app.example/back?a=1&amp;success=0&amp;user_id=123"' in page.html
    assert count(admin) == before
    body = json.loads(callback.received[0].body)
    basic = {"Authorization": _basic(body)}
    assert Client(shop.app).get("/orders", headers=basic).status_code == 401


def test_callback_that_does_not_respond_is_given_up(shop, admin, callback, monkeypatch):
    monkeypatch.setattr(authorize, "CALLBACK_SECONDS", 0.2)
    ended = threading.Event()
    callback.respond = lambda _: ended.wait(5) and 200
    before = count(admin)
    page = shop.submit(path_of(callback=callback.url), "callback_url")
    ended.set()
    assert (page.status, count(admin)) == (400, before)
    assert "(no response in time)" in page.text


def test_button_that_is_pressed_twice_makes_one_key(shop, admin, callback):
    before = count(admin)
    values = shop.get(path_of(callback=callback.url)).form("callback_url")
    first, second = (shop.post("/authorize", values) for _ in range(2))
    assert first.location == second.location
    assert (count(admin), len(callback.received)) == (before + 1, 1)


def test_second_press_waits_for_the_first(shop, admin, callback):
    """... and reports what has become of the key."""
    values = shop.get(path_of(callback=callback.url)).form("callback_url")
    arrived, goes_on = threading.Event(), threading.Event()

    def respond(_):
        arrived.set()
        goes_on.wait(10)
        return 500

    callback.respond = respond
    before, found = count(admin), []
    other = Browser(shop.app, admin.key)
    first = threading.Thread(target=lambda: found.append(shop.post("/authorize", values)))
    second = threading.Thread(target=lambda: found.append(other.post("/authorize", values)))
    first.start()
    assert arrived.wait(10)
    second.start()
    goes_on.set()
    for each in (first, second):
        each.join(20)
    assert [page.status for page in found] == [400, 400]
    assert (count(admin), len(callback.received)) == (before, 1)


def test_denied_request_returns_without_a_key(shop, admin):
    before = count(admin)
    page = shop.get(path_of())
    assert 'href="https://app.example/back?a=1&amp;success=0&amp;user_id=123"' in page.html
    assert count(admin) == before


@pytest.mark.parametrize(
    ("over", "reason"),
    [
        ({"app_name": ""}, "app_name"),
        ({"app_name": "x" * 201}, "app_name"),
        ({"user_id": ""}, "user_id"),
        ({"scope": "all"}, "scope"),
        ({"callback_url": "http://app.example/keys"}, "https"),
        ({"callback_url": "https://127.0.0.1/"}, "not allowed"),
        ({"callback_url": "https://app.example:25/"}, "not allowed"),
        ({"callback_url": "https://a@app.example/"}, "callback_url"),
        ({"return_url": "javascript://app.example/%0aalert(1)"}, "return_url"),
        ({"return_url": "data:text/html,x"}, "return_url"),
        ({"return_url": "https://app.example; script-src *"}, "return_url"),
        ({"return_url": "//"}, "return_url"),
    ],
)  # fmt: skip
def test_wrong_request_has_neither_button_nor_link(make_app, admin, over, reason):
    browser = Browser(make_app(), admin.key)
    page = browser.get(f"/authorize?{urlencode(asked(**over))}")
    assert page.status == 400
    assert reason in page.text
    assert "Approve" not in page.text
    assert "app.example/back" not in page.html
    sent = browser.post("/authorize", asked(**over))
    assert (sent.status, count(admin)) == (400, 1)


def test_addresses_without_a_scheme_are_https(shop, callback):
    over = {"return_url": "app.example%2Fback", "user_id": "a&b=c/ü"}
    page = shop.submit(path_of(callback=callback.url, **over), "callback_url")
    assert page.location == "https://app.example/back?success=1&user_id=a%26b%3Dc%2F%C3%BC"
    assert json.loads(callback.received[0].body)["user_id"] == "a&b=c/ü"


def test_other_sites_cannot_approve(shop, admin, callback):
    values = shop.get(path_of(callback=callback.url)).form("callback_url")
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://app.example"}):
        assert shop.post("/authorize", values, headers=headers).status == 403
    assert callback.received == []


def test_sign_in_leads_back_to_the_request(make_app, admin):
    nobody = Browser(make_app())
    page = nobody.get(path_of())
    assert page.status == 303
    assert "/sign-in?next=/admin/authorize?app_name%3DShipping" in page.location
    assert nobody.post("/authorize", asked(), headers=ORIGIN).status == 401


def test_key_of_the_session_limits_the_key(shop, new_browser, callback):
    reader = new_browser("ron", permission="read")
    page = reader.get(path_of())
    assert page.status == 401
    writer = new_browser("wil", permission="read_write", resources=["orders"])
    assert writer.get(path_of()).status == 401
    few = new_browser("few", resources=["keys", "orders"])
    assert "Orders" in few.get(path_of()).text
    assert new_browser("customer", role="customer").get(path_of()).status == 401
