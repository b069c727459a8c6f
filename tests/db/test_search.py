"""Searches: what their columns contain, and what they find in every list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.conversions.text import searchable
from app.db.search import search_text

BETWEEN = "\uffff"


@pytest.mark.parametrize(
    ("texts", "searched"),
    [
        (["Ada@Example.com", "ada", "Ada Hopper"], f"ada@example.com{BETWEEN}ada hopper"),
        (["ada@example.com", "hopper", ""], f"ada@example.com{BETWEEN}hopper"),
        (["A", "a"], "a"),
        (["", ""], ""),
    ],
)
def test_text_that_is_part_of_another_one_is_left_out(texts, searched):
    assert search_text(*texts) == searched


few_letters = st.text("aAbßς ", max_size=6)


@given(st.lists(few_letters, min_size=1, max_size=4), few_letters)
def test_search_text_finds_exactly_the_parts_of_its_texts(texts, part):
    part = searchable(part)
    found = any(part in searchable(text) for text in texts)
    assert (part in search_text(*texts)) == found


# Stored, and what people type to find it.
ACCENTS = [
    ("M\u00fcller", ["muller", "M\u00dcLLER", "m\u00fcll", "mu\u0308ller", "M\u00fbller"]),
    ("Stra\u00dfe", ["strasse", "STRASSE", "stra\u00dfe", "STRA\u1e9eE"]),
    ("\u0141\u00f3d\u017a", ["lodz", "\u0142\u00f3d\u017a", "\u0141ODZ"]),
    ("S\u00f8ren \u00c6r\u00f8", ["soren aero", "s\u00f6ren", "\u00e6r\u00f8"]),
    ("\u0130stanbul \u0131\u015f\u0131k", ["istanbul", "ISTANBUL ISIK", "\u0131stanbul"]),
    ("Nguy\u1ec5n V\u0103n \u0110\u1ee9c", ["nguyen van duc", "NGUYE\u0302\u0303N"]),
    ("\u0391\u03b3\u03af\u03b1 \u0399\u03b8\u03ac\u03ba\u03b7\u03c2", ["\u03b1\u03b3\u03b9\u03b1", "\u0391\u0393\u0399\u0391 \u0399\u0398\u0391\u039a\u0397\u03a3"]),
    ("\uff33ummer \ufb01ne", ["summer fine"]),
    ("Muller", ["m\u00fcller", "MU\u0308LLER"]),
    ("\u65e5\u672c\u8a9e \u30ac", ["\u672c\u8a9e", "\u30ac", "\u30ab\u3099"]),
    ("\U0001d404\u0301mile", ["emile"]),
]  # fmt: skip
# Vowel signs and marks of kana are parts of letters, and numbers and signs stay what they are.
DIFFERENT = [
    ("\u0915\u0941", "\u0915"), ("\u30ac", "\u30ab"), ("\uac01", "\uac00"),
    ("strase", "stra\u00dfe"), ("50%", "50\u00b0"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "typed"), [(text, typed) for text, several in ACCENTS for typed in several]
)
def test_accents_do_not_matter(text, typed):
    assert searchable(typed) in searchable(text)


@pytest.mark.parametrize(("text", "typed"), DIFFERENT)
def test_other_marks_matter(text, typed):
    assert searchable(text) != searchable(typed)


def test_every_letter_stays_as_it_is_once_it_is_searchable():
    letters = [chr(code) for code in range(0x30000) if not 0xD800 <= code < 0xE000]
    assert [each for each in letters if searchable(found := searchable(each)) != found] == []


@given(st.text(max_size=20))
def test_text_stays_as_it_is_once_it_is_searchable(text):
    assert searchable(searchable(text)) == searchable(text)


def ids(client, path, key, **query):
    response = client.get(path, query)
    found = sorted(record["id"] for record in response.get_json()[key])
    if path.startswith("/wc-api"):
        query = {"filter[q]": query["filter[q]"]}
    if not path.startswith("/wp-json"):
        assert response.headers["X-Total"] == str(len(found))
        counted = client.get(f"{path}/count", query).get_json()
        assert counted["count"] == len(found)
    return found


@pytest.mark.both_databases
def test_accents_do_not_matter_in_lists_and_counts(admin, make_customer, make_coupon):
    customers, orders, coupons = {}, {}, {}
    for number, (text, _) in enumerate(ACCENTS):
        name = {"email": f"{number}@example.com", "first_name": text}
        customers[text] = make_customer(**name)["id"]
        address = {"shipping_address": {"city": text}}
        orders[text] = admin.post("/orders", {"order": address}).get_json()["order"]["id"]
        coupons[text] = make_coupon(code=f"code{number}", description=text)["id"]
    for text, several in ACCENTS:
        for typed in several:
            found = [other for other, _ in ACCENTS if searchable(typed) in searchable(other)]
            assert text in found
            for path, key, records in (
                ("/customers", "customers", customers),
                ("/orders", "orders", orders),
                ("/coupons", "coupons", coupons),
            ):
                wanted = sorted(records[other] for other in found)
                assert ids(admin, path, key, **{"filter[q]": typed}) == wanted, (path, typed)
    assert ids(admin, "/customers", "customers", **{"filter[q]": "*ULL*R"}) == sorted(
        [customers["M\u00fcller"], customers["Muller"]]
    )


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "typed",
    ["m\u00fcller", "ANN MULLER", "ann@", "munchen.example", "ann@xn--mnchen-3ya.example", "Lange Strasse", "80331", "nikolaus"],
)  # fmt: skip
def test_orders_are_found_by_account_street_and_postcode(admin, make_customer, typed):
    """Of the account by its present name and address, also of orders of a telephone."""
    ann = make_customer(email="x@example.com", first_name="Ann", last_name="Lee")
    make_customer(email="other@example.com", first_name="Bob")
    lines = {"address_1": "Lange Stra\u00dfe 5", "address_2": "c/o Nikolaus", "postcode": "80331"}
    addresses = {"billing_address": {"city": "Wien"}, "shipping_address": lines}
    mine = {"customer_id": ann["id"], **addresses}
    order = admin.post("/orders", {"order": mine}).get_json()["order"]
    other = admin.post("/orders", {"order": {"billing_address": {"city": "Graz"}}})
    changed = {"email": "Ann@m\u00fcnchen.example", "last_name": "M\u00fcller"}
    admin.put(f"/customers/{ann['id']}", {"customer": changed})
    assert ids(admin, "/orders", "orders", **{"filter[q]": typed}) == [order["id"]]
    query = {"filter[q]": typed, "filter[limit]": "1", "filter[orderby]": "total"}
    assert admin.get("/orders", query).headers["X-Total"] == "1"
    for short, found in (("m\u00fc", 0), ("gr", 1), ("zq", 0)):
        assert len(ids(admin, "/orders", "orders", **{"filter[q]": short})) == found
    assert other.status_code == 201
    # What is left of the account is left in no search.
    admin.delete(f"/customers/{ann['id']}")
    left = ["Lange Strasse", "80331", "nikolaus"]
    assert len(ids(admin, "/orders", "orders", **{"filter[q]": typed})) == (typed in left)
