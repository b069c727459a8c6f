"""Lists: what is the same for coupons, customers and orders (spec 4.1, 4.2; decisions 4, 5, 6, 13)."""

import re
from datetime import UTC, datetime
from itertools import product
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.api_client import codes, refusal, refused_params, reply
from tests.nouns import CUSTOMER, noun

__all__ = ["noun"]  # a fixture

BY_ID = {"filter[orderby]": "id", "filter[order]": "asc"}
SIZE = 2


@pytest.fixture
def ids(admin, noun):
    """The IDs of five records."""
    return [each["id"] for each in noun.send(admin, *map(noun.new, range(5)))]


@pytest.fixture
def pager(client_with):
    """The administrator, as a client of an app with two records on a page."""
    return client_with(SHOP_PAGE_SIZE=SIZE)


def shown(response, noun, ids):
    """The positions of the listed records among ``ids``."""
    return [ids.index(each["id"]) for each in noun.listed(response)]


def totals(response):
    return response.headers["X-Total"], response.headers["X-TotalPages"]


def links(response):
    """The Link header as {relation: (address, sorted parameters)}."""
    found = {}
    for target, relation in re.findall(r'<([^>]*)>; rel="(\w+)"', response.headers.get("Link", "")):
        parts = urlsplit(target)
        address = f"{parts.scheme}://{parts.netloc}{parts.path}"
        found[relation] = (address, sorted(parse_qsl(parts.query, keep_blank_values=True)))
    return found


# --- what is listed ---


def test_a_list_of_nothing(admin, noun):
    response = admin.get(noun.path)
    assert reply(response) == (200, {noun.key: []})
    assert totals(response) == ("0", "0")
    assert "Link" not in response.headers


def test_records_are_listed_as_they_are_read(admin, noun, ids):
    response = admin.get(noun.path, BY_ID)
    assert reply(response) == (200, {noun.key: [noun.read(admin, each) for each in ids]})
    assert totals(response) == ("5", "1")
    assert "Link" not in response.headers


@pytest.mark.parametrize("role", ["customer", "subscriber"])
def test_a_caller_who_may_not_read(client_for, noun, ids, role):
    client = client_for(role)
    for query in ({}, {"filter[q]": "c"}, {"page": 2}, {"filter[limit]": 5}, {"fields": "id"}):
        response = client.get(noun.path, query)
        assert reply(response) == (200, {noun.key: []})
        assert totals(response) == ("0", "0")
        assert ("Link" in response.headers) == ("page" in query)
    unlimited = client.get(noun.path, {"filter[limit]": -1})
    assert (reply(unlimited), unlimited.headers["X-Total"]) == ((200, {noun.key: []}), "0")
    refused = refusal(f"shop_api_user_cannot_read_{noun.key}_count")
    assert reply(client.get(f"{noun.path}/count")) == refused


def test_a_query_is_rejected_before_a_missing_capability(client_for, noun):
    for role in ("customer", "subscriber"):
        for path in (noun.path, f"{noun.path}/count"):
            response = client_for(role, login=f"{role}{len(path)}").get(
                path, {"filter[created_at_min]": "x"}
            )
            assert codes(response) == (400, "shop_api_invalid_param")


# --- pages ---

PAGES = [
    (None, [0, 1], {"next": 2, "last": 3}),
    ("", [0, 1], {"next": 2, "last": 3}),
    (1, [0, 1], {"next": 2, "last": 3}),
    (2, [2, 3], {"first": 1, "prev": 1, "next": 3, "last": 3}),
    (3, [4], {"first": 1, "prev": 2}),
    (4, [], {"first": 1, "prev": 3, "last": 3}),
    (50, [], {"first": 1, "prev": 49, "last": 3}),
]
OFFSETS = [("0", [0, 1]), ("1", [1, 2]), ("3", [3, 4]), ("4", [4]), ("5", []), (str(10**30), [])]


@pytest.mark.both_databases
def test_pages(pager, noun, ids):
    for page, expected, relations in PAGES:
        response = pager.get(noun.path, BY_ID if page is None else BY_ID | {"page": page})
        assert shown(response, noun, ids) == expected, page
        assert totals(response) == ("5", "3"), page
        assert links(response) == {
            relation: (
                f"http://localhost{noun.path}",
                sorted({**BY_ID, "page": str(number)}.items()),
            )
            for relation, number in relations.items()
        }, page


@pytest.mark.both_databases
def test_an_offset_is_skipped_instead_of_pages(pager, noun, ids):
    for page in (1, 2):
        for offset, expected in OFFSETS:
            query = {**BY_ID, "filter[offset]": offset, "page": page}
            response = pager.get(noun.path, query)
            # An offset of 0 leaves the page.
            assert shown(response, noun, ids) == (
                [2, 3] if (offset, page) == ("0", 2) else expected
            )
            assert totals(response) == ("5", "3")


def test_a_page_far_beyond_the_end(admin, noun, ids):
    for page in (2**31, 2**63, 10**30):
        response = admin.get(noun.path, {"page": page})
        assert reply(response) == (200, {noun.key: []})
        assert totals(response) == ("5", "1")


def test_pages_of_the_default_size(admin, noun):
    made = [each["id"] for each in noun.send(admin, *map(noun.new, range(21)))]
    pages = [admin.get(noun.path, BY_ID | {"page": page}) for page in (1, 2, 3)]
    assert [each for page in pages for each in shown(page, noun, made)] == [*range(21)]
    assert [len(noun.listed(page)) for page in pages] == [10, 10, 1]
    assert [totals(page) for page in pages] == [("21", "3")] * 3
    counted = admin.get(f"{noun.path}/count", {"page": 3, "filter[offset]": 4, "filter[limit]": 1})
    assert reply(counted) == (200, {"count": 21})


# --- links ---


def test_the_link_header_in_full(pager, noun, ids):
    targets = [("first", 1), ("prev", 1), ("next", 3), ("last", 3)]
    header = ", ".join(
        f'<http://localhost{noun.path}?page={page}>; rel="{relation}"' for relation, page in targets
    )
    assert pager.get(noun.path, {"page": "2"}).headers.getlist("Link") == [header]


def test_links_keep_the_other_parameters(pager, noun, ids):
    kept = [
        ("filter[q]", ""),
        ("filter[created_at_min]", "2001-01-01T00:00:00+02:00"),
        ("fields", "id, code"),
        ("unknown", ""),
        ("twice", "1"),
        ("twice", "ö&+*@"),
    ]
    response = pager.get(noun.path, [("page", "2"), *kept])
    assert totals(response) == ("5", "3")
    assert links(response) == {
        relation: (f"http://localhost{noun.path}", sorted([*kept, ("page", page)]))
        for relation, page in (("first", "1"), ("prev", "1"), ("next", "3"), ("last", "3"))
    }


def test_links_are_absolute_to_the_host_that_was_asked(pager, noun, ids):
    response = pager.get(noun.path, {"page": "3"}, base_url="https://shop.example:8443")
    address = f"https://shop.example:8443{noun.path}"
    assert links(response)["first"] == (address, [("page", "1")])


# --- times ---

DAYS = [1, 2, 2, 3]  # of January 2026, at noon
NOON, SECOND, BEFORE = (f"2026-01-02T{time}" for time in ("12:00:00", "12:00:01", "11:59:59"))
# An end of a period, the records within it, and how it can be written.
TIMES = [
    ("min", [0, 1, 2, 3], ["", "0001-01-01", "0", "86400", "2026-01-01"]),
    ("min", [1, 2, 3], ["2026-01-02", NOON, f"{NOON}Z", f"{BEFORE}.999Z", "1767355200"]),
    ("min", [1, 2, 3], ["2026-01-02T14:00:00+02:00", "2026-01-02T06:30:00-05:30"]),
    ("min", [3], ["2026-01-03", f"{SECOND}Z", f"{NOON}.5Z", "1767355201"]),
    ("min", [3], ["2026-01-02T14:00:01+02:00", "2026-01-02T07:00:01-05:00"]),
    ("min", [], ["2030-01-01"]),
    ("max", [], ["2026-01-01", "0", "86400"]),
    ("max", [0], ["2026-01-02", f"{BEFORE}Z", "2026-01-02T13:59:59+02:00"]),
    ("max", [0, 1, 2], [f"{NOON}Z", f"{NOON}.5Z", "2026-01-02T14:00:00+02:00", "1767355200"]),
    ("max", [0, 1, 2, 3], ["", "9999-12-31T23:59:59Z"]),
]
NAMES = ("created_at", "updated_at")


@pytest.mark.both_databases
def test_both_ends_of_a_period_are_inclusive(app, admin, noun):
    ids = [each["id"] for each in noun.send(admin, *map(noun.new, range(len(DAYS))))]
    for record_id, day in zip(ids, DAYS, strict=True):
        at = datetime(2026, 1, day, 12, tzinfo=UTC)
        noun.store(app, record_id, created_at=at, updated_at=at)
    queries = [
        ({f"{name}_{end}": value}, found)
        for end, found, values in TIMES
        for value, name in product(values, NAMES)
    ]
    for name in NAMES:
        of_a_day = {f"{name}_min": "2026-01-02T00:00:00Z", f"{name}_max": "2026-01-02T23:59:59Z"}
        swapped = {f"{name}_min": "2026-01-03", f"{name}_max": "2026-01-02"}
        queries += [(of_a_day, [1, 2]), (swapped, [])]
    for names, found in queries:
        query = {f"filter[{name}]": value for name, value in names.items()}
        response = admin.get(noun.path, BY_ID | query)
        assert shown(response, noun, ids) == found, names
        assert totals(response) == (str(len(found)), "1" if found else "0"), names
        counted = reply(admin.get(f"{noun.path}/count", query))
        assert counted == (200, {"count": len(found)}), names


# --- invalid parameters ---

NO_TIMES = (
    *("abc", "null", "2026-13-01", "2026-02-30", "2026-01-02 or so", "2026-01-02\0"),
    *("2026-01-01T25:00:00Z", "2026-01-01Tx", "2026-01-02T12:00:00+99:00", "9" * 20, "9" * 5000),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-05:00", "9999-12-31T23:59:59-14:00"),
)
INVALID = {
    **{f"filter[{name}_{end}]": NO_TIMES for name in NAMES for end in ("min", "max")},
    "filter[q]": ("a\0b",),
}
# A count ignores these.
INVALID_PAGES = {
    "page": ("0", "-1", "abc", "1.5", "1e1", "1e3", "9" * 5000, "٣"),
    "filter[offset]": ("-1", "abc", "1.5"),
    "filter[order]": ("up", "asc,desc"),
    "filter[orderby]": ("unknown", "customer", "description", "date; DROP TABLE coupons"),
    "fields": ("a\0b",),
}
INVALID_LIMITS = ("-2", "x", "1.5", "\0")


def test_an_invalid_parameter_is_named(admin, noun):
    limits = {"filter[limit]": INVALID_LIMITS} if noun.name != "coupon" else {}
    for name, values in (INVALID | INVALID_PAGES | limits).items():
        for value in values:
            assert refused_params(admin.get(noun.path, {name: value})) == [name], value
            if name in INVALID:
                count = admin.get(f"{noun.path}/count", {name: value})
                assert refused_params(count) == [name], value


def test_invalid_parameters_are_reported_together(admin, noun):
    query = dict.fromkeys(("page", "filter[orderby]", "filter[offset]"), "x")
    query["filter[created_at_min]"] = "x"
    assert sorted(refused_params(admin.get(noun.path, query))) == sorted(query)


def test_an_empty_parameter_is_the_default(admin, noun, ids):
    expected = shown(admin.get(noun.path), noun, ids)
    for key in ("filter[order]", "filter[orderby]", "filter[offset]", "filter[limit]", "page"):
        assert shown(admin.get(noun.path, {key: ""}), noun, ids) == expected, key
    assert expected == ([*range(5)] if noun is CUSTOMER else [*reversed(range(5))])
