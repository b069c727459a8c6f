"""Lists and counts of customers: permissions, fields, statements (spec 4.2, decisions 5, 6)."""

import pytest

from tests.api_client import without_key
from tests.customers.lists import (
    add_order,
    create_many,
    filtered,
    listed,
    numbered,
    refusal,
    totals,
)

# --- the list ---


def test_list_of_no_customers_is_empty(admin):
    response = admin.get("/customers")
    assert (response.status_code, response.get_json()) == (200, {"customers": []})
    assert totals(response) == ("0", "0")
    assert "Link" not in response.headers


def test_list_shows_customers_as_read_does(admin):
    customers = create_many(
        admin,
        {"email": "a@example.com", "first_name": "Ann", "billing_address": {"city": "Oslo"}},
        {"email": "b@example.com", "shipping_address": {"postcode": "0150"}},
    )
    response = admin.get("/customers")
    assert (response.status_code, response.get_json()) == (200, {"customers": customers})
    read = [admin.get(f"/customers/{customer['id']}").get_json() for customer in customers]
    assert read == [{"customer": customer} for customer in customers]
    assert totals(response) == ("2", "1")


def test_list_accepts_a_trailing_slash(admin):
    customers = numbered(admin, 1)
    assert admin.get("/customers/").get_json() == {"customers": customers}
    assert admin.get("/customers/count/").get_json() == {"count": 1}


def test_head_of_the_list_has_the_headers_without_a_body(admin):
    numbered(admin, 3)
    query = {"filter[limit]": 2}
    head = admin.request("HEAD", "/customers", query_string=query)
    get = admin.get("/customers", query)
    assert (head.status_code, head.data) == (200, b"")
    for name in ("X-Total", "X-TotalPages", "Link", "Content-Type", "Content-Length"):
        assert head.headers[name] == get.headers[name]


@pytest.mark.parametrize("role", ["customer", "subscriber"])
@pytest.mark.parametrize("query", [{}, {"filter[role]": "all"}, {"page": 2}, {"filter[limit]": 5}])
def test_list_is_empty_for_a_caller_who_may_not_list_users(client_for, make_customer, role, query):
    client = client_for(role)
    make_customer()
    response = client.get("/customers", query)
    assert (response.status_code, response.get_json()) == (200, {"customers": []})
    assert totals(response) == ("0", "0")


def test_unlimited_list_is_empty_for_a_caller_who_may_not_list_users(client_for, make_customer):
    client = client_for("customer")
    make_customer()
    response = filtered(client, limit=-1)
    assert (response.status_code, response.get_json()) == (200, {"customers": []})
    assert response.headers["X-Total"] == "0"


@pytest.mark.parametrize("role", ["customer", "shop_manager"])
@pytest.mark.parametrize("path", ["/customers", "/customers/count"])
def test_wrong_query_is_rejected_before_the_capability(client_for, role, path):
    response = client_for(role).get(path, {"filter[created_at_min]": "nope"})
    assert refusal(response) == (400, "shop_api_invalid_param", "filter[created_at_min]")


# --- count ---


@pytest.mark.parametrize("role", ["administrator", "shop_manager"])
def test_count_needs_list_users(client_for, make_customer, role):
    client = client_for(role)
    make_customer()
    response = client.get("/customers/count")
    assert (response.status_code, response.get_json()) == (200, {"count": 1})


@pytest.mark.parametrize("role", ["customer", "subscriber"])
def test_count_without_list_users_is_401(client_for, role):
    response = client_for(role).get("/customers/count")
    assert refusal(response) == (401, "shop_api_user_cannot_read_customers_count", None)


@pytest.mark.parametrize(
    "query", ["filter[limit]=1", "filter[limit]=-1", "filter[offset]=2", "filter[order]=desc"]
)
def test_count_ignores_pages(admin, query):
    numbered(admin, 3)
    assert admin.get(f"/customers/count?{query}").get_json() == {"count": 3}


# --- fields ---


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ("id", {"id"}),
        ("id,email", {"id", "email"}),
        (" id , email ", {"id", "email"}),
        ("email,id,id", {"id", "email"}),
        ("nope", set()),
        ("id,nope", {"id"}),
        ("ID", set()),
        ("password,password_hash,updated_at,billing_city", set()),
        ("customer", set()),
        ("id.nope", set()),
        ("billing_address", {"billing_address"}),
    ],
)
def test_fields_selects_fields_of_every_get(admin, make_customer, fields, names):
    customer = make_customer(email="ann@example.com")
    wanted = {name: value for name, value in customer.items() if name in names}
    query = {"fields": fields}
    for path in (f"/customers/{customer['id']}", "/customers/email/ann@example.com"):
        response = admin.get(path, query)
        assert (response.status_code, response.get_json()) == (200, {"customer": wanted})
    for limit in (1, -1):
        response = admin.get("/customers", query | {"filter[limit]": limit})
        assert (response.status_code, response.get_json()) == (200, {"customers": [wanted]})


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ("billing_address.city", {"billing_address": {"city": "Oslo"}}),
        ("billing_address . city", {"billing_address": {"city": "Oslo"}}),
        (
            "billing_address.city,billing_address.state",
            {"billing_address": {"city": "Oslo", "state": "V"}},
        ),
        (
            "shipping_address.city,first_name,billing_address.city",
            {
                "first_name": "Ann",
                "billing_address": {"city": "Oslo"},
                "shipping_address": {"city": "Bergen"},
            },
        ),
        ("first_name.x,last_name", {"last_name": "Lee"}),
        ("billing_address.city,billing_address.nope", {"billing_address": {"city": "Oslo"}}),
    ],
)
def test_fields_selects_one_level_down(admin, make_customer, fields, wanted):
    customer = make_customer(
        first_name="Ann",
        last_name="Lee",
        billing_address={"city": "Oslo", "state": "V"},
        shipping_address={"city": "Bergen"},
    )
    query = {"fields": fields}
    one = admin.get(f"/customers/{customer['id']}", query)
    assert one.get_json() == {"customer": wanted}
    assert admin.get("/customers", query).get_json() == {"customers": [wanted]}


@pytest.mark.parametrize("query", ["", "fields=", "fields=%20"])
def test_fields_that_are_empty_select_all(admin, make_customer, query):
    customer = make_customer()
    response = admin.get(f"/customers/{customer['id']}?{query}")
    assert response.get_json() == {"customer": customer}
    assert admin.get(f"/customers?{query}").get_json() == {"customers": [customer]}


@pytest.mark.parametrize(
    "fields", ["billing_address,billing_address.city", "billing_address.city,billing_address"]
)
def test_fields_of_a_parent_and_its_part_select_the_whole_parent(admin, make_customer, fields):
    customer = make_customer(billing_address={"city": "Oslo"})
    response = admin.get(f"/customers/{customer['id']}", {"fields": fields})
    assert response.get_json() == {"customer": {"billing_address": customer["billing_address"]}}


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
def test_list_sends_three_statements(app, admin, statements, count, query):
    """The total, the ids and the records, however many there are."""
    for customer in numbered(admin, count):
        add_order(app, customer, "1.00")
    statements.clear()
    assert len(listed(admin.get(f"/customers?{query}"))) >= count
    # All of them need no IDs before; a search also reads the numbers of roles. A list by a sum of
    # orders reads whether the totals are up to date, and how many users decide how it is read.
    others = {"filter[limit]=-1": 2, "filter[q]=c": 5, "filter[orderby]=total_spent": 8}
    assert len(without_key(statements)) == others.get(query, 3)


def test_count_sends_one_statement(admin, statements):
    numbered(admin, 3)
    statements.clear()
    assert admin.get("/customers/count").get_json() == {"count": 3}
    assert len(without_key(statements)) == 1
