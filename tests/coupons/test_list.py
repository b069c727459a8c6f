"""Lists and counts of coupons: order, fields, permissions, statements (spec 4.1; decisions 4, 6)."""

import pytest

from tests.api_client import codes, refusal, reply, without_key
from tests.coupons.lists import letters, totals

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


@pytest.mark.both_databases
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


@pytest.mark.both_databases
@pytest.mark.parametrize("orderby", ORDERS)
def test_list_orderby(admin, pager, shop, orderby):
    descending, ascending = ORDERS[orderby]
    by = {"filter[orderby]": orderby}
    assert letters(admin.get("/coupons", by), shop) == descending
    for order, row in (("DESC", descending), ("asc", ascending), ("Asc", ascending)):
        query = by | {"filter[order]": order}
        assert letters(admin.get("/coupons", query), shop) == row
        pages = [pager.get("/coupons", query | {"page": page}) for page in (1, 2, 3, 4)]
        assert [letters(page, shop) for page in pages] == [row[:2], row[2:4], row[4:], ""]


@pytest.mark.both_databases
def test_list_order_without_orderby_is_by_date(admin, shop):
    assert letters(admin.get("/coupons", {"filter[order]": "asc"}), shop) == "BEDAC"


# --- fields ---


def test_list_selects_fields(admin, make_coupon):
    coupons = [make_coupon(), make_coupon()]
    for fields, names in (
        *[(fields, list(coupons[0])) for fields in ("", " ")],
        ("code", ["code"]),
        *[(fields, ["id", "amount"]) for fields in ("amount,id", " id , amount ")],
        *[(fields, ["id"]) for fields in ("id,id", "id,unknown")],
        *[
            (fields, [])
            for fields in ("unknown", ",", "ID", "id.x", "status", "author_id,search_text")
        ],
    ):
        response = admin.get("/coupons", {"fields": fields})
        selected = [{name: coupon[name] for name in names} for coupon in coupons[::-1]]
        assert reply(response) == (200, {"coupons": selected}), fields
        assert totals(response) == ("2", "1")


# --- who may ---


@pytest.mark.parametrize("role", ["customer", "subscriber"])
def test_list_of_a_caller_who_may_not_read(client_for, shop, role):
    client = client_for(role)
    for query in (None, {"filter[q]": "sale"}, {"filter[in]": str(shop["A"])}, {"fields": "id"}):
        response = client.get("/coupons", query)
        assert reply(response) == (200, {"coupons": []})
        assert totals(response) == ("0", "0")
        assert "Link" not in response.headers
    count = refusal("shop_api_user_cannot_read_coupons_count")
    assert reply(client.get("/coupons/count")) == count


def test_query_is_rejected_before_a_missing_capability(client_for):
    client = client_for("customer")
    query = {"filter[created_at_min]": "x"}
    assert codes(client.get("/coupons", query)) == (400, "shop_api_invalid_param")
    assert codes(client.get("/coupons/count", query)) == (400, "shop_api_invalid_param")


# --- statements ---


@pytest.mark.both_databases
@pytest.mark.parametrize("rows", [1, 3])
def test_list_statements(admin, make_coupon, statements, rows):
    for _ in range(rows):
        make_coupon()
    statements.clear()
    assert len(admin.get("/coupons").get_json()["coupons"]) == rows
    assert len(without_key(statements)) == 1  # the records with their total


@pytest.mark.both_databases
@pytest.mark.parametrize("rows", [1, 3])
def test_count_statements(admin, make_coupon, statements, rows):
    for _ in range(rows):
        make_coupon()
    statements.clear()
    assert reply(admin.get("/coupons/count")) == (200, {"count": rows})
    assert len(without_key(statements)) == 1  # the total


@pytest.mark.both_databases
def test_read_statements(admin, make_coupon, statements):
    coupon = make_coupon(code="summer")
    for path in (f"/coupons/{coupon['id']}", "/coupons/code/summer"):
        statements.clear()
        assert reply(admin.get(path)) == (200, {"coupon": coupon})
        assert len(without_key(statements)) == 1  # the coupon
