"""Lists and counts of coupons: filters, order, pages, fields (spec 4.1; decisions 4, 6, 13)."""

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from urllib.parse import parse_qsl, urlsplit

import pytest
from conftest import codes, refusal, refused_params, reply, without_key

MAX = 2**63 - 1


def moment(day, hour=0):
    return datetime(2026, 1, day, hour, tzinfo=UTC)


# Each column has a tie, so that the id decides; in the order of their ids.
ROWS = {
    "A": {
        "code": "delta",
        "description": "Winter SALE",
        "type": "percent",
        "amount": Decimal("10.00"),
        "usage_count": 3,
        "expiry_date": date(2031, 1, 1),
        "created_at": moment(3),
        "updated_at": moment(11),
    },
    "B": {
        "code": "alpha",
        "description": "100% off_season",
        "type": "fixed_cart",
        "amount": Decimal("9.50"),
        "usage_count": 10,
        "expiry_date": None,
        "created_at": moment(1),
        "updated_at": moment(14),
    },
    "C": {
        "code": "charlie",
        "description": "",
        "type": "percent",
        "amount": Decimal("10.00"),
        "usage_count": 3,
        "expiry_date": date(2030, 1, 1),
        "created_at": moment(3),
        "updated_at": moment(12),
    },
    "D": {
        "code": "bravo ÉTÉ",
        "description": "ΑΘΗΝΑ",
        "type": "fixed_product",
        "amount": Decimal("-1.00"),
        "usage_count": 0,
        "expiry_date": date(2031, 1, 1),
        "created_at": moment(2, 12),
        "updated_at": moment(12),
    },
    "E": {
        "code": "echo",
        "description": "sale",
        "type": "percent_product",
        "amount": Decimal("100.00"),
        "usage_count": 3,
        "expiry_date": None,
        "created_at": moment(1),
        "updated_at": moment(13),
    },
}
INPUT = {"code", "description", "type"}


@pytest.fixture
def shop(admin, make_coupon, store):
    """The ids of the rows by their letters; a sixth coupon is in the trash."""
    items = [{name: row[name] for name in INPUT} for row in ROWS.values()]
    created = admin.post("/coupons/bulk", {"coupons": items}).get_json()["coupons"]
    ids = {letter: coupon["id"] for letter, coupon in zip(ROWS, created, strict=True)}
    for letter, row in ROWS.items():
        store(ids[letter], **{name: row[name] for name in row.keys() - INPUT})
    admin.delete(f"/coupons/{make_coupon(code='sale in the trash', type='percent')['id']}")
    return ids


@pytest.fixture
def pager(client_with):
    """The administrator, as a client of an app with two rows on a page."""
    return client_with(SHOP_PAGE_SIZE=2)


def letters(response, shop):
    """The letters of the coupons that a list shows, in its order."""
    assert response.status_code == 200, response.get_json()
    names = {coupon_id: letter for letter, coupon_id in shop.items()}
    return "".join(names[coupon["id"]] for coupon in response.get_json()["coupons"])


def totals(response):
    return response.headers["X-Total"], response.headers["X-TotalPages"]


def links(response):
    """The Link header as {relation: (address, sorted parameters)}."""
    header = response.headers.get("Link", "")
    found = {}
    for target, relation in re.findall(r'<([^>]*)>; rel="(\w+)"', header):
        parts = urlsplit(target)
        address = f"{parts.scheme}://{parts.netloc}{parts.path}"
        found[relation] = (address, sorted(parse_qsl(parts.query, keep_blank_values=True)))
    return found


# --- what is listed ---


def test_list_of_an_empty_shop(admin):
    response = admin.get("/coupons")
    assert reply(response) == (200, {"coupons": []})
    assert totals(response) == ("0", "0")
    assert "Link" not in response.headers


def test_list_shows_coupons_as_they_are_read(admin, make_coupon):
    coupons = [make_coupon(amount=number) for number in range(3)]
    response = admin.get("/coupons")
    assert reply(response) == (200, {"coupons": coupons[::-1]})
    assert totals(response) == ("3", "1")
    assert "Link" not in response.headers


def test_list_leaves_out_the_trash(admin, shop):
    response = admin.get("/coupons")
    assert letters(response, shop) == "CADEB"
    assert totals(response) == ("5", "1")
    assert reply(admin.get("/coupons/count")) == (200, {"count": 5})


# --- order ---

ORDERS = {
    "date": ("CADEB", "BEDAC"),
    "modified": ("BEDCA", "ACDEB"),
    "id": ("EDCBA", "ABCDE"),
    "code": ("EACDB", "BDCAE"),
    "amount": ("ECABD", "DBACE"),
    "usage_count": ("BECAD", "DACEB"),
    "expiry_date": ("DACEB", "CADBE"),  # those without one are last either way
}


@pytest.mark.parametrize(("orderby", "expected"), ORDERS.items(), ids=list(ORDERS))
def test_list_orderby(admin, pager, shop, orderby, expected):
    descending, ascending = expected
    by = {"filter[orderby]": orderby}
    assert letters(admin.get("/coupons", by), shop) == descending
    for order, row in (
        ("desc", descending),
        ("DESC", descending),
        ("asc", ascending),
        ("Asc", ascending),
    ):
        query = by | {"filter[order]": order}
        assert letters(admin.get("/coupons", query), shop) == row
        pages = [pager.get("/coupons", query | {"page": page}) for page in (1, 2, 3, 4)]
        assert [letters(page, shop) for page in pages] == [row[:2], row[2:4], row[4:], ""]


def test_list_order_without_orderby_is_by_date(admin, shop):
    assert letters(admin.get("/coupons", {"filter[order]": "asc"}), shop) == "BEDAC"


# --- filters ---

FILTERS = [
    # q: code and description, part of a word, case ignored
    ({"q": "delta"}, "A"),
    ({"q": "ELT"}, "A"),
    ({"q": "sale"}, "AE"),
    ({"q": "winter sale"}, "A"),
    ({"q": "été"}, "D"),
    ({"q": "ÉTÉ"}, "D"),
    ({"q": "αθηνα"}, "D"),
    ({"q": "a"}, "ABCDE"),
    ({"q": "%"}, "B"),
    ({"q": "_"}, "B"),
    ({"q": "100% off_"}, "B"),
    ({"q": "\\"}, ""),
    ({"q": "'"}, ""),
    ({"q": "*"}, ""),
    ({"q": "trash"}, ""),
    ({"q": "alpha100"}, ""),
    ({"q": ""}, "ABCDE"),
    # type
    ({"type": "percent"}, "AC"),
    ({"type": "fixed_cart"}, "B"),
    ({"type": "percent_product"}, "E"),
    ({"type": ""}, "ABCDE"),
    # moments: at or after, at or before; a date is its midnight
    ({"created_at_min": "2026-01-03T00:00:00Z"}, "AC"),
    ({"created_at_min": "2026-01-03T00:00:01Z"}, ""),
    ({"created_at_min": "2026-01-02T12:00:00.5Z"}, "AC"),
    ({"created_at_min": "2026-01-03"}, "AC"),
    ({"created_at_min": "2026-01-03T02:00:00+02:00"}, "AC"),
    ({"created_at_min": "2026-01-02T19:00:01-05:00"}, ""),
    ({"created_at_min": "2026-01-03T00:00:00"}, "AC"),
    ({"created_at_min": "1767398400"}, "AC"),
    ({"created_at_min": "1767398401"}, ""),
    ({"created_at_min": "0"}, "ABCDE"),
    ({"created_at_min": "0001-01-01"}, "ABCDE"),
    ({"created_at_max": "2026-01-01T00:00:00Z"}, "BE"),
    ({"created_at_max": "2025-12-31T23:59:59Z"}, ""),
    ({"created_at_max": "2026-01-02"}, "BE"),
    ({"created_at_max": "2026-01-02T12:00:00Z"}, "BDE"),
    ({"created_at_max": "9999-12-31T23:59:59Z"}, "ABCDE"),
    ({"created_at_min": ""}, "ABCDE"),
    ({"created_at_min": "2026-01-02", "created_at_max": "2026-01-02T23:59:59Z"}, "D"),
    ({"created_at_min": "2026-01-03", "created_at_max": "2026-01-01"}, ""),
    ({"updated_at_min": "2026-01-13"}, "BE"),
    ({"updated_at_max": "2026-01-12"}, "ACD"),
    ({"updated_at_min": "2026-01-12", "updated_at_max": "2026-01-13"}, "CDE"),
    # ids
    ({"in": "{A},{C}"}, "AC"),
    ({"in": " {A} , {C} "}, "AC"),
    ({"in": "{A},{A}"}, "A"),
    ({"in": "{C},999999"}, "C"),
    ({"in": "0"}, ""),
    ({"in": str(MAX)}, ""),
    ({"in": f"{MAX + 1},{10**30}"}, ""),
    ({"in": "{B},1" + "0" * 40}, "B"),
    ({"in": ""}, "ABCDE"),
    ({"not_in": "{A},{C}"}, "BDE"),
    ({"not_in": "999999"}, "ABCDE"),
    ({"not_in": str(10**30)}, "ABCDE"),
    ({"not_in": ""}, "ABCDE"),
    # empty entries are skipped (decisions 14)
    ({"in": "{B},"}, "B"),
    ({"in": ",{B}, ,{C},,"}, "BC"),
    ({"in": " , "}, "ABCDE"),
    ({"not_in": "{A},,{C},"}, "BDE"),
    ({"not_in": ","}, "ABCDE"),
    ({"in": "{A},{B}", "not_in": "{B}"}, "A"),
    # all together
    ({"q": "sale", "type": "percent", "created_at_min": "2026-01-02"}, "A"),
    ({"q": "sale", "type": "fixed_cart"}, ""),
    # what is no key of a coupon list
    ({"limit": "1"}, "ABCDE"),
    ({"limit": "abc"}, "ABCDE"),
    ({"unknown": "x"}, "ABCDE"),
    ({"role": "customer"}, "ABCDE"),
]


@pytest.mark.parametrize(("keys", "expected"), FILTERS, ids=[str(keys) for keys, _ in FILTERS])
def test_filter(admin, shop, keys, expected):
    query = {f"filter[{key}]": value.format_map(shop) for key, value in keys.items()}
    response = admin.get("/coupons", query | {"filter[orderby]": "id", "filter[order]": "asc"})
    assert letters(response, shop) == expected
    assert totals(response) == (str(len(expected)), "1" if expected else "0")
    assert reply(admin.get("/coupons/count", query)) == (200, {"count": len(expected)})


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("type", "unknown"),
        ("type", "percent,fixed_cart"),
        ("in", "x"),
        ("in", "1,x"),
        ("in", "1;2"),
        ("in", "-1"),
        ("in", "1.5"),
        ("in", "1,x,2"),
        ("not_in", "x"),
        ("not_in", "1 2"),
        *(
            (key, value)
            for key in ("created_at_min", "created_at_max", "updated_at_min", "updated_at_max")
            for value in ("abc", "2026-13-01", "2026-02-30", "2026-01-01T25:00:00Z", "2026-01-01Tx")
        ),
        ("created_at_min", "9" * 5000),
        ("created_at_min", "9999-12-31T23:59:59-05:00"),
        ("q", "a\0b"),
        ("type", "\0"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_filter_rejected(admin, shop, key, value):
    query = {f"filter[{key}]": value}
    assert refused_params(admin.get("/coupons", query)) == [f"filter[{key}]"]
    assert refused_params(admin.get("/coupons/count", query)) == [f"filter[{key}]"]


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("page", "0"),
        ("page", "-1"),
        ("page", "abc"),
        ("page", "1.5"),
        ("page", "1e3"),
        ("page", "9" * 5000),
        ("page", "٣"),
        ("filter[offset]", "-1"),
        ("filter[offset]", "abc"),
        ("filter[offset]", "1.5"),
        ("filter[order]", "up"),
        ("filter[order]", "asc,desc"),
        ("filter[orderby]", "unknown"),
        ("filter[orderby]", "registered"),
        ("filter[orderby]", "description"),
        ("filter[orderby]", "date; DROP TABLE coupons"),
        ("fields", "a\0b"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_query_rejected(admin, shop, parameter, value):
    assert refused_params(admin.get("/coupons", {parameter: value})) == [parameter]


def test_several_wrong_parameters_are_reported_together(admin):
    query = {"page": "x", "filter[orderby]": "x", "filter[offset]": "x", "filter[in]": "x"}
    assert sorted(refused_params(admin.get("/coupons", query))) == sorted(query)


@pytest.mark.parametrize(
    "parameter", ["filter[order]", "filter[orderby]", "filter[offset]", "filter[limit]", "page"]
)
def test_empty_parameter_is_the_default(admin, shop, parameter):
    assert letters(admin.get("/coupons", {parameter: ""}), shop) == "CADEB"


def test_count_ignores_page_offset_and_limit(admin, shop):
    query = {"page": "3", "filter[offset]": "4", "filter[limit]": "1"}
    assert reply(admin.get("/coupons/count", query)) == (200, {"count": 5})


# --- pages ---


def test_link_header_in_full(pager, shop):
    response = pager.get("/coupons", {"page": "2"})
    targets = [("first", 1), ("prev", 1), ("next", 3), ("last", 3)]
    header = ", ".join(
        f'<http://localhost/coupons?page={page}>; rel="{relation}"' for relation, page in targets
    )
    assert response.headers.getlist("Link") == [header]


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


def test_page_when_they_divide_evenly(pager, shop):
    query = {"filter[in]": "{A},{B},{C},{D}".format_map(shop)}
    response = pager.get("/coupons", query)
    assert totals(response) == ("4", "2")
    assert set(links(response)) == {"next", "last"}
    response = pager.get("/coupons", query | {"page": "2"})
    assert set(links(response)) == {"first", "prev"}


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


def test_offset_is_skipped_instead_of_pages(pager, shop):
    assert letters(pager.get("/coupons", {"filter[offset]": "1", "page": "2"}), shop) == "AD"


# --- fields ---


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ("code", ["code"]),
        ("amount,id", ["id", "amount"]),
        (" id , code ", ["id", "code"]),
        ("id,id", ["id"]),
        ("id,unknown", ["id"]),
        ("unknown", []),
        (",", []),
        ("ID", []),
        ("id.x", []),
        ("status", []),
        ("author_id,search_text", []),
    ],
)
def test_list_selects_fields(admin, make_coupon, fields, names):
    coupons = [make_coupon(), make_coupon()]
    response = admin.get("/coupons", {"fields": fields})
    selected = [{name: coupon[name] for name in names} for coupon in coupons[::-1]]
    assert reply(response) == (200, {"coupons": selected})
    assert totals(response) == ("2", "1")


@pytest.mark.parametrize("fields", ["", " "])
def test_list_with_empty_fields_shows_all(admin, make_coupon, fields):
    coupon = make_coupon()
    assert reply(admin.get("/coupons", {"fields": fields})) == (200, {"coupons": [coupon]})


# --- who may ---


@pytest.mark.parametrize("role", ["customer", "subscriber"])
def test_list_of_a_caller_who_may_not_read(client_for, shop, role):
    client = client_for(role)
    for query in (None, {"filter[q]": "sale"}, {"filter[in]": str(shop["A"])}, {"fields": "id"}):
        response = client.get("/coupons", query)
        assert reply(response) == (200, {"coupons": []})
        assert totals(response) == ("0", "0")
        assert "Link" not in response.headers


@pytest.mark.parametrize("role", ["customer", "subscriber"])
def test_count_of_a_caller_who_may_not_read(client_for, shop, role):
    response = client_for(role).get("/coupons/count")
    assert reply(response) == refusal("shop_api_user_cannot_read_coupons_count")


def test_query_is_rejected_before_a_missing_capability(client_for):
    client = client_for("customer")
    query = {"filter[created_at_min]": "x"}
    assert codes(client.get("/coupons", query)) == (400, "shop_api_invalid_param")
    assert codes(client.get("/coupons/count", query)) == (400, "shop_api_invalid_param")


# --- searches that find many ---


@pytest.mark.parametrize("few", [0, 1, 1000])
@pytest.mark.parametrize("q", ["summer", "MME", "su", "sale", "nothing", "*"])
def test_search_finds_the_same_in_every_way(admin, make_coupon, monkeypatch, q, few):
    codes = ["summer-1", "summer sale", "winter sale", "summer-2", "s*"]
    made = [make_coupon(code=code) for code in codes]
    for gone in make_coupon(code="summer gone"), make_coupon(code="winter gone"):
        admin.delete(f"/coupons/{gone['id']}")
    expected = [coupon for coupon in reversed(made) if q.lower() in coupon["code"]]
    monkeypatch.setattr("app.services.pagination.FEW", few)
    monkeypatch.setattr("app.services.pagination.FEW_FOUND", few)
    response = admin.get("/coupons", {"filter[q]": q})
    assert (response.get_json(), response.headers["X-Total"]) == (
        {"coupons": expected},
        str(len(expected)),
    )
    assert admin.get("/coupons/count", {"filter[q]": q}).get_json() == {"count": len(expected)}
    monkeypatch.setattr("app.services.coupon_queries.FEW", 0)
    assert admin.get("/coupons/count", {"filter[q]": q}).get_json() == {"count": len(expected)}


# --- statements ---


@pytest.mark.parametrize("rows", [1, 3])
def test_list_statements(admin, make_coupon, statements, rows):
    for _ in range(rows):
        make_coupon()
    statements.clear()
    assert len(admin.get("/coupons").get_json()["coupons"]) == rows
    assert len(without_key(statements)) == 3  # the total, the ids, the records


@pytest.mark.parametrize("rows", [1, 3])
def test_count_statements(admin, make_coupon, statements, rows):
    for _ in range(rows):
        make_coupon()
    statements.clear()
    assert reply(admin.get("/coupons/count")) == (200, {"count": rows})
    assert len(without_key(statements)) == 1  # the total


def test_read_statements(admin, make_coupon, statements):
    coupon = make_coupon(code="summer")
    for path in (f"/coupons/{coupon['id']}", "/coupons/code/summer"):
        statements.clear()
        assert reply(admin.get(path)) == (200, {"coupon": coupon})
        assert len(without_key(statements)) == 1  # the coupon
