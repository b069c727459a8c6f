"""Malicious requests: every response has the specified format and is not a 5xx (decisions 1).

``make test`` sends few requests and ``make test-all`` many, on both databases. ``HOSTILE_CASES`` sets
their number, and ``HOSTILE_SEED`` generates other requests:
``HOSTILE_CASES=1000000 make test-all ARGS=tests/api/test_hostile.py``.
"""

import json
import os
import resource

import pytest
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st

from app.errors.codes import ERRORS

FEW = 60
MANY = int(os.environ.get("HOSTILE_CASES", "1000"))
SEED = int(os.environ.get("HOSTILE_SEED", "1"))
MEMORY = 300 * 1024  # KiB that the process may grow by; its largest body has 10 MiB

DEEP = 100_000
BAIT = [
    "", " ", "0", "-1", "1e400", "1e-400", "9" * 20, "9" * 10_000, "-" + "9" * 5000, "0." + "9" * 5000,
    "NaN", "Infinity", "true", "null", "\0", "a\0b", "\ufffd", "\ufffe", "\uffff", "\u202e", "İ", "ß",
    "\u0301\u0323" * 2000, "e" + "\u0f73" * 500, "<" * 5000, "<a" * 2000, "&#" + "9" * 5000 + ";", "&amp" * 500,
    "a" * 100 + "@", "a@" + "b." * 2000, ("a" * 63 + ".") * 60, "*" * 11, "*a" * 10, "%" * 900, "_" * 900,
    "' OR 1=1 --", "$(id)", "../../etc/passwd", "{{7*7}}", "%s%n", "2030-02-30", "0000-00-00", "9999-12-31T23:59:59-23:59",
    "0001-01-01T00:00:00+23:59", "+99999 years", "-99999 days", "@9999999999999", "12/31/0000", "Feb 29 2023", "1" * 64,
    "1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0", "-" * 64, "T" * 64, "2030-W01-1", "20300101T", "10:10 10:10 10:10 +9999",
    "x" * 8000, "id," * 2000, "a.b.c," * 900, "1," * 999 + "1", "1," * 2000, "asc", "DESC", "customer", "all", "percent",
]  # fmt: skip
text = st.sampled_from(BAIT) | st.text(max_size=20)
numbers = st.sampled_from(
    [0, -1, 2**31, 2**63 - 1, 2**63, 2**64, 10**400, -(10**4000), 0.1, -0.0, 1e308, 5e-324]
)
scalars = text | numbers | st.none() | st.booleans() | st.integers(-5, 5)
values = scalars | st.lists(scalars, max_size=4) | st.dictionaries(text, scalars, max_size=3)

FIELDS = [
    "id", "code", "type", "amount", "individual_use", "product_ids", "usage_limit", "usage_count", "expiry_date",
    "enable_free_shipping", "product_category_ids", "minimum_amount", "customer_emails", "description", "created_at",
    "email", "first_name", "last_name", "username", "password", "billing_address", "shipping_address", "role", "__class__",
]  # fmt: skip
ADDRESS = st.dictionaries(
    st.sampled_from(["city", "email", "country", "phone", "x"]), values, max_size=3
)
record = st.dictionaries(st.sampled_from(FIELDS), values | ADDRESS, max_size=5)
# Something that could be stored, with something hostile in it.
nearly = st.builds(
    lambda name, over: {"code": name, "email": f"{name}@example.com"} | over,
    st.text("abcdefgh", min_size=1, max_size=6),
    record,
)
item = nearly | record | values
one = st.builds(lambda key, value: {key: value}, st.sampled_from(["coupon", "customer"]), item)
bulk = st.builds(
    lambda key, value: {key: value},
    st.sampled_from(["coupons", "customers"]),
    st.lists(item, max_size=4) | values,
)


def encoded(value, how):
    """JSON in one of the ways in which it may come, not all of them allowed."""
    written = json.dumps(value, ensure_ascii=how == "ascii")
    return written.encode("utf-16" if how == "utf-16" else "utf-8", "surrogatepass")


RAW = [
    b"", b"{", b"[]", b"null", b"\xff\xfe", b"\xef\xbb\xbf{}", b'{"coupon": {"code": "\\ud800"}}', b'{"coupon": NaN}',
    b'{"coupon": {"code": "a\\u0000b"}}', b"[" * DEEP, b'{"coupon":' * DEEP, b"[" * DEEP + b"]" * DEEP,
    b'{"coupon": {"amount": ' + b"9" * 10_000 + b"}}", b'{"coupon": {"usage_limit": -' + b"9" * 4000 + b"}}",
    b'{"coupon": {"amount": 1e' + b"9" * 10_000 + b"}}", b'{"coupon": {"amount": 0.' + b"0" * 100_000 + b"1}}",
    b'{"coupons": [' + b"{}," * 100_000 + b"{}]}", b'{"coupons": ' + b"[" * 900 + b"]" * 900 + b"}",
    b'{"coupon": {"a": 1, ' + b'"a": 1, ' * 50_000 + b'"a": 1}}', b"\0" * 1000, b"\x1f\x8b\x08" + b"\0" * 1000,
    b'{"coupon": {"code": "' + b"a" * 10 * 1024 * 1024 + b'"}}', b" " * 10 * 1024 * 1024,
]  # fmt: skip
body = (
    st.builds(encoded, one | bulk | values, st.sampled_from(["utf-8", "ascii", "utf-8", "utf-16"]))
    | st.binary(max_size=50)
    | st.sampled_from(RAW)
)

QUERY = [
    "fields", "page", "force", "filter[q]", "filter[type]", "filter[in]", "filter[not_in]", "filter[limit]", "filter[offset]",
    "filter[order]", "filter[orderby]", "filter[orderby_meta_key]", "filter[role]", "filter[status]", "filter[customer_id]",
    "filter[created_at_min]", "filter[created_at_max]", "filter[updated_at_min]", "filter[updated_at_max]", "filter", "filter[",
]  # fmt: skip
raw_text = text.map(lambda value: value.encode("utf-8", "surrogatepass")) | st.binary(max_size=12)


def quoted(raw, bare=b""):
    """Percent-encode bytes, except those that a URL can contain."""
    return "".join(chr(byte) if byte in bare else f"%{byte:02x}" for byte in raw[:8000])


pairs = st.tuples(st.sampled_from(QUERY) | text, raw_text).map(
    lambda pair: f"{quoted(pair[0].encode('utf-8', 'surrogatepass'))}={quoted(pair[1])}"
)
query = st.lists(pairs, max_size=4).map("&".join) | st.binary(max_size=30).map(
    lambda raw: raw.decode("latin-1")
)
PATHS = [
    "/", "/coupons", "/coupons/count", "/coupons/bulk", "/coupons/{}", "/coupons/code/{}", "/customers", "/customers/count",
    "/customers/bulk", "/customers/{}", "/customers/email/{}", "/customers/{}/orders", "/customers/{}/downloads", "/orders",
    "/orders/{}", "/orders/count", "/orders/statuses", "/healthz", "/readyz", "/docs/{}", "/openapi.json", "/{}", "{}",
]  # fmt: skip
path = st.builds(
    lambda pattern, raw: pattern.encode().replace(b"{}", raw).decode("latin-1"),
    st.sampled_from(PATHS),
    st.integers(0, 30).map(lambda number: str(number).encode()) | raw_text,
)
HEADERS = [
    "CONTENT_TYPE", "HTTP_CONTENT_ENCODING", "HTTP_AUTHORIZATION", "HTTP_HOST", "HTTP_X_REQUEST_ID", "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_HOST", "HTTP_X_FORWARDED_PROTO", "HTTP_ACCEPT", "HTTP_ACCEPT_ENCODING", "HTTP_COOKIE", "HTTP_RANGE",
    "HTTP_IF_NONE_MATCH", "HTTP_IF_MATCH", "HTTP_IF_MODIFIED_SINCE", "HTTP_EXPECT", "HTTP_TRANSFER_ENCODING", "HTTP_CONNECTION",
    "HTTP_IDEMPOTENCY_KEY", "HTTP_X_HTTP_METHOD_OVERRIDE", "HTTP_ORIGIN", "HTTP_REFERER", "HTTP_USER_AGENT", "CONTENT_LENGTH",
]  # fmt: skip
HEADER_VALUES = [
    "gzip", "deflate", "gzip, gzip", "identity", "application/json; charset=utf-7", "multipart/form-data", "Basic", "Basic !",
    "Basic " + "A" * 5000, "Basic gICA", "Bearer x", "Digest a=b", "bytes=0-1", "*", '"x"', "W/", "a" * 8000, "[::1", "a b:c:d",
    "localhost:99999", "-1", "+5", "1, 2", "\xe9", "\xff\xfe", "a=b; " * 500, "Thu, 99 Foo 9999", "DELETE", "\xe2\x85\xa4",
]  # fmt: skip
latin = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=30)
headers = st.dictionaries(
    st.sampled_from(HEADERS), st.sampled_from(HEADER_VALUES) | latin, max_size=2
)
METHODS = [
    "GET",
    "GET",
    "POST",
    "POST",
    "PUT",
    "DELETE",
    "HEAD",
    "OPTIONS",
    "PATCH",
    "TRACE",
    "get",
    "X" * 50,
]
requests = st.tuples(st.sampled_from(METHODS), path, query, headers, st.just(b"") | body)


@pytest.fixture
def send(app, admin):
    """Return a function: send a request to the app, by default as the administrator."""
    http = app.test_client()
    auth = (admin.key.consumer_key, admin.key.consumer_secret)

    def request(method, path, query, headers, body):
        # As a server hands it over: bytes as latin-1.
        environ = {"PATH_INFO": path, "QUERY_STRING": query} | headers
        credentials = {} if "HTTP_AUTHORIZATION" in headers else {"auth": auth}
        return http.open(method=method, data=body, environ_overrides=environ, **credentials)

    return request


def check(method, response):
    assert response.status_code < 500
    assert response.headers["X-Request-Id"]
    if response.status_code >= 400 and method != "HEAD":
        assert response.content_type == "application/json"
        answer = json.loads(response.data)
        assert list(answer) == ["errors"]
        assert {entry["code"] for entry in answer["errors"]} <= ERRORS.keys()


@pytest.mark.parametrize(
    ("database_url", "cases"),
    [
        ("sqlite", FEW),
        pytest.param("sqlite", MANY, marks=pytest.mark.slow),
        pytest.param("postgresql", MANY, marks=pytest.mark.slow),
    ],
    indirect=["database_url"],
    scope="session",
)
def test_any_request_gets_an_answer_of_ours(send, cases):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    @seed(SEED)
    @settings(
        max_examples=cases, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(requests)
    @example(("GET", "/", "", {"HTTP_HOST": "a b:c"}, b""))
    @example(("POST", "/coupons", "\x80", {"HTTP_SEC_FETCH_SITE": "cross-site"}, b""))
    @example(("GET", "/openapi.json", "", {"HTTP_IF_MATCH": '"x"'}, b""))
    def run(request):
        response = send(*request)
        check(request[0], response)
        response.close()

    run()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MEMORY
