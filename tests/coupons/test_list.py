"""Lists and counts of coupons: order, fields, statements (spec 4.1; decisions 4, 6)."""

import pytest

from tests.api_client import reply, without_key
from tests.coupons.lists import letters, totals

# --- what is listed ---


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
