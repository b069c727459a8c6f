"""Rights: what a page shows and does is what the API allows, for each role, permission and resource."""

import re

import pytest
from flask import g

from app.auth.api_keys import ApiKeyCredentials
from app.plugins.admin.calls import can, operations
from tests.plugins.admin.browser_client import ORIGIN, Browser
from tests.plugins.admin.filled_shop import fill

pytestmark = pytest.mark.one_database

KEYS = [
    ("administrator", "read", None),
    ("administrator", "read_write", None),
    ("administrator", "read_write", ["orders"]),
    ("administrator", "read_write", ["coupons"]),
    ("administrator", "read_write", ["keys"]),
    ("shop_manager", "read_write", None),
    ("shop_manager", "read", ["coupons", "redemptions"]),
    ("shop_assistant", "read_write", None),
    ("customer", "read_write", None),
    ("subscriber", "read_write", None),
]


def pages(app, ids):
    """Every page and action with the operations that it stands for: method, path and operations."""
    for rule in app.url_map.iter_rules():
        view = app.view_functions[rule.endpoint]
        if hasattr(view, "needs"):
            path = re.sub(r"<(?:\w+:)?(\w+)>", lambda name: str(ids.get(name[1], 999)), rule.rule)
            for method in sorted(rule.methods - {"HEAD", "OPTIONS"}):
                yield method, path.removeprefix("/admin"), view.needs


@pytest.fixture
def shop(admin):
    """A shop with a coupon that has a use, and a batch of coupons."""
    coupon = admin.post("/coupons", {"coupon": {"code": "a"}}).get_json()["coupon"]
    use = {"redemption": {"code": "a", "reference": "cart-1"}}
    redemption = admin.post("/redemptions", use).get_json()["redemption"]
    trashed = admin.post("/coupons", {"coupon": {"code": "b"}}).get_json()["coupon"]
    admin.delete(f"/coupons/{trashed['id']}")
    batch = admin.post("/coupons/generate", {"generate": {"count": 1}}).get_json()["batch"]
    items = [{"name": "Tea", "price": "5", "quantity": 1}]
    order = admin.post("/orders", {"order": {"line_items": items}}).get_json()["order"]
    return {
        "coupon_id": coupon["id"], "redemption_id": redemption["id"], "batch_id": batch["id"],
        "order_id": order["id"], "trashed_id": trashed["id"],
    }  # fmt: skip


def test_each_address_below_admin_is_a_page_or_an_action_of_the_table(app):
    others = {
        rule.rule
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/admin")
        and not hasattr(app.view_functions[rule.endpoint], "needs")
    }
    assert others == {"/admin/static/<digest>/<name>"}


def test_each_page_has_the_headers_and_requires_a_session(app, shop, browser):
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; form-action 'self'; frame-ancestors 'none'; "
        "base-uri 'none'"
    )
    nobody = Browser(app)
    for method, path, _needs in pages(app, shop):
        sent = {"method": method, "headers": ORIGIN}
        if method == "GET" or path not in {"/sign-in", "/sign-out", "/language"}:
            response = nobody.http.open(f"/admin{path}", **sent)
            is_sign_in = path == "/sign-in"
            assert response.status_code == (200 if is_sign_in else 303 if method == "GET" else 401)
            headers = response.headers
            assert headers["Content-Security-Policy"] == policy, path
            assert headers["Referrer-Policy"] == "same-origin", path
            assert headers["Cache-Control"] == "no-store", path
        if method == "GET":
            headers = browser.http.open(f"/admin{path}", **sent).headers
            assert headers["Content-Security-Policy"] == policy, path
            assert headers["Cache-Control"] == "no-store", path


def test_each_action_requires_a_page_of_this_origin(app, shop, browser, admin):
    actions = [path for method, path, _needs in pages(app, shop) if method == "POST"]
    assert len(actions) > 30
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}, {}):
        for path in actions:
            assert browser.post(path, headers=headers).status == 403, path
    assert browser.get("/").status == 200, "nobody has signed out"
    assert admin.get("/coupons/count").json == {"count": 2}


def test_each_operation_of_a_page_exists(app):
    with app.app_context():
        known = operations()
    needs = [each for _, _, needs in pages(app, {}) for each in needs]
    names = {name for each in needs for name in ([each] if isinstance(each, str) else each)}
    unknown = names - known.keys()
    assert unknown == set()


@pytest.mark.sample(1)
@pytest.mark.parametrize(("role", "permission", "resources"), KEYS)
def test_a_page_is_open_to_a_key_if_the_api_allows_its_operations(
    app, shop, new_browser, role, permission, resources
):
    browser = new_browser("bob", role, permission, resources)
    for method, path, needs in pages(app, shop):
        if path in {"/sign-in", "/sign-out"}:
            continue
        allowed = _allows(app, browser, needs)
        response = browser.http.open(f"/admin{path}", method=method, headers=ORIGIN)
        text = response.get_data(as_text=True)
        assert response.status_code != 500, path
        assert (response.status_code == 401) == (not allowed), (method, path, needs, text)


WORDS = {
    "coupon": "Kiwi", "customer": "Mango", "order": "Papaya", "use": "Guava", "batch": "Lychee",
    "webhook": "Quince", "key": "Durian", "refusal": "fig", "upload": "Plum", "delivery": "Sloe",
    "campaign": "Loquat",
}  # fmt: skip
LISTS = (
    "/coupons", "/coupons/batches", "/campaigns", "/customers?role=all&meta=true", "/orders", "/redemptions",
    "/webhooks", "/keys", "/events", "/imports", "/reports/coupons", "/reports/customers", "/reports/refusals",
)  # fmt: skip


@pytest.mark.sample(1)
@pytest.mark.parametrize(("role", "permission", "resources"), KEYS)
def test_a_page_shows_only_what_the_api_shows_the_same_key(
    app, admin, browser, new_browser, role, permission, resources
):
    ids = fill(app, admin, browser, lambda kind: WORDS[kind])
    other = new_browser("bob", role, permission, resources)
    pair = (other.key.consumer_key, other.key.consumer_secret)
    more = (f"/webhooks/{ids['webhook_id']}/deliveries/{ids['delivery_id']}",
            f"/orders/{ids['order_id']}/notes", f"/orders/{ids['order_id']}/refunds")  # fmt: skip
    client = app.test_client()
    replies = [client.get(path, auth=pair) for path in (*LISTS, *more)]
    known = " ".join(reply.text for reply in replies if reply.status_code == 200).lower()
    paths = [path for method, path, _needs in pages(app, ids) if method == "GET"]
    text = " ".join(other.get(path).html for path in paths).lower()
    words = {word.lower() for word in WORDS.values()}
    found = {word for word in words if re.search(rf"\b{word}\b", text)}
    assert found - {word for word in words if word in known} == set()
    if (role, resources) == ("administrator", None):
        assert found == words


def _as(app, browser):
    """A request context with the principal of a browser's key."""
    context = app.test_request_context()
    context.push()
    g.principal = ApiKeyCredentials(
        browser.key.consumer_key, browser.key.consumer_secret
    ).principal()
    return context


def _allows(app, browser, names):
    context = _as(app, browser)
    try:
        return can(*names)
    finally:
        context.pop()


@pytest.mark.sample(3)
@pytest.mark.parametrize("role", ["administrator", "shop_manager", "customer", "subscriber"])
@pytest.mark.parametrize("permission", ["read", "read_write"])
def test_the_table_of_capabilities_is_that_of_the_services(
    app, shop, new_browser, role, permission
):
    """Each operation of the table, sent to the API, is rejected exactly if the table says so."""
    browser = new_browser("bob", role, permission)
    pair = (browser.key.consumer_key, browser.key.consumer_secret)
    coupon, use, batch, order, trashed = shop.values()
    requests = {
        "count_coupons": ("GET", "/coupons/count", None),
        "get_coupon": ("GET", f"/coupons/{coupon}", None),
        "get_coupon_batch": ("GET", f"/coupons/batches/{batch}", None),
        "evaluate_coupons": ("POST", "/coupons/evaluate", {"cart": {}}),
        "create_coupon": ("POST", "/coupons", {"coupon": {"code": "new"}}),
        "create_coupon_batch": ("POST", "/coupons/generate", {"generate": {"count": 1}}),
        "update_coupon": ("PUT", f"/coupons/{coupon}", {"coupon": {"amount": "1"}}),
        "create_redemption": (
            "POST",
            "/redemptions",
            {"redemption": {"code": "a", "reference": "x"}},
        ),
        "confirm_redemption": ("POST", f"/redemptions/{use}/confirm", None),
        "release_redemption": ("POST", f"/redemptions/{use}/release", None),
        "delete_coupon_batch": ("DELETE", f"/coupons/batches/{batch}", None),
        "delete_coupon": ("DELETE", f"/coupons/{coupon}", None),
        "restore_coupon": ("POST", f"/coupons/{trashed}/restore", None),
        "create_api_key": ("POST", "/keys", {"key": {"description": "x", "permission": "read"}}),
        "list_events": ("GET", "/events", None),
        "get_order": ("GET", f"/orders/{order}", None),
    }
    client = app.test_client()
    for name, (method, path, body) in requests.items():
        expected = _allows(app, browser, [name])
        response = client.open(path, method=method, json=body, auth=pair)
        assert (response.status_code != 401) == expected, (name, response.get_json())


def test_links_to_what_a_key_may_not_do_are_left_out(admin, shop, new_browser):
    reader = new_browser("bob", "shop_manager", "read")
    page = reader.get(f"/coupons/{shop['coupon_id']}")
    for label in ("Edit", "Move to the trash", "Duplicate", "Redeem now", "Delete permanently"):
        assert f">{label}<" not in page.html
    limited = new_browser("eve", "shop_manager", "read", ["coupons"])
    page = limited.get(f"/coupons/{shop['coupon_id']}")
    assert "Your key cannot read redemptions." in page.text
    assert "Your key cannot read events." in page.text


@pytest.mark.parametrize(
    ("resource", "body", "label"),
    [("webhooks", {"delivery_url": "https://erp.example/", "topics": ["order.*"]}, "Edit"),
     ("keys", {"permission": "read", "resources": ["orders"]}, "Rotate")],
)  # fmt: skip
def test_what_a_limited_key_may_not_change_of_a_record_is_left_out(
    admin, browser, new_browser, resource, body, label
):
    """The API lets nobody obtain events or secrets beyond the rights of the own key."""
    record = admin.post(f"/{resource}", {resource[:-1]: body}).json[resource[:-1]]["id"]
    for reader, is_shown in [
        (browser, True), (new_browser("bob", resources=[resource, "orders"]), True),
        (new_browser("eve", resources=[resource]), False),
    ]:  # fmt: skip
        page = reader.get(f"/{resource}/{record}")
        assert page.status == 200
        assert (f"/{resource}/{record}/{label.lower()}" in page.html) == is_shown
        assert (f"/{resource}/{record}/rotate" in page.html) == is_shown


def test_somebody_else_sees_only_own_sessions(browser, new_browser):
    other = new_browser("bob", "customer")
    assert "administrator" not in other.get("/sessions").text
    assert "bob" in browser.get("/sessions").text


def test_everyone_may_read_and_rotate_the_own_key(admin, new_browser):
    other = new_browser("bob", "shop_manager")
    path = f"/keys/{other.key.key_id}"
    assert f'href="/admin{path}"' in other.get("/keys").html
    page = other.get(path)
    assert page.status == 200
    assert f'action="/admin{path}/rotate"' in page.html
    assert f'action="/admin{path}/revoke"' not in page.html
    for each in ("", "/rotate"):
        method = other.get if not each else other.post
        assert method(f"/keys/{admin.key.key_id}{each}").status == 401
    assert "cs_" in other.post(f"{path}/rotate", {"_form": "a"}).html
