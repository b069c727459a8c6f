"""Signing in and out: cookies, links, fixation, expiry, revocation, other sites, redirects."""

import io
import random
import re
import string
from contextlib import closing
from datetime import timedelta
from http.client import HTTPConnection
from urllib.parse import urlencode

import pytest
from sqlalchemy import select, update

from app.auth.principals import Permission
from app.db.session import db, now, run_in_transaction
from app.errors import ShopError
from app.models import ADMIN_SESSIONS, API_KEYS, SIGN_IN_LINKS
from app.services.api_keys import links
from app.services.api_keys.writes import create_key
from app.services.maintenance.cleanup import sweep
from tests.plugins.admin.browser_client import ORIGIN, Browser
from tests.plugins.admin.test_rights import pages
from tests.serving import Gunicorn

pytestmark = pytest.mark.one_database


def credentials(key, **over):
    return {"consumer_key": key.consumer_key, "consumer_secret": key.consumer_secret, **over}


def set_columns(app, table, **columns):
    with app.app_context():
        run_in_transaction(lambda session: session.execute(update(table).values(columns)))


def rows(app, table):
    with app.app_context(), db.engine.connect() as connection:
        return connection.execute(select(table)).all()


def test_a_page_without_a_session_leads_to_the_sign_in_and_back(app, admin):
    browser = Browser(app)
    page = browser.get("/coupons?state=expired")
    assert (page.status, page.location) == (
        303, "/admin/sign-in?next=/admin/coupons?state%3Dexpired",
    )  # fmt: skip
    page = browser.post("/sign-in", credentials(admin.key, next="/admin/coupons?state=expired"))
    assert (page.status, page.location) == (303, "/admin/coupons?state=expired")
    assert browser.get("/coupons").status == 200


@pytest.mark.parametrize(
    "next_",
    [
        "https://evil.example/", "//evil.example/admin/", "/admin/../orders", "/orders", "\\\\evil",
        "/admin\\@evil.example", "javascript:alert(1)", "/admin/\nx", "http:/admin/", "/adminx/", "",
        "/admin/%2e%2E/orders", "/admin/sign-out", "/admin/coupons/1/trash", "/admin/nothing",
    ],
)  # fmt: skip
def test_only_pages_of_the_shop_are_opened_after_signing_in(app, admin, next_):
    page = Browser(app).post("/sign-in", credentials(admin.key, next=next_))
    assert (page.status, page.location) == (303, "/admin/")


def test_the_cookie_is_hidden_from_scripts_and_of_this_host(app, admin):
    page = Browser(app).post("/sign-in", credentials(admin.key))
    cookie = page.headers["Set-Cookie"]
    assert cookie.startswith("shop_session_")
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
    assert not {"Domain", "Secure"} & {part.partition("=")[0] for part in cookie.split("; ")}
    secure = Browser(app).post("/sign-in", credentials(admin.key), base_url="https://localhost")
    assert secure.headers["Set-Cookie"].startswith("__Host-shop_session_")
    assert "Secure" in secure.headers["Set-Cookie"]


def test_plain_http_of_another_host_is_refused(app, admin):
    browser = Browser(app)
    page = browser.get("/sign-in", base_url="http://shop.example")
    assert "SHOP_TRUSTED_PROXIES" in page.text
    page = browser.post("/sign-in", credentials(admin.key), base_url="http://shop.example")
    assert page.status == 403
    assert "Set-Cookie" not in page.headers


def test_wrong_and_unknown_keys_get_the_same_message(app, admin):
    wrong = Browser(app).post("/sign-in", credentials(admin.key, consumer_secret="x"))
    unknown = Browser(app).post("/sign-in", {"consumer_key": "ck_x", "consumer_secret": "x"})
    message = "The consumer key or its secret is wrong."
    assert (wrong.status, unknown.status) == (401, 401)
    assert message in wrong.text
    assert message in unknown.text
    assert "WWW-Authenticate" not in wrong.headers


def test_failed_logins_are_limited(make_app, admin):
    app = make_app(SHOP_AUTH_FAILURES_PER_MINUTE=2)
    browser = Browser(app)
    statuses = [
        browser.post("/sign-in", credentials(admin.key, consumer_secret="x")).status
        for _ in range(3)
    ]
    assert statuses == [401, 401, 429]


def test_a_key_without_read_permission_cannot_sign_in(app, admin):
    with app.app_context():
        key = create_key("writer", "administrator", Permission.WRITE, "")
    page = Browser(app).post("/sign-in", credentials(key))
    assert page.status == 401
    assert "without read permission" in page.text


def test_signing_in_begins_a_new_session_and_ends_the_old_one(app, browser, admin):
    old = rows(app, ADMIN_SESSIONS)
    assert browser.post("/sign-in", credentials(admin.key)).status == 303
    new = rows(app, ADMIN_SESSIONS)
    assert len(new) == 1
    assert new[0].token_hash != old[0].token_hash


def test_a_token_that_the_service_has_not_made_is_no_session(app, browser):
    name = rows(app, ADMIN_SESSIONS) and next(iter(browser.http._cookies.values())).key
    other = Browser(app)
    other.http.set_cookie(name, "chosen-by-an-attacker")
    assert other.get("/coupons").status == 303


def test_the_cookie_is_no_credential_of_the_api(app, browser):
    assert browser.http.get("/coupons").status_code == 401
    assert browser.http.post("/coupons", json={}, headers=ORIGIN).status_code == 401


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "change",
    [
        {"expires_at": now() - timedelta(seconds=1)},
        {"last_used_at": now() - timedelta(days=14, seconds=1)},
    ],
)
def test_a_session_ends_with_time(app, browser, change):
    set_columns(app, ADMIN_SESSIONS, **change)
    assert browser.get("/coupons").status == 303


def test_the_last_use_is_a_whole_minute_so_that_it_is_written_once_a_minute(app, browser):
    set_columns(app, ADMIN_SESSIONS, last_used_at=now() - timedelta(seconds=70))
    for _ in range(2):
        before = now().replace(second=0, microsecond=0)
        browser.get("/")
        (session,) = rows(app, ADMIN_SESSIONS)
        assert before <= session.last_used_at <= now()
        assert (session.last_used_at.second, session.last_used_at.microsecond) == (0, 0)


def test_a_session_has_the_rights_that_its_key_has_now(app, admin, new_browser):
    browser = new_browser("bob", "administrator")
    assert browser.get("/coupons").status == 200
    change = {"key": {"resources": ["orders"]}}
    assert admin.put(f"/keys/{browser.key.key_id}", change).status_code == 200
    page = browser.get("/coupons")
    assert page.status == 401
    assert "not valid for the resource coupons" in page.text


@pytest.mark.parametrize("how", ["revoke", "rotate", "user"])
def test_the_end_of_a_key_ends_its_sessions_at_once(app, admin, new_browser, how):
    browser = new_browser("bob", "customer")
    key = browser.key
    assert browser.get("/sessions").status == 200
    if how == "revoke":
        assert admin.delete(f"/keys/{key.key_id}").status_code == 200
    elif how == "rotate":
        assert admin.post(f"/keys/{key.key_id}/rotate").status_code == 200
    else:
        assert admin.delete(f"/customers/{key.user_id}").status_code == 200
    assert browser.get("/sessions").status == 303
    assert [row for row in rows(app, ADMIN_SESSIONS) if row.key_id == key.key_id] == []


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_the_end_of_a_session_takes_effect_on_another_machine(
    app, admin, browser, settings, tmp_path
):
    """A service that shares nothing but the database with this process."""
    shared = {name: settings[name] for name in ("DATABASE_URL", "SECRET_KEY")}
    another = Gunicorn(tmp_path / "log", shared | {"INSTANCE_PATH": str(tmp_path)})

    def request(method, path, body=None, **headers):
        with closing(HTTPConnection("127.0.0.1", another.port, timeout=120)) as connection:
            connection.request(method, f"/admin{path}", body, ORIGIN | headers)
            return connection.getresponse()

    def end_by_administrator(key):
        (session,) = [row for row in rows(app, ADMIN_SESSIONS) if row.key_id == key.key_id]
        return browser.post(f"/sessions/{session.id}/end").status

    ends = {
        "revoke": lambda key: admin.delete(f"/keys/{key.key_id}").status_code,
        "rotate": lambda key: admin.post(f"/keys/{key.key_id}/rotate").status_code,
        "user": lambda key: admin.delete(f"/customers/{key.user_id}").status_code,
        "administrator": end_by_administrator,
        "everywhere": lambda key: Browser(app, key).post("/sign-out", {"everywhere": "1"}).status,
    }
    another.start()
    try:
        another.wait_until_ready()
        for login, end in ends.items():
            with app.app_context():
                key = create_key(login, "shop_manager", Permission.READ_WRITE, "")
                token = links.create_link(key.key_id)
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            signed_in = request("POST", "/sign-in", urlencode({"token": token}), **form)
            cookie = {"Cookie": signed_in.headers["Set-Cookie"].partition(";")[0]}
            assert request("GET", "/coupons", **cookie).status == 200
            assert end(key) in {200, 303}, login
            assert request("GET", "/coupons", **cookie).status == 303, login
    finally:
        another.close()


def test_a_session_ends_when_its_key_expires(app, new_browser):
    browser = new_browser("bob", "shop_manager")
    assert browser.get("/coupons").status == 200
    expired = update(API_KEYS).where(API_KEYS.c.id == browser.key.key_id)
    with app.app_context():
        run_in_transaction(
            lambda session: session.execute(expired.values(expires_at=now() - timedelta(seconds=1)))
        )
    assert browser.get("/coupons").status == 303


def test_how_long_sessions_links_and_invitations_last(app, admin, browser):
    with app.app_context():
        links.create_link(admin.key.key_id)
    assert 'href="/admin/keys" aria-current="page"' in browser.get("/invitations/new").html
    browser.submit("/invitations/new", "login", login="grace")
    (session,), (link, invitation) = rows(app, ADMIN_SESSIONS), rows(app, SIGN_IN_LINKS)
    found = [each.expires_at - each.created_at for each in (session, link, invitation)]
    assert found == [timedelta(days=90), timedelta(minutes=10), timedelta(hours=48)]


def test_tokens_are_stored_as_hashes_and_not_logged(app, admin, app_with, capsys):
    with app.app_context():
        token = links.create_link(admin.key.key_id)
    browser = Browser(app_with())
    page = browser.get(f"/sign-in?token={token}")
    assert page.form("token") == {"token": token}
    browser.post("/sign-in", {"token": token})
    cookie = next(iter(browser.http._cookies.values())).value
    stored = str([*rows(app, SIGN_IN_LINKS), *rows(app, ADMIN_SESSIONS)])
    logged = "".join(capsys.readouterr())
    assert "/admin/sign-in" in logged
    for secret in (token, cookie):
        assert len(secret) >= 43, "256 bits"
        assert secret not in stored + logged


def test_an_invitation_cannot_give_more_rights_than_the_inviter_has(app, new_browser):
    inviter = new_browser("bob", "administrator", resources=["keys", "customers", "coupons"])
    for more in ({"resources": "all"}, {"resources": "orders"}):
        page = inviter.submit("/invitations/new", "login", login="grace", **more)
        assert page.status in {400, 401}, more
        assert "sign-in?token=" not in page.html
    assert rows(app, SIGN_IN_LINKS) == []
    page = inviter.submit("/invitations/new", "login", login="grace", resources="coupons")
    assert "sign-in?token=" in page.html


def test_signing_out_ends_the_session_and_clears_the_browser(app, browser):
    page = browser.post("/sign-out")
    assert (page.status, page.location) == (303, "/admin/sign-in")
    assert page.headers["Clear-Site-Data"] == '"cache", "storage"'
    assert rows(app, ADMIN_SESSIONS) == []


def test_signing_out_everywhere_ends_all_sessions_and_links_of_the_user(app, admin, browser):
    another = Browser(app, admin.key)
    with app.app_context():
        links.create_link(admin.key.key_id)
    browser.post("/sign-out", {"everywhere": "1"})
    assert another.get("/coupons").status == 303
    assert rows(app, SIGN_IN_LINKS) == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 303),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Origin": "http://localhost"}, 303),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({}, 403),
    ],
)
def test_an_unsafe_request_must_come_from_a_page_of_this_origin(browser, headers, status):
    assert browser.post("/sign-out", headers=headers).status == status


def test_allowed_origins_of_the_api_do_not_count_for_pages(app_with, admin):
    app = app_with(SHOP_CORS_ORIGINS="https://friend.example")
    headers = {"Origin": "https://friend.example"}
    page = Browser(app, admin.key).post("/sign-out", headers=headers)
    assert page.status == 403
    assert "Access-Control-Allow-Origin" not in page.headers


def test_pages_have_a_strict_policy(browser):
    for path in ("/", "/coupons", "/sign-in", "/nothing"):
        headers = browser.get(path).headers
        assert headers["Content-Security-Policy"].startswith(
            "default-src 'none'; script-src 'self'"
        )
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "same-origin"


def test_a_link_changes_nothing_until_its_button_is_pressed(app, admin):
    with app.app_context():
        token = links.create_link(admin.key.key_id)
    browser = Browser(app)
    for _ in range(2):
        page = browser.get(f"/sign-in?token={token}")
        assert page.status == 200
        assert "administrator" in page.text
    assert browser.post("/sign-in", {"token": token}).status == 303
    for again in (
        browser.post("/sign-in", {"token": token}),
        Browser(app).get(f"/sign-in?token={token}"),
    ):
        assert again.status == 410
        assert "Ask the person who sent it for another one" in again.text


def test_a_link_expires(app, admin):
    with app.app_context():
        token = links.create_link(admin.key.key_id)
    set_columns(app, SIGN_IN_LINKS, expires_at=now())
    assert Browser(app).post("/sign-in", {"token": token}).status == 410


def test_a_save_without_a_session_keeps_what_was_typed(app, admin, browser):
    values = browser.get("/coupons/new").form("_form") | {"code": "kept", "amount": "5"}
    set_columns(app, ADMIN_SESSIONS, expires_at=now() - timedelta(days=1))
    page = browser.post("/coupons/new", values)
    assert page.status == 401
    assert "what you typed is kept" in page.text
    held = page.form("held")
    page = browser.post("/sign-in", held | credentials(admin.key))
    assert page.status == 200
    page = browser.post("/coupons/new", page.form("_shown") | {"_show": "form"})
    assert page.form("_form")["code"] == "kept"
    assert admin.get("/coupons/count").get_json() == {"count": 0}


@pytest.mark.parametrize("size", [60_000, 66_000, 5_000_000])
def test_a_form_without_a_session_is_kept_only_if_it_can_be_sent_again(app, admin, size):
    letters = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=size))
    page = Browser(app).post("/coupons/new", {"code": letters, "_shown": "{}"})
    assert page.status == 401
    assert "is too large to be kept here. Sign in in another tab" in page.text
    assert len(page.html) < 10_000
    assert Browser(app).post("/sign-in", page.form("held") | credentials(admin.key)).status == 303


def test_the_largest_form_without_a_session_that_is_kept(app, admin):
    letters = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=48_000))
    page = Browser(app).post("/coupons/new", {"description": letters, "_shown": "{}"})
    page = Browser(app).post("/sign-in", page.form("held") | credentials(admin.key))
    assert page.form("_shown")["description"] == letters


def test_a_sign_in_has_at_most_64_kib(app, admin):
    page = Browser(app).post("/sign-in", credentials(admin.key, held="x" * 65_536))
    assert (page.status, "larger than 65536 bytes" in page.text) == (413, True)
    role = Browser(app, admin.key)
    assert (
        role.post("/coupons/new", {"code": "x", "amount": "5", "description": "x" * 65_536}).status
        == 303
    )


class _Unread(io.RawIOBase):
    """A body whose first byte fails the test."""

    def readable(self):
        return True

    def readinto(self, _buffer):
        raise AssertionError("the body was read")


def test_a_form_without_the_right_is_not_read(app, admin, new_browser):
    reader = new_browser("eve", "administrator", permission="read")
    rejected = set()
    for method, path, needs in pages(app, {}):
        if method == "POST" and any(not str(each).startswith(("list", "get")) for each in needs):
            environ = {"wsgi.input": io.BufferedReader(_Unread()), "CONTENT_LENGTH": "5000000"}
            form = {"content_type": "application/x-www-form-urlencoded", "headers": ORIGIN}
            page = reader.http.post(f"/admin{path}", environ_overrides=environ, **form)
            # A key that reads is enough for a cart, and to look for a person.
            if "evaluate_coupons" not in needs and path != "/privacy/find":
                assert page.status_code == 401, path
                rejected.add(path)
    assert {"/coupons/new", "/data/upload", "/orders/999/refund", "/keys/999/revoke"} <= rejected


def test_an_action_on_a_selection_without_the_right_changes_nothing(admin, new_browser):
    admin.post("/coupons", {"coupon": {"code": "a"}})
    reader = new_browser("eve", "administrator", permission="read")
    assert reader.post("/coupons/selected", {"action": "trash", "id": "1"}).status == 401


def test_a_held_form_cannot_be_made_by_others(app, admin):
    page = Browser(app).post("/sign-in", credentials(admin.key, held="WyJ4Il0.forged.sig"))
    assert (page.status, page.location) == (303, "/admin/")


def test_a_link_cannot_lead_to_a_form_that_others_have_sent(app, admin, make_coupon):
    """The service signs each form, also one that nobody of the shop has typed."""
    coupon = make_coupon()["id"]
    page = Browser(app).post(f"/coupons/{coupon}/delete", {"_shown": "{}"})
    browser = Browser(app)
    values = browser.get("/sign-in", query_string=page.form("held")).form("consumer_key")
    page = browser.post("/sign-in", values | credentials(admin.key))
    assert (page.status, page.location) == (303, "/admin/")


def test_inviting_a_colleague(app, admin, browser):
    page = browser.submit("/invitations/new", "login", login="grace", role="shop_manager")
    link = page.html.split("sign-in?token=")[1].split("<")[0]
    assert "<h1>Invite a colleague</h1>" in page.html
    assert "grace" in browser.get("/keys").text
    guest = Browser(app)
    assert "invites you" in guest.get(f"/sign-in?token={link}").text
    page = guest.post("/sign-in", {"token": link})
    assert 'autocomplete="new-password"' in page.html
    assert guest.post("/sign-in", page.form("consumer_secret")).status == 303
    assert guest.get("/coupons").status == 200
    assert Browser(app).post("/sign-in", {"token": link}).status == 410
    events = admin.get("/events").get_json()["events"]
    types = [each["type"] for each in events]
    names = ["invitation.created", "customer.created", "key.created", "invitation.accepted"]
    assert types == names
    created, *_, accepted = events
    assert created["resource_id"] == accepted["resource_id"]
    for event in (created, accepted):
        assert event["data"]["invitation"]["id"] == event["resource_id"]


def test_an_invitation_that_is_sent_twice_is_one(admin, browser):
    values = browser.get("/invitations/new").form("login") | {"login": "grace"}
    first, again = (browser.post("/invitations/new", values) for _ in range(2))
    tokens = [re.search(r"sign-in\?token=([\w-]+)", page.html)[1] for page in (first, again)]
    assert tokens[0] == tokens[1]
    assert browser.get("/keys").html.count("/withdraw") == 1
    assert [each["type"] for each in admin.get("/events").json["events"]] == ["invitation.created"]
    other = browser.post("/invitations/new", values | {"login": "joan"})
    assert tokens[0] not in other.html
    assert browser.get("/keys").html.count("/withdraw") == 2


@pytest.mark.both_databases
def test_the_session_is_read_in_one_statement_with_its_key_and_user(browser, statements):
    browser.get("/data/imports/1")
    statements.clear()
    assert browser.get("/invitations/new").status == 200
    (session,) = statements
    for table in ("admin_sessions", "api_keys", "users", "user_roles"):
        assert f" {table} " in session


def test_an_invitation_ends_with_the_rights_of_the_inviter(app, admin, new_browser):
    inviter = new_browser("bob", "administrator")
    page = inviter.submit("/invitations/new", "login", login="grace", role="administrator")
    link = page.html.split("sign-in?token=")[1].split("<")[0]
    change = {"key": {"permission": "read"}}
    assert admin.put(f"/keys/{inviter.key.key_id}", change).status_code == 200
    page = Browser(app).post("/sign-in", {"token": link})
    assert (page.status, "bob can no longer give the rights" in page.text) == (410, True)
    assert admin.delete(f"/keys/{inviter.key.key_id}").status_code == 200
    assert Browser(app).post("/sign-in", {"token": link}).status == 410


def test_a_key_that_cannot_create_users_cannot_invite(app, new_browser):
    inviter = new_browser("bob", "administrator", resources=["keys", "coupons"])
    page = inviter.submit("/invitations/new", "login", login="grace", resources="coupons")
    assert (page.status, "sign-in?token=" in page.html) == (400, False)
    assert rows(app, SIGN_IN_LINKS) == []


def test_an_invitation_that_cannot_be_accepted_says_why(app, admin, browser):
    page = browser.submit("/invitations/new", "login", login="grace")
    link = page.html.split("sign-in?token=")[1].split("<")[0]
    admin.post("/customers", {"customer": {"email": "grace@example.com", "username": "Grace"}})
    for _ in range(2):  # it stays open, so that its inviter can withdraw it
        page = Browser(app).post("/sign-in", {"token": link})
        assert (page.status, "already belongs to a user" in page.text) == (410, True)
        assert "Ask the person who sent it" in page.text
    assert "grace" in browser.get("/keys").text


def test_only_who_manages_keys_can_invite(new_browser):
    manager = new_browser("bob", "shop_manager")
    assert manager.get("/invitations/new").status == 401
    assert "Invite" not in manager.get("/keys").text


def test_an_administrator_ends_the_session_of_another_user(app, browser, new_browser):
    other = new_browser("bob", "customer")
    (session,) = [row for row in rows(app, ADMIN_SESSIONS) if row.key_id == other.key.key_id]
    assert other.post(f"/sessions/{session.id - 1}/end").status == 404  # of the administrator
    assert browser.post(f"/sessions/{session.id}/end").status == 303
    assert other.get("/sessions").status == 303


@pytest.mark.parametrize(
    ("permission", "resources", "sees", "ends"),
    [
        ("read_write", ["coupons"], False, False),
        ("read", None, True, False),
        ("read", ["keys"], True, False),
        ("read_write", ["keys"], True, True),
    ],
)
def test_a_limited_key_of_an_administrator_has_its_limits_on_sessions(
    app, browser, new_browser, permission, resources, sees, ends
):
    browser.submit("/invitations/new", "login", login="grace", role="customer")
    other = new_browser("bob", "customer")
    (session,) = [row for row in rows(app, ADMIN_SESSIONS) if row.key_id == other.key.key_id]
    limited = new_browser("eve", "administrator", permission, resources)
    page = limited.get("/sessions")
    assert ("bob" in page.text) == sees
    assert ("grace" in limited.get("/keys").text) == sees
    assert (f"/sessions/{session.id}/end" in page.html) == ends
    assert limited.post(f"/sessions/{session.id}/end").status == (303 if ends else 404)
    assert other.get("/sessions").status == (303 if ends else 200)
    (own,) = [row for row in rows(app, ADMIN_SESSIONS) if row.key_id == limited.key.key_id]
    assert limited.post(f"/sessions/{own.id}/end").status == 303


def test_pages_can_be_switched_off(app_with):
    client = app_with(SHOP_ADMIN=False).test_client()
    response = client.get("/admin/", headers={"Accept": "application/json"})
    assert response.status_code == 404
    assert response.get_json()["errors"][0]["code"] == "shop_api_no_route"


def test_errors_below_admin_are_pages(browser):
    page = browser.get("/nothing")
    assert (page.status, page.response.mimetype) == (404, "text/html")
    assert "shop_api_no_route" in page.text
    assert page.headers["X-Request-Id"] in page.text
    assert browser.post("/coupons").status == 405
    assert browser.get("/coupons/999").status == 404


def test_other_errors_are_pages_with_code_message_and_request(app, browser, monkeypatch):
    def fail(error):
        def view(*_args, **_more):
            raise error

        monkeypatch.setattr("app.plugins.admin.nouns.call", view)
        return browser.get("/coupons")

    large = browser.post("/coupons/new", "x" * (app.config["MAX_CONTENT_LENGTH"] + 1),
                         content_type="application/x-www-form-urlencoded")  # fmt: skip
    late = ShopError("shop_api_too_many_requests", headers={"Retry-After": "17"})
    pages = {
        403: browser.post("/coupons/new", headers={}),
        413: large,
        429: fail(late),
        500: fail(ZeroDivisionError("secret detail")),
        503: fail(ShopError("shop_api_unavailable", reason="x")),
    }
    for status, page in pages.items():
        assert (page.status, page.response.mimetype) == (status, "text/html")
        assert f"status {status}" in page.text
        assert "shop_api_" in page.text
        assert page.headers["X-Request-Id"] in page.text
        assert "secret detail" not in page.text
    assert "Wait 17 seconds" in pages[429].text
    assert "Try again Open the overview" in pages[503].text


def test_static_files_are_immutable(browser):
    path = browser.get("/").html.split('stylesheet" href="/admin')[1].split('"')[0]
    page = browser.get(path)
    assert page.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert browser.get("/static/0000000000000000/admin.css").status == 404


@pytest.mark.both_databases
def test_the_worker_removes_ended_sessions_and_links(app, browser, admin):
    with app.app_context():
        links.create_link(admin.key.key_id)
    set_columns(app, ADMIN_SESSIONS, last_used_at=now() - timedelta(days=15))
    set_columns(app, SIGN_IN_LINKS, expires_at=now())
    with app.app_context():
        sweep()
    assert rows(app, ADMIN_SESSIONS) == rows(app, SIGN_IN_LINKS) == []


def test_an_action_without_a_session_is_not_performed(app, admin, browser):
    coupon = admin.post("/coupons", {"coupon": {"code": "tea"}}).get_json()["coupon"]["id"]
    set_columns(app, ADMIN_SESSIONS, expires_at=now() - timedelta(days=1))
    page = browser.post(f"/coupons/{coupon}/trash", {"_form": "1"})
    assert page.status == 401
    page = browser.post("/sign-in", page.form("held") | credentials(admin.key))
    assert page.location == "/admin/?done=lost"
    assert "The action was not performed." in browser.get("/?done=lost").text
    assert admin.get("/coupons/count").get_json() == {"count": 1}


@pytest.mark.both_databases
def test_open_invitations_of_a_key_are_limited(app, admin, browser, monkeypatch):
    monkeypatch.setattr(links, "MAX_INVITATIONS", 2)
    for login in ("grace", "joan"):
        assert browser.submit("/invitations/new", "login", login=login).status == 200
    page = browser.submit("/invitations/new", "login", login="mary")
    assert page.status == 400
    assert "2 invitations of your key are open. Withdraw one first." in page.text
    assert page.form("login")["login"] == "mary"
    withdrawn = browser.get("/keys").html.split("/withdraw")[0].rpartition("/")[2]
    assert browser.post(f"/invitations/{withdrawn}/withdraw").status == 303
    assert browser.submit("/invitations/new", "login", login="mary").status == 200


def test_a_new_link_for_the_user_of_a_key(app, new_browser):
    """It signs in as its user, once, and only whoever could rotate the key gets one."""
    ada, eva = new_browser("ada"), new_browser("eva", "shop_manager")
    path = f"/keys/{eva.key.key_id}"
    assert "New sign-in link" in ada.get(path).html
    assert "/link" not in ada.get(path).text  # the API has no such operation
    page = ada.post(f"{path}/link", ada.get(path).form("_form"))
    token = re.search(r"/admin/sign-in\?token=([\w-]+)", page.html)[1]
    other = Browser(app)
    assert "eva" in other.get(f"/sign-in?token={token}").text
    assert other.post("/sign-in", {"token": token}).status == 303
    assert other.get("/").status == 200
    assert other.post("/sign-in", {"token": token}).status == 410
    assert eva.post(f"/keys/{ada.key.key_id}/link").status in {401, 404}
    few = new_browser("bob", resources=["keys", "orders"])
    assert few.post(f"{path}/link").status in {400, 401}
    assert "New sign-in link" not in few.get(path).html


@pytest.mark.both_databases
def test_unused_links_are_listed_and_revoked(app, new_browser):
    ada, eva, bob = new_browser("ada"), new_browser("eva", "shop_manager"), new_browser("bob")
    assert "Unused sign-in links" not in ada.get("/keys").text
    page = ada.post(
        f"/keys/{eva.key.key_id}/link", ada.get(f"/keys/{eva.key.key_id}").form("_form")
    )
    token = re.search(r"/admin/sign-in\?token=([\w-]+)", page.html)[1]
    for browser in (ada, eva, bob):
        assert "Unused sign-in links" in browser.get("/keys").text
        assert token not in browser.get("/keys").html
    own = ada.post(f"/keys/{ada.key.key_id}/link", ada.get(f"/keys/{ada.key.key_id}").form("_form"))
    theirs = re.findall(r"/keys/links/[0-9]+/revoke", bob.get("/keys").html)
    listed = re.findall(r"/keys/links/[0-9]+/revoke", eva.get("/keys").html)
    assert len(theirs) == 2
    assert len(listed) == 1, "of others, only an administrator sees the links"
    (of_ada,) = {*theirs} - {*listed}
    assert eva.post(of_ada).status == 410
    assert new_browser("reader", permission="read").post(listed[0]).status == 410
    page = eva.post(listed[0])
    assert page.location == "/admin/keys?done=link_revoked"
    assert "does not work any more" in eva.get("/keys?done=link_revoked").text
    assert "Unused sign-in links" not in eva.get("/keys").text
    assert Browser(app).post("/sign-in", {"token": token}).status == 410
    assert bob.post(of_ada).status == 303
    assert "Unused sign-in links" not in bob.get("/keys").text
    token = re.search(r"/admin/sign-in\?token=([\w-]+)", own.html)[1]
    assert Browser(app).post("/sign-in", {"token": token}).status == 410


def test_each_page_leads_to_the_guides(app, browser):
    for page in (browser.get("/coupons"), browser.get("/nowhere"), Browser(app).get("/sign-in")):
        assert '<a href="/docs/guides/">Guides</a>' in page.html
