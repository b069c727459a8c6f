"""Lists and counts of customers: fields and statements (spec 4.2, decisions 5, 6)."""

import pytest

from tests.api_client import without_key
from tests.customers.lists import add_order, listed, numbered, totals

# --- count ---


def test_count_ignores_pages(admin):
    numbered(admin, 3)
    for query in ("filter[limit]=1", "filter[limit]=-1", "filter[offset]=2", "filter[order]=desc"):
        assert admin.get(f"/customers/count?{query}").get_json() == {"count": 3}


# --- fields ---


def test_fields_selects_fields_of_every_get(admin, make_customer):
    customer = make_customer(email="ann@example.com")
    for fields, names in (
        ("", customer),
        (" ", customer),
        ("id", {"id"}),
        *[(fields, {"id", "email"}) for fields in ("id,email", " id , email ", "email,id,id")],
        ("id,nope", {"id"}),
        *[(fields, ()) for fields in ("nope", "ID", "customer", "id.nope")],
        ("password,password_hash,updated_at,billing_city", ()),
        ("billing_address", {"billing_address"}),
        ("billing_address,billing_address.city", {"billing_address"}),
        ("billing_address.city,billing_address", {"billing_address"}),
    ):
        wanted = {name: value for name, value in customer.items() if name in names}
        query = {"fields": fields}
        for path in (f"/customers/{customer['id']}", "/customers/email/ann@example.com"):
            response = admin.get(path, query)
            assert (response.status_code, response.get_json()) == (200, {"customer": wanted}), (
                fields
            )
        for limit in (1, -1):
            response = admin.get("/customers", query | {"filter[limit]": limit})
            assert response.get_json() == {"customers": [wanted]}, fields


def test_fields_selects_one_level_down(admin, make_customer):
    billing, shipping = {"city": "Oslo", "state": "V"}, {"city": "Bergen"}
    addresses = {"billing_address": billing, "shipping_address": shipping}
    customer = make_customer(first_name="Ann", last_name="Lee", **addresses)
    oslo = {"billing_address": {"city": "Oslo"}}
    for fields, wanted in (
        ("billing_address.city", oslo),
        ("billing_address . city", oslo),
        ("billing_address.city,billing_address.nope", oslo),
        ("billing_address.city,billing_address.state", {"billing_address": billing}),
        (
            "shipping_address.city,first_name,billing_address.city",
            {"first_name": "Ann", **oslo, "shipping_address": shipping},
        ),
        ("first_name.x,last_name", {"last_name": "Lee"}),
    ):
        query = {"fields": fields}
        one = admin.get(f"/customers/{customer['id']}", query)
        assert one.get_json() == {"customer": wanted}, fields
        assert admin.get("/customers", query).get_json() == {"customers": [wanted]}, fields


def test_fields_of_no_name_still_list_every_row(admin):
    numbered(admin, 3)
    response = admin.get("/customers", {"fields": "nope"})
    assert (response.get_json(), totals(response)) == ({"customers": [{}, {}, {}]}, ("3", "1"))


# --- statements ---


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    "query",
    [
        "",
        "filter[limit]=-1",
        "filter[role]=all",
        "filter[q]=c",
        "filter[orderby]=total_spent",
        "fields=id",
    ],
)
def test_list_sends_as_many_statements_for_more_records(app, admin, statements, count, query):
    """The total, the ids and the records, however many there are."""
    for customer in numbered(admin, count):
        add_order(app, customer, "1.00")
    statements.clear()
    assert len(listed(admin.get(f"/customers?{query}"))) >= count
    # The first page of a role comes with its total. All of them need no IDs before; a search also
    # reads the numbers of roles. A list by a sum of orders reads whether the totals are up to date,
    # and how many users decide how it is read.
    others = {
        "filter[role]=all": 3,
        "filter[limit]=-1": 2,
        "filter[q]=c": 5,
        "filter[orderby]=total_spent": 8,
    }
    assert len(without_key(statements)) == others.get(query, 1)


def test_count_sends_one_statement(admin, statements):
    numbered(admin, 3)
    statements.clear()
    assert admin.get("/customers/count").get_json() == {"count": 3}
    assert len(without_key(statements)) == 1
