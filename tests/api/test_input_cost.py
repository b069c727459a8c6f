"""The cost of each input grows with its length, not with the square of it."""

import re
from base64 import b64encode
from functools import partial

import pytest
from werkzeug.test import EnvironBuilder, run_wsgi_app

from tests.api.input_cost import (
    IN_ADDRESS,
    LENGTH,
    NAMES_IN_ADDRESS,
    TEXTS,
    Document,
    at_place,
    encoded,
    grows_too_fast,
    lists,
    texts,
    written,
)
from tests.plugins.admin.browser_client import Browser
from tests.plugins.admin.filled_shop import fill
from tests.plugins.admin.test_rights import pages

pytestmark = pytest.mark.one_database  # the time of Python is measured

HTTPS = "https://shop.example"
MOUNTS = {"native": "", "legacy": "/wc-api/v3", "wc/v3": "/wp-json/wc/v3"}
EACH_MOUNT = [
    "native",
    *(pytest.param(mount, marks=pytest.mark.slow) for mount in ("legacy", "wc/v3")),
]


class Shop:
    """A filled shop, and its requests."""

    def __init__(self, app, admin):
        self.app = app
        self.browser = Browser(app, admin.key)
        self.ids = fill(app, admin, self.browser, lambda kind: f"long {kind}")
        pair = f"{admin.key.consumer_key}:{admin.key.consumer_secret}"
        self.headers = {"Authorization": f"Basic {b64encode(pair.encode()).decode()}"}

    def prepared(self, method, path, headers=None, **sent):
        """A function that sends a request, which is ready to be sent."""
        path, _, query = path.partition("?")
        environ = EnvironBuilder(
            path, HTTPS, method=method, query_string=query, headers=self.headers | (headers or {}),
            **sent,
        ).get_environ()  # fmt: skip

        def send():
            body, status, _ = run_wsgi_app(self.app, environ, buffered=True)
            assert not status.startswith("500"), (method, path[:200], b"".join(body)[:500])

        return send

    def document(self, mount):
        """The document of a mount, and a function that returns the path of an operation."""
        response = self.app.test_client().get(f"{mount}/openapi.json", base_url=HTTPS)
        return Document(response.get_json())

    def address(self, mount, template, **variables):
        """The path of an operation with the IDs of records."""
        below = template.removeprefix(mount)
        kind = below.strip("/").split("/")[0].removesuffix("s")
        own = {"id": self.ids.get(f"{kind}_id", 999), "code": "a", "email": "a@b.example"}
        known = self.ids | own | variables
        return mount + re.sub(r"\{(\w+)\}", lambda name: str(known.get(name[1], 999)), below)


@pytest.fixture
def shop(app, admin):
    return Shop(app, admin)


def told(field):
    """What a field is, without what the document says about it."""
    return str({name: each for name, each in field.items() if name not in PROSE})


PROSE = "title", "description", "example", "examples"


def bodies(shop, mount, seen):
    """The name, the prepared request and the length of each long field of a body.

    A field that several operations or dialects have gets long texts only once.
    """
    document = shop.document(mount)
    for method, path, operation in document.operations():
        described = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if not described:
            continue
        schema = described["schema"]
        sample = described.get("example") or document.sample(schema)

        def prepared(place, make, length, schema=schema, sample=sample, send=(method, path)):
            data = written(document, schema, sample, place, make(length))
            address = shop.address(mount, send[1])
            return shop.prepared(send[0], address, data=data, content_type="application/json")

        for place, field in document.fields(schema):
            same = (*place[-2:], told(field))
            if same in seen:
                continue
            seen.add(same)
            own = at_place(sample, place)
            long = lists(field, document.sample(field) if own is None else own) | texts()
            for kind, (make, length) in long.items():
                name = f"{method} {path} {'.'.join(map(str, place))}: {kind}"
                yield name, partial(prepared, place, make), length


NAMES = {
    "columns": "column_{}=1",
    "filters": "filter[c{}]=1",
    "nested names": "a[b{}][c]=1",
    "equal names": "q=x{}",
    "metadata": "filter[metadata][k{}]=1",
}


def parameters(shop, mount, seen):
    """The name, the prepared request and the length of each long parameter of a path or query.

    A parameter that several operations or dialects have gets long texts only once.
    """
    document = shop.document(mount)
    for method, path, operation in document.operations():
        # No record is deleted.
        own = re.sub(r"\{\w*id\}", "999999", path) if method == "DELETE" else path

        def prepared(where, name, make, length, method=method, path=own):
            text = make(length)
            if where == "path":
                return shop.prepared(method, shop.address(mount, path, **{name: text}))
            address = shop.address(mount, path)
            if where == "header":
                headers = {name: text.encode("ascii", "replace").decode().replace("\r\n", " ")}
                return shop.prepared(method, address, headers)
            return shop.prepared(method, f"{address}?{encoded(name)}={encoded(text)}")

        for each in map(document.resolved, operation["parameters"]):
            where, name = each["in"], each["name"]
            same = where, name, told(each.get("schema", {})), where == "path" and path
            for kind, make in {} if same in seen else TEXTS.items():
                yield (
                    f"{method} {path} {name}: {kind}",
                    partial(prepared, where, name, make),
                    IN_ADDRESS,
                )
            seen.add(same)

        def named(form, length, method=method, path=own):
            query = "&".join(form.format(at) for at in range(length))
            strict = {"Prefer": "handling=strict"}
            return shop.prepared(method, f"{shop.address(mount, path)}?{query}", strict)

        for kind, form in NAMES.items():
            yield f"{method} {path}: {kind}", partial(named, form), NAMES_IN_ADDRESS


HEADERS = (
    "Accept", "Accept-Encoding", "Accept-Language", "Authorization", "Content-Encoding",
    "Content-Type", "Cookie", "Forwarded", "Idempotency-Key", "If-Match", "If-None-Match", "Origin",
    "Prefer", "Range", "Referer", "Sec-Fetch-Site", "Traceparent", "Tracestate", "User-Agent",
    "X-Forwarded-For", "X-Forwarded-Host", "X-HTTP-Method-Override", "X-Request-Id",
    "X-Shop-Position",
)  # fmt: skip
PREFIXES = {
    "Authorization": ("", "Basic ", "OAuth ", 'OAuth oauth_consumer_key="', "Bearer "),
    "Prefer": ("", "handling=", "stale-while="),
    "If-Match": ("", '"', "W/"),
    "If-None-Match": ("", '"', "W/"),
    "Cookie": ("", "shop_session_1=", '"'),
    "Content-Type": ("", "application/", "multipart/form-data; boundary="),
}


def headers(shop, mount):
    """The name, the prepared request and the length of each long header."""
    for name in HEADERS:
        for prefix in PREFIXES.get(name, ("",)):
            for kind, make in TEXTS.items():

                def prepared(length, name=name, prefix=prefix, make=make):
                    text = make(length).encode("ascii", "replace").decode()
                    value = prefix + re.sub(r"[\r\n]", " ", text)
                    return shop.prepared("PUT", f"{mount}/coupons/1", {name: value}, data="{}")

                yield f"{name}: {prefix}{kind}", prepared, IN_ADDRESS


def forms(shop):
    """The name, the prepared request and the length of each long field of a form of the pages.

    A field that several forms, or several lines of a form, have gets long texts only once.
    """
    seen = set()
    for method, path, _needs in pages(shop.app, shop.ids):
        if method != "POST" or path == "/data/upload":
            continue
        page = shop.browser.get(path)
        found = re.findall(r'<(?:input|textarea|select)[^>]* name="([^"]+)"', page.html)
        base = dict.fromkeys(found, "")
        for name in dict.fromkeys([*found, "_shown", "_etag", "_form", "id", "ids", "query"]):
            same = re.sub(r"^coupon\.|-?\d+", "", name)  # the form of a batch has that of a coupon
            if same in seen:
                continue
            seen.add(same)
            for kind, make in TEXTS.items():

                def prepared(length, name=name, make=make, path=path, base=base):
                    data = base | {name: make(length), "_show": "request"}
                    return partial(shop.browser.post, path, data)

                yield f"{path} {name}: {kind}", prepared, LENGTH


def too_expensive(cases):
    return [name for name, prepare, length in cases if grows_too_fast(prepare, length)]


@pytest.mark.slow
def test_a_pattern_that_takes_quadratic_time_is_found():
    quadratic, linear = re.compile(r"-?\d*\.?\d*"), re.compile(r"-?\d*(\.\d*)?")
    digits = TEXTS["digits"]
    assert grows_too_fast(lambda length: partial(quadratic.fullmatch, digits(length)), 8_192)
    assert not grows_too_fast(lambda length: partial(linear.fullmatch, digits(length)), 8_192)


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [bodies, parameters])
def test_cost_of_each_field_and_parameter(shop, inputs):
    seen = set()
    assert [too_expensive(inputs(shop, mount, seen)) for mount in MOUNTS.values()] == [[], [], []]


@pytest.mark.slow
@pytest.mark.parametrize("mount", EACH_MOUNT)
def test_cost_of_each_header(shop, mount):
    assert too_expensive(headers(shop, MOUNTS[mount])) == []


@pytest.mark.slow
def test_cost_of_each_field_of_a_form(shop):
    assert too_expensive(forms(shop)) == []
