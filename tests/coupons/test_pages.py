"""Pages and links of coupon lists (spec 4.1; decisions 6)."""

import re
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.api_client import reply
from tests.coupons.lists import letters, totals


def links(response):
    """The Link header as {relation: (address, sorted parameters)}."""
    header = response.headers.get("Link", "")
    found = {}
    for target, relation in re.findall(r'<([^>]*)>; rel="(\w+)"', header):
        parts = urlsplit(target)
        address = f"{parts.scheme}://{parts.netloc}{parts.path}"
        found[relation] = (address, sorted(parse_qsl(parts.query, keep_blank_values=True)))
    return found


def test_link_header_in_full(pager, shop):
    response = pager.get("/coupons", {"page": "2"})
    targets = [("first", 1), ("prev", 1), ("next", 3), ("last", 3)]
    header = ", ".join(
        f'<http://localhost/coupons?page={page}>; rel="{relation}"' for relation, page in targets
    )
    assert response.headers.getlist("Link") == [header]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("page", "rows", "expected"),
    [
        (None, "CA", {"next": 2, "last": 3}),
        (1, "CA", {"next": 2, "last": 3}),
        (2, "DE", {"first": 1, "prev": 1, "next": 3, "last": 3}),
        (3, "B", {"first": 1, "prev": 2}),
        (4, "", {"first": 1, "prev": 3, "last": 3}),
        (50, "", {"first": 1, "prev": 49, "last": 3}),
    ],
)
def test_page(pager, shop, page, rows, expected):
    response = pager.get("/coupons", {"page": page} if page else None)
    assert letters(response, shop) == rows
    assert totals(response) == ("5", "3")
    assert links(response) == {
        relation: ("http://localhost/coupons", [("page", str(number))])
        for relation, number in expected.items()
    }


@pytest.mark.parametrize("page", [2**31, 2**63, 10**30])
def test_page_far_beyond_the_end(admin, shop, page):
    response = admin.get("/coupons", {"page": page})
    assert reply(response) == (200, {"coupons": []})
    assert totals(response) == ("5", "1")


def test_page_of_the_default_size(admin, make_coupon):
    admin.post("/coupons/bulk", {"coupons": [{"code": f"c{number}"} for number in range(21)]})
    pages = [admin.get("/coupons", {"page": page, "fields": "code"}) for page in (1, 2, 3)]
    found = [coupon["code"] for page in pages for coupon in page.get_json()["coupons"]]
    assert [len(page.get_json()["coupons"]) for page in pages] == [10, 10, 1]
    assert found == [f"c{number}" for number in reversed(range(21))]
    assert [totals(page) for page in pages] == [("21", "3")] * 3


def test_links_keep_the_other_parameters(pager, shop):
    kept = [
        ("filter[q]", "a"),
        ("filter[not_in]", str(shop["E"])),
        ("fields", "id, code"),
        ("unknown", ""),
        ("twice", "1"),
        ("twice", "2"),
    ]
    response = pager.get("/coupons", [("page", "2"), *kept])
    assert totals(response) == ("4", "2")
    expected = ("http://localhost/coupons", sorted([*kept, ("page", "1")]))
    assert links(response) == {"first": expected, "prev": expected}


def test_links_quote_the_other_parameters(pager, make_coupon):
    for number in range(3):
        make_coupon(description=f'a&b=<c>"é", {number}')
    query = {"filter[q]": 'A&b=<c>"é", '}
    response = pager.get("/coupons", query)
    assert totals(response) == ("3", "2")
    assert links(response) == {
        relation: ("http://localhost/coupons", sorted({**query, "page": "2"}.items()))
        for relation in ("next", "last")
    }
    following = links(response)["next"][1]
    assert len(pager.get("/coupons", following).get_json()["coupons"]) == 1


def test_links_are_absolute_to_the_host_that_was_asked(pager, shop):
    response = pager.get("/coupons", {"page": "3"}, base_url="https://shop.example:8443")
    assert links(response)["first"] == ("https://shop.example:8443/coupons", [("page", "1")])


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("offset", "rows"),
    [("0", "CA"), ("1", "AD"), ("3", "EB"), ("4", "B"), ("5", ""), (str(10**30), "")],
)
def test_offset(pager, shop, offset, rows):
    response = pager.get("/coupons", {"filter[offset]": offset})
    assert letters(response, shop) == rows
    assert totals(response) == ("5", "3")


def test_offset_0_leaves_the_page(pager, shop):
    assert letters(pager.get("/coupons", {"filter[offset]": "0", "page": "2"}), shop) == "DE"


@pytest.mark.both_databases
def test_offset_is_skipped_instead_of_pages(pager, shop):
    assert letters(pager.get("/coupons", {"filter[offset]": "1", "page": "2"}), shop) == "AD"
