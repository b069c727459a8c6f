"""Texts that people supply: they stay text on each page, and are no formulas in any CSV file."""

import csv
import re
from html.parser import HTMLParser
from io import StringIO
from urllib.parse import quote_from_bytes, urlencode

import pytest

from tests.plugins.admin.browser_client import ORIGIN, Browser
from tests.plugins.admin.filled_shop import fill, replace_everywhere
from tests.plugins.admin.test_rights import pages

WORD = "zanzibar"
ASKED = {
    "app_name": "\"'><script>alert(1)</script>", "user_id": "<img src=x onerror=alert(1)>",
    "scope": "read", "return_url": "https://app.example/?\"'><script>",
    "callback_url": "https://app.example/",
}  # fmt: skip
"""What a service asks for in its address."""
HOSTILE = "\"'></textarea></title><script>alert(1)</script>{{7*7}}<img src=x onerror=alert(1)>"


class _Markup(HTMLParser):
    """The elements, the attributes that run scripts, and the links of a page."""

    def __init__(self):
        super().__init__()
        self.scripts, self.links = [], set()

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag == "img" or (
            tag == "script" and not found.get("src", "").startswith("/admin/static/")
        ):
            self.scripts.append((tag, attributes))
        self.scripts += [(tag, name) for name in found if name.startswith("on") or name == "style"]
        self.links |= {found[name] for name in ("href", "action", "src") if found.get(name)}


@pytest.fixture
def hostile(app, admin):
    """A browser of that name, and the addresses of all pages of a shop of such texts."""
    browser = Browser(app, admin.key, user_agent=WORD)
    ids = fill(app, admin, browser, lambda kind: f"{WORD} {kind}")
    replace_everywhere(app, WORD, HOSTILE)
    paths = {path for method, path, _needs in pages(app, ids) if method == "GET"}
    person = f"customer_id={ids['customer_id']}"  # the file of a person needs one
    return browser, [
        *paths - {"/privacy/person-data", "/authorize"}, f"/privacy/person-data?{person}",
        f"/privacy?{person}", f"/authorize?{urlencode(ASKED)}",
    ]  # fmt: skip


@pytest.mark.one_database
def test_stored_texts_are_no_markup(hostile):
    browser, paths = hostile
    seen = set()
    for path in (*paths, "/coupons?state=trash", "/search?q=zanzibar", "/?done=saved"):
        page = browser.get(path)
        assert page.status in {200, 303}, (path, page.text)
        if page.response.mimetype == "text/html" and page.status == 200:
            markup = _Markup()
            markup.feed(page.html)
            assert markup.scripts == [], path
            wrong = [
                each
                for each in markup.links
                if not re.match("/|#|https://(erp|app).example/", each)
            ]
            assert wrong == [], path
            seen |= set(
                re.findall(r"\{\{7\*7\}\}&lt;img src=x onerror=alert\(1\)&gt; (\w+)", page.html)
            )
    assert seen == {"coupon", "customer", "order", "use", "batch", "webhook", "key", "refusal",
                    "upload", "delivery", "campaign"}  # fmt: skip


@pytest.mark.parametrize("kind", ["coupons", "orders"])
def test_each_row_of_the_trash_has_a_form_of_its_own(admin, browser, kind):
    noun, record = kind.removesuffix("s"), {"code": "a"} if kind == "coupons" else {}
    number = admin.post(f"/{kind}", {noun: record}).json[noun]["id"]
    admin.delete(f"/{kind}/{number}")
    page = browser.get(f"/{kind}?state=trash")
    assert re.findall('name="id" value="([0-9]+)" form="(.+?)"', page.html) == [
        (str(number), "selection")
    ]
    restore = f"/admin/{kind}/{number}/restore"
    (values,) = (dict(values) for action, _method, values in page.forms() if action == restore)
    assert browser.post(restore.removeprefix("/admin"), values).location.endswith("done=restored")


@pytest.mark.sample(2)
@pytest.mark.parametrize("sign", "=+-@\t\r'")
def test_no_csv_file_has_formulas(app, admin, sign):
    browser = Browser(app, admin.key)
    ids = fill(app, admin, browser, lambda kind: f"{sign}1+cmd {kind}")
    coupon, batch = ids["coupon_id"], ids["batch_id"]
    files = [
        *(f"/admin/data/{kind}.csv" for kind in ("coupons", "customers", "orders")),
        f"/admin/coupons/{coupon}/redemptions.csv", f"/admin/batches/{batch}/codes.csv",
        *(f"/reports/{name}?format=csv" for name in ("coupons", "customers", "refusals")),
    ]  # fmt: skip
    chosen = {"action": "csv", "id": coupon}
    texts = [browser.post("/coupons/selected", chosen).html]
    for path in files:
        on_page = path.startswith("/admin/")
        response = browser.http.get(path) if on_page else admin.get(path)
        assert response.mimetype == "text/csv", path
        texts.append(response.text)
    for text in texts:
        cells = [cell for row in csv.reader(StringIO(text, newline="")) for cell in row]
        assert [cell for cell in cells if cell[:1] in set("=+-@\t\r")] == []
    # Most texts are stored without tabs and line breaks at their beginning.
    assert sum(f"'{sign}1+cmd" in text for text in texts) >= (3 if sign.isspace() else 7)


@pytest.mark.parametrize("size", [20, pytest.param(5000, marks=pytest.mark.slow)])
def test_no_number_in_an_address_is_too_large(app, admin, browser, size):
    ids = dict.fromkeys(
        ("coupon_id", "customer_id", "order_id", "refund_id", "redemption_id", "batch_id",
         "webhook_id", "key_id", "delivery_id", "event_id", "import_id", "campaign_id", "session_id", "link_id"),
        "9" * size,
    )  # fmt: skip
    for method, path, _needs in pages(app, ids | {"kind": "orders"}):
        if "9" * size in path:
            page = browser.get(path) if method == "GET" else browser.post(path)
            assert page.status < 500, (method, path[:80], page.text)


@pytest.mark.parametrize(
    "shown", ["[" * 3000, '{"code": ' * 3000, '{"code": [[[]]]}', "null", "\0"]
)
def test_what_a_form_showed_can_be_any_text(admin, browser, shown):
    number = admin.post("/coupons", {"coupon": {"code": "a"}}).json["coupon"]["id"]
    for path in (f"/coupons/{number}/edit", "/coupons/new"):
        page = browser.post(path, {"_shown": shown, "code": "b", "amount": "5"})
        assert page.status in {303, 400}, page.text


def test_query_of_other_bytes(admin, browser):
    admin.post("/coupons", {"coupon": {"code": "a"}})
    assert browser.get("/coupons", environ_overrides={"QUERY_STRING": "x=\xff"}).status == 200


VALUES = {
    "number": b"-" + b"9" * 20,
    "null": b"a\0b",
    "surrogate": b"\xed\xa0\x80",
    "long": b"x" * 10_000,
    "nested": b"[" * 1000,
    "date": b"2026-02-30T99:99:99Z",
}
PARAMETERS = {
    "q", "page", "sort", "order", "state", "status", "undo", "at", "done", "query", "action", "id", "ids",
    "everything", "after", "failures", "failed_id", "changed", "_form", "_shown", "_etag", "_show", "next", "held",
    "period", "from", "to", "customer_id", "batch", "ping", "ms", "delivered", "copy", "kind", "token",
}  # fmt: skip


def _send_fields(send, names):
    """Send fields together, and again without those that an error names, until it names none of them.

    Each is sent alone if the answer is no form with errors: something else can have ended the request.
    """
    while names:
        response = send(names)
        wrong = set(re.findall(r'href="#field-([^"]+)"', response.text))
        left = [name for name in names if name.replace(".", "-") not in wrong]
        if left == names:
            if response.status_code != 303 and not wrong and len(names) > 1:
                for name in names:
                    send([name])
            return
        names = left


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database_url", "value"),
    [
        # Both drivers reject surrogates, and only PostgreSQL rejects null characters.
        pytest.param(url, VALUES[name], id=f"{url}-{name}")
        for url, names in {
            "sqlite": ("number", "long", "nested", "date"),
            "postgresql": ("number", "null", "surrogate"),
        }.items()
        for name in names
    ],
    indirect=["database_url"],
)
def test_hostile_values_in_every_parameter_field_and_path_are_no_error_500(
    app, admin, browser, value
):
    ids = fill(app, admin, browser, lambda kind: f"word {kind}")
    routes = [(method, path) for method, path, _needs in pages(app, ids) if path != "/sign-out"]
    names = {}
    for method, path in routes:
        for action, way, values in browser.get(path).forms() if method == "GET" else ():
            target = way.upper(), (action or f"/admin{path}").partition("?")[0]
            names.setdefault(target, set()).update(name for name, _ in values)
    encoded, form = quote_from_bytes(value), "application/x-www-form-urlencoded"
    for method, path in sorted(routes, key=lambda each: each[1].endswith(("delete", "revoke"))):

        def send(names, method=method, path=path):
            text = "&".join(f"{name}={encoded}" for name in names)
            # A server accepts no longer line of a request.
            sent = {"query_string": text[:8000]} if method == "GET" else {"data": text}
            with browser.http.open(
                f"/admin{path}", method=method, headers=ORIGIN, content_type=form, **sent
            ) as response:
                assert response.status_code < 500, (method, path, text[:200])
                response.get_data()
                return response

        known = names.get((method, f"/admin{path}"), set())
        send(sorted(known | PARAMETERS))
        send(sorted(known | PARAMETERS) * 2)
        _send_fields(send, sorted(known - PARAMETERS))
        address = re.sub("/[0-9]+", f"/{quote_from_bytes(value, safe='')}", f"/admin{path}")
        with browser.http.open(address, method=method, headers=ORIGIN) as response:
            assert response.status_code < 500, (method, address[:200])
    assert browser.get("/coupons").status == 200  # still signed in
