"""A page of a list and the headers that tell where it stands (spec 4.2; decisions 6 and 13)."""

from urllib.parse import parse_qs, urlsplit

import pytest

from app.services.pagination import Page

AT = "https://shop.example/coupons"


def link(**pages):
    """The Link header with these relations, in order."""
    return ", ".join(f'<{AT}?page={page}>; rel="{relation}"' for relation, page in pages.items())


# total, page number, page size: pages, Link
PAGES = [
    # nothing matches: 0 pages, no link
    (0, 1, 10, 0, None),
    # everything on one page
    (1, 1, 10, 1, None),
    (10, 1, 10, 1, None),
    # a page that is not full is a page
    (11, 1, 10, 2, link(next=2, last=2)),
    (20, 1, 10, 2, link(next=2, last=2)),
    (21, 1, 10, 3, link(next=2, last=3)),
    (3, 1, 1, 3, link(next=2, last=3)),
    # in the middle, at the end, beyond the end
    (21, 2, 10, 3, link(first=1, prev=1, next=3, last=3)),
    (41, 3, 10, 5, link(first=1, prev=2, next=4, last=5)),
    (21, 3, 10, 3, link(first=1, prev=2)),
    (21, 4, 10, 3, link(first=1, prev=3, last=3)),
    (21, 9, 10, 3, link(first=1, prev=8, last=3)),
    (0, 2, 10, 0, link(first=1, prev=1)),
    # without a limit there is one page in total, also of nothing
    (0, 1, None, 1, None),
    (1000, 1, None, 1, None),
    (1000, 2, None, 1, link(first=1, prev=1, last=1)),
    # large numbers are exact: no float in between
    (2**63 - 1, 1, 10, 922337203685477581, link(next=2, last=922337203685477581)),
]


@pytest.mark.parametrize(("total", "number", "size", "pages", "expected"), PAGES)
def test_page_tells_where_it_stands(total, number, size, pages, expected):
    page = Page([], total, number, size)
    totals = {"X-Total": str(total), "X-TotalPages": str(pages)}
    assert page.pages == pages
    assert page.headers(AT, []) == totals | ({"Link": expected} if expected else {})


def test_links_keep_the_other_parameters():
    query = [
        ("filter[q]", "50% & more"),
        ("page", "2"),
        ("fields", "id,code"),
        ("x", ""),
        ("x", "é"),
    ]
    headers = Page([], 30, 2, 10).headers(AT, query)
    kept = "filter%5Bq%5D=50%25+%26+more&fields=id%2Ccode&x=&x=%C3%A9"
    assert headers["Link"] == (
        f'<{AT}?{kept}&page=1>; rel="first", <{AT}?{kept}&page=1>; rel="prev", '
        f'<{AT}?{kept}&page=3>; rel="next", <{AT}?{kept}&page=3>; rel="last"'
    )


def test_links_lead_through_the_list(app, make_app, admin, make_coupon):
    made = [make_coupon(description="sold here")["id"] for _ in range(5)]
    make_coupon(description="sold out")
    admin.http = make_app(SHOP_PAGE_SIZE=2).test_client()
    path, query, seen, steps = "/coupons", {"filter[q]": "HERE", "fields": "id"}, [], []
    while path:
        response = admin.get(path, query)
        seen += [coupon["id"] for coupon in response.get_json()["coupons"]]
        targets = {
            part.rpartition('rel="')[2].rstrip('"'): part.partition(">")[0].lstrip(" <")
            for part in response.headers.get("Link", "").split(",")
        }
        steps.append((response.headers["X-Total"], response.headers["X-TotalPages"], *targets))
        address = urlsplit(targets.get("next", ""))
        assert "next" not in targets or (address.scheme, address.netloc) == ("http", "localhost")
        path, query = address.path, parse_qs(address.query)
    assert seen == made[::-1]
    assert steps == [
        ("5", "3", "next", "last"),
        ("5", "3", "first", "prev", "next", "last"),
        ("5", "3", "first", "prev"),
    ]
