"""Pages of lists and their headers (spec 4.2; decisions 6 and 13)."""

import re
from decimal import Decimal
from itertools import product
from urllib.parse import parse_qs, urlsplit

import pytest

from app.db import search
from app.services.common import plans
from app.services.common.pagination import Page
from tests.api_client import refused_params
from tests.customers.calls import give_role
from tests.factories import insert_order

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
def test_page_has_its_number_and_the_totals(total, number, size, pages, expected):
    page = Page([], total, number, size)
    totals = {"X-Total": str(total), "X-TotalPages": str(pages)}
    assert page.pages == pages
    assert page.headers(AT, []) == totals | ({"Link": expected} if expected else {})


def test_page_of_a_search_with_more_matches_than_are_counted():
    """Nobody knows its last page."""
    (first, middle, end) = (
        Page([], 20, number, 10, goes_on=goes_on).headers(AT, [])
        for number, goes_on in ((1, True), (9, True), (12, False))
    )
    totals = {"X-Total": "20", "X-TotalPages": "2", "X-Total-Complete": "false"}
    assert first == totals | {"Link": link(next=2)}
    assert middle == totals | {"Link": link(first=1, prev=8, next=10)}
    assert end == totals | {"Link": link(first=1, prev=11)}


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


@pytest.mark.parametrize(("total", "length"), [(20, 4000), (91, 4001)])
def test_link_of_more_bytes_than_proxies_accept_is_omitted(total, length):
    # The page number of the last link has one digit more in the second case.
    headers = Page([], total, 1, 10).headers(AT + "x" * 1950, [])
    links = link(next=2, last=-(-total // 10)).replace(AT, AT + "x" * 1950)
    assert len(links) == length
    assert headers.get("Link") == (links if length == 4000 else None)
    assert headers["X-Total"] == str(total)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("shop.example", "shop.example"),
        ("shop.example:80", "shop.example:80"),
        ("Shop.Example:8080", "Shop.Example:8080"),
        ("xn--e1afmkfd.xn--p1ai", "xn--e1afmkfd.xn--p1ai"),
        ("[::1]:8000", "[::1]:8000"),
        ("m\xc3\xbcnchen.example", "m%C3%BCnchen.example"),
        ("m\xfcnchen.example", "m%FCnchen.example"),
        ('a">b', "a%22%3Eb"),
    ],
)
@pytest.mark.parametrize("mount", ["", "/wc-api/v3"])
def test_link_is_ascii_with_the_host_as_it_was_written(admin, make_coupon, mount, host, shown):
    for _ in range(11):
        make_coupon()
    query = {"environ_overrides": {"HTTP_HOST": host}}
    response = admin.get(f"{mount}/coupons", {"filter[q]": "", "é": "ü"}, **query)
    assert response.status_code == 200
    address = f"http://{shown}{mount}/coupons?filter%5Bq%5D=&%C3%A9=%C3%BC&page=2"
    assert response.headers["Link"] == f'<{address}>; rel="next", <{address}>; rel="last"'
    assert response.headers["Link"].isascii()


def test_long_query_has_totals_and_no_link(admin, make_coupon):
    for _ in range(11):
        make_coupon()
    short, long = "id," * 100, "id," * 900
    assert "Link" in admin.get("/coupons", {"fields": short}).headers
    response = admin.get("/coupons", {"fields": long})
    assert "Link" not in response.headers
    assert (response.headers["X-Total"], response.headers["X-TotalPages"]) == ("11", "2")
    assert len(response.get_json()["coupons"]) == 10


def test_links_lead_through_the_list(app, app_with, admin, make_coupon):
    made = [make_coupon(description="sold here")["id"] for _ in range(5)]
    make_coupon(description="sold out")
    admin.http = app_with(SHOP_PAGE_SIZE=2).test_client()
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


ORDERS = ("id", "email", "login", "modified", "name", "first_name", "last_name", "registered")


@pytest.mark.sample(1)
@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("order", "role"),
    [
        ("asc", "all"),
        ("desc", "customer"),
        pytest.param("asc", "customer", marks=pytest.mark.slow),
        pytest.param("desc", "all", marks=pytest.mark.slow),
    ],
)
def test_later_pages_continue_the_list(monkeypatch, make_customer, client_for, admin, order, role):
    """Also with equal names, and with accounts in between that the list leaves out."""
    for number in range(3):
        make_customer(first_name="Ada", last_name=f"Nr {number}")
        client_for(login=f"customer-{number}-x")
        make_customer(first_name="Bea")
    whole = {"filter[order]": order, "filter[role]": role, "filter[limit]": 50}
    short = whole | {"filter[limit]": 2}
    lists = {
        name: admin.get("/customers", {**whole, "filter[orderby]": name}).get_json()["customers"]
        for name in ORDERS
    }
    monkeypatch.setattr(plans, "FEW", 0)  # nothing is few
    for name, expected in lists.items():
        assert len(expected) == (6 if role == "customer" else 10)
        for offset in range(1, len(expected) + 3):
            query = {**short, "filter[orderby]": name, "filter[offset]": offset}
            page = admin.get("/customers", query)
            assert page.get_json()["customers"] == expected[offset : offset + 2], (name, offset)
            assert page.headers["X-Total"] == str(len(expected))


@pytest.mark.sample(1)
@pytest.mark.both_databases
@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize(
    "directions", [["desc"], pytest.param(["asc", "desc"], marks=pytest.mark.slow)]
)
def test_pages_from_the_end_continue_the_list(
    monkeypatch, make_coupon, admin, client_with, few, directions
):
    """Read backwards, values that are missing still come last, and equal ones by their ID."""
    dates = [None, "2030-01-01", None, "2030-01-02", "2030-01-01", "2029-01-01", None]
    for number, expiry_date in enumerate(dates):
        make_coupon(code=f"nr-{number}", expiry_date=expiry_date, amount=str(number % 3))
    admin.delete(f"/coupons/{make_coupon(code='gone')['id']}")
    monkeypatch.setattr(plans, "FEW", few)
    short = client_with(SHOP_PAGE_SIZE=2)
    names = "date", "modified", "id", "code", "amount", "usage_count", "expiry_date"
    for orderby, order in product(names, directions):
        query = {"filter[orderby]": orderby, "filter[order]": order}
        whole = admin.get("/coupons", query).get_json()["coupons"]
        assert len(whole) == len(dates)
        if orderby == "expiry_date":
            assert [coupon["expiry_date"] for coupon in whole][-3:] == [None] * 3
        for filters in query, query | {"filter[not_in]": "999"}:
            pages = [short.get("/coupons", filters | {"page": page}) for page in range(1, 6)]
            assert [page.get_json()["coupons"] for page in pages] == [
                whole[start : start + 2] for start in range(0, 10, 2)
            ], (orderby, order)


@pytest.mark.sample(3)
@pytest.mark.both_databases
@pytest.mark.parametrize("few", [0, 1000])
@pytest.mark.parametrize("more", [{}, {"filter[created_at_min]": "2001-01-01"}])
@pytest.mark.parametrize("text", ["ж", "JЖR"])
def test_matches_of_a_search_are_counted_up_to_a_number(
    monkeypatch, make_customer, admin, text, more, few
):
    """All of them are on the pages. The responses say that there are more."""
    for number in range(7):
        make_customer(first_name=f"Bjжrn {number}")
    make_customer(first_name="Ada")
    query = {"filter[q]": text, "filter[orderby]": "first_name", **more}
    whole = admin.get("/customers", query | {"filter[limit]": -1})
    found = whole.get_json()["customers"]
    assert sorted(each["first_name"] for each in found) == [f"Bjжrn {n}" for n in range(7)]
    monkeypatch.setattr(plans, "FEW", few)
    for name in ("MOST_COUNTED", "MOST_OF_LETTERS"):
        monkeypatch.setattr(search, name, 3)
    two = query | {"filter[limit]": 2}
    pages = [admin.get("/customers", two | {"page": number}) for number in range(1, 6)]
    assert [each for page in pages for each in page.get_json()["customers"]] == found
    assert {page.headers["X-Total"] for page in pages} == {"3"}
    assert {page.headers["X-Total-Complete"] for page in pages} == {"false"}
    relations = [re.findall('rel="([a-z]+)"', page.headers["Link"]) for page in pages]
    assert [("next" in each, "last" in each) for each in relations] == [
        (True, False), (True, False), (True, False), (False, False), (False, False),
    ]  # fmt: skip
    assert admin.get("/customers/count", query).get_json() == {"count": 3, "complete": False}
    whole = admin.get("/customers", query | {"filter[limit]": -1})
    assert (whole.headers["X-Total"], "X-Total-Complete" in whole.headers) == ("7", False)
    rare = admin.get("/customers", query | {"filter[q]": f"{text}*1"})
    assert (rare.headers["X-Total"], len(rare.get_json()["customers"])) == ("1", 1)


@pytest.mark.both_databases
@pytest.mark.parametrize("text", ["xy", "xyz"])
@pytest.mark.parametrize(
    ("mount", "search_name", "limit_name", "total"),
    [
        ("", "filter[q]", "filter[limit]", "X-Total"),
        ("/wc-api/v2", "filter[q]", "filter[limit]", "X-WC-Total"),
        ("/wc-api/v3", "filter[q]", "filter[limit]", "X-WC-Total"),
        ("/wp-json/wc/v3", "search", "per_page", "X-WP-Total"),
    ],
)
@pytest.mark.parametrize("noun", ["customers", "orders", "coupons"])
def test_the_count_of_a_search_ends_in_each_dialect(
    app, monkeypatch, make_customer, make_coupon, admin,
    noun, mount, search_name, limit_name, total, text
):  # fmt: skip
    for number in range(5):
        make_customer(first_name=f"xyz {number}")
        make_coupon(code=f"xyz-{number}")
        insert_order(app, billing_first_name="xyz", search_text="xyz")
    for name, most in (("MOST_COUNTED", 4), ("MOST_OF_LETTERS", 3)):
        monkeypatch.setattr(search, name, most)
    page = admin.get(f"{mount}/{noun}", {search_name: text, limit_name: 2})
    assert page.status_code == 200, page.get_json()
    number = 3 if len(text) < 3 else 4
    assert page.headers[total] == str(number)
    assert page.headers[f"{total}-Complete"] == "false"
    if limit_name != "per_page":  # the dialect has no numbers of their own
        counted = admin.get(f"{mount}/{noun}/count", {search_name: text})
        assert counted.get_json() == {"count": number, "complete": False}


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("mount", "search_name", "total"),
    [("", "q", "X-Total"), ("/wp-json/wc/v3", "search", "X-WP-Total")],
)
def test_two_letters_are_looked_for_in_the_newest_orders(
    app, monkeypatch, admin, mount, search_name, total
):
    texts = ["xy old", "xyz old", "ab", "ab", "ab"]
    ids = [insert_order(app, search_text=each) for each in texts]
    monkeypatch.setitem(search.MOST_COMPARED, "orders", 3)
    monkeypatch.setattr(search, "MOST_OF_LETTERS", 2)

    def listed(text):
        page = admin.get(f"{mount}/orders", {search_name: text})
        body = page.get_json()
        shown = [each["id"] for each in (body if mount else body["orders"])]
        return shown, page.headers[total], page.headers.get(f"{total}-Complete")

    assert listed("xy") == ([], "0", "false")
    assert listed("xyz") == ([ids[1]], "1", None)
    assert listed("ab") == (ids[:1:-1], "2", "false")
    monkeypatch.setitem(search.MOST_COMPARED, "orders", 5)
    assert listed("xy") == ([ids[1], ids[0]], "2", None)
    monkeypatch.setitem(search.MOST_COMPARED, "orders", 3)
    if not mount:
        counted = admin.get("/orders/count", {"q": "xy"})
        assert counted.get_json() == {"count": 0, "complete": False}
        whole = admin.get("/orders", {"q": "xy", "limit": -1})
        assert [each["id"] for each in whole.get_json()["orders"]] == [ids[1], ids[0]]
        assert "X-Total-Complete" not in whole.headers


def count_at_most(monkeypatch, most):
    """Let pages count so many matches of a search, of metadata, of a tag or of a sum."""
    for name in ("app.db.search", "app.services.common.metadata", "app.services.customers.queries"):
        monkeypatch.setattr(f"{name}.MOST_COUNTED", most)


@pytest.mark.both_databases
def test_a_page_with_conditions_on_other_tables_counts_up_to_a_number(
    app, monkeypatch, admin, make_customer
):
    for number in range(5):
        made = make_customer(metadata={"erp_id": number, "newsletter": True}, tags=["vip"])
        insert_order(app, customer_id=made["id"], status="completed", total=Decimal(number + 1))
    count_at_most(monkeypatch, 3)
    for filters, counts_all in (
        ({"metadata_key": "newsletter", "metadata_value": "true"}, True),
        ({"metadata_key": "erp_id"}, False),
        ({"tag": "vip"}, True),
        ({"total_spent_min": "1"}, True),
        ({"tag": "vip", "q": "example"}, False),
    ):
        for orderby in ("id", "total_spent"):
            query = filters | {"orderby": orderby, "limit": 2}
            pages = [admin.get("/customers", query | {"page": number}) for number in (1, 2, 3)]
            shown = [each["id"] for page in pages for each in page.get_json()["customers"]]
            assert len(set(shown)) == 5, query
            assert {page.headers["X-Total"] for page in pages} == {"3"}, query
            assert {page.headers["X-Total-Complete"] for page in pages} == {"false"}, query
        counted = admin.get("/customers/count", filters).get_json()
        assert counted == ({"count": 5} if counts_all else {"count": 3, "complete": False}), filters


@pytest.mark.both_databases
@pytest.mark.parametrize("few", [0, 5000])
def test_records_that_a_list_omits_are_not_counted_instead_of_others(
    app, monkeypatch, admin, make_customer, few
):
    """Matches in the trash, or without the role, are left out of what a page counts up to."""
    count_at_most(monkeypatch, 3)
    monkeypatch.setattr("app.services.customers.queries.FEW", 0)
    monkeypatch.setattr("app.services.customers.queries._FEW_OTHERS", few)
    for number in range(8):
        made = make_customer(tags=["vip"])
        insert_order(app, customer_id=made["id"], status="completed", total=Decimal(1))
        if number % 2:
            give_role(app, made["id"], "shop_manager", 1)
    colored = {"order": {"metadata": {"color": "red"}}}
    red = [admin.post("/orders", colored).get_json()["order"]["id"] for _ in range(6)]
    assert admin.delete(f"/orders/{red[-1]}").status_code == 200
    for path, filters, number in (
        ("orders", {"metadata_key": "color", "metadata_value": "red"}, 5),
        ("customers", {"tag": "vip", "role": "shop_manager"}, 4),
        ("customers", {"total_spent_min": "1", "role": "shop_manager"}, 4),
    ):
        query = filters | {"orderby": "id", "limit": 2}
        pages = [admin.get(f"/{path}", query | {"page": page}) for page in (1, 2, 3)]
        shown = [each["id"] for page in pages for each in page.get_json()[path]]
        whole = admin.get(f"/{path}", filters | {"orderby": "id", "limit": -1}).get_json()[path]
        assert shown == [each["id"] for each in whole], query
        assert len(shown) == number, query
        assert {page.headers["X-Total"] for page in pages} == {"3"}, query


def test_a_search_has_at_most_ten_wildcards(admin):
    assert admin.get("/customers", {"filter[q]": "a*" * 10}).status_code == 200
    assert refused_params(admin.get("/customers", {"filter[q]": "a*" * 11})) == ["filter[q]"]
