"""Lists and counts of customers: filters, order, pages, headers, streams (spec 4.2, decisions 5, 6)."""

import json
import re
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product
from urllib.parse import parse_qsl, urlsplit
from uuid import uuid4

import pytest
from conftest import Client, assert_nothing_is_open, without_key
from sqlalchemy import event, insert, update
from sqlalchemy.exc import DBAPIError

from app.db.session import db, run_in_transaction
from app.db.types import Json
from app.models import Order, User, UserRole
from app.models.user import role_of, with_normalized
from app.services.customer_records import BLANK

MANY = 1001  # more than a page in memory, and no multiple of a batch


def listed(response):
    assert response.status_code == 200, response.get_json()
    assert set(response.get_json()) == {"customers"}
    return response.get_json()["customers"]


def filtered(client, **keys):
    return client.get("/customers", {f"filter[{name}]": value for name, value in keys.items()})


def streamed(client, **keys):
    """The response to a list, without reading its body."""
    return client.http.get(
        "/customers",
        query_string={f"filter[{name}]": value for name, value in keys.items()},
        auth=(client.key.consumer_key, client.key.consumer_secret),
    )


def totals(response):
    return response.headers["X-Total"], response.headers["X-TotalPages"]


def links(response):
    """The relations of the one Link header, each with the query of its absolute URL."""
    found = re.findall(r'<([^>]*)>; rel="(\w+)"', response.headers.get("Link", ""))
    assert len(response.headers.get_all("Link")) == bool(found)
    assert all(url.startswith("http://localhost/customers?") for url, _ in found)
    return {relation: dict(parse_qsl(urlsplit(url).query)) for url, relation in found}


def refusal(response):
    (entry,) = response.get_json()["errors"]
    return response.status_code, entry["code"], entry.get("param")


def create_many(client, *customers):
    """Create customers in one request and return them as the API does."""
    results = client.post("/customers/bulk", {"customers": customers}).get_json()["customers"]
    assert not [result for result in results if "error" in result]
    return results


def numbered(client, count):
    return create_many(client, *({"email": f"c{number}@example.com"} for number in range(count)))


def positions(response, customers):
    """Where the customers of a list stand among the ones that the test created."""
    places = {customer["id"]: place for place, customer in enumerate(customers)}
    return [places[customer["id"]] for customer in listed(response)]


def set_columns(app, customer, **columns):
    this = update(User).where(User.id == customer["id"])
    with app.app_context():
        run_in_transaction(lambda session: session.execute(this.values(**columns)))


def add_users(app, count):
    """Store many customers without the work of creating them over HTTP."""
    moment = datetime(2026, 1, 1, tzinfo=UTC)

    users = [
        with_normalized(BLANK | {"username": f"u{number}", "email": f"u{number}@example.com"})
        | {"created_at": moment, "updated_at": moment}
        for number in range(count)
    ]

    def work(session):
        ids = session.scalars(insert(User).returning(User.id), users).all()
        roles = [role_of(user_id, "customer", moment) for user_id in ids]
        session.execute(insert(UserRole), roles)

    with app.app_context():
        run_in_transaction(work)


def add_order(app, customer, total):
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    columns = Order.__table__.c
    values = {name: "" for name, column in columns.items() if column.type.python_type is str}
    values |= {name: [] for name, column in columns.items() if isinstance(column.type, Json)}
    for name in ("subtotal", "cart_tax", "shipping_tax", "total_shipping", "total_discount"):
        values[name] = Decimal(0)
    values |= {
        "status": "completed",
        "payment_paid": True,
        "created_at": moment,
        "updated_at": moment,
    }
    values |= {"customer_id": customer["id"], "total": Decimal(total), "order_key": uuid4().hex}
    with app.app_context():
        run_in_transaction(lambda session: session.add(Order(**values)))


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


@pytest.mark.one_database
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


# --- role ---


@pytest.mark.parametrize(
    ("role", "usernames"),
    [
        (None, ["cora", "both"]),
        ("", ["cora", "both"]),
        ("customer", ["cora", "both"]),
        ("shop_manager", ["boss", "both"]),
        ("administrator", ["administrator"]),
        ("subscriber", ["sub"]),
        ("all", ["administrator", "boss", "cora", "sub", "both"]),
        ("nobody", []),
        ("customer,subscriber", []),
        ("%", []),
        ("Customer' OR '1'='1", []),
    ],
)
def test_role_selects_the_accounts_that_have_it(app, admin, client_for, role, usernames):
    for login, its_role in [("boss", "shop_manager"), ("cora", "customer"), ("sub", "subscriber")]:
        client_for(its_role, login=login)
    both = client_for("customer", login="both").key.user_id
    with app.app_context():

        def give(session):
            row = role_of(both, "shop_manager", session.get_one(User, both).created_at)
            session.add(UserRole(**row | {"position": 1}))

        run_in_transaction(give)
    query = {} if role is None else {"filter[role]": role}
    response = admin.get("/customers", query)
    assert [customer["username"] for customer in listed(response)] == usernames
    assert totals(response) == (str(len(usernames)), "1" if usernames else "0")
    assert admin.get("/customers/count", query).get_json() == {"count": len(usernames)}


# --- q ---

PEOPLE = [
    {"email": "ann.lee@example.com", "username": "annlee", "first_name": "Ann", "last_name": "Lee"},
    {
        "email": "bob_50%@example.org",
        "username": "bob.x",
        "first_name": "Bób",
        "last_name": "ÉMILE",
    },
    {
        "email": "c/d@example.net",
        "username": "carl",
        "first_name": "Carl",
        "last_name": "Ünal-Smith",
        "billing_address": {"city": "Springfield"},
    },
]
SEARCHES = [
    ("ann", [0]),
    ("ANN", [0]),
    ("nN.lE", [0]),
    ("Ann Lee", [0]),
    ("n l", [0]),
    ("Lee Ann", []),
    ("annlee", [0]),
    ("example", [0, 1, 2]),
    ("EXAMPLE.ORG", [1]),
    ("carl", [2]),
    ("bob.x", [1]),
    ("bobx", []),
    ("Bób", [1]),
    ("BÓB", [1]),
    ("émile", [1]),
    ("Émile", [1]),
    ("ÜNAL", [2]),
    ("-smith", [2]),
    ("%", [1]),
    ("_", [1]),
    ("50%", [1]),
    ("b%b", []),
    ("b_b", []),
    ("/", [2]),
    ("c/d@", [2]),
    ("//", []),
    ("\\", []),
    ("'", []),
    ('"', []),
    ("?", []),
    ("*", [0, 1, 2]),
    ("**", [0, 1, 2]),
    ("*ann*", [0]),
    ("an*lee", [0]),
    ("A*N*L*E", [0]),
    ("50%*org", [1]),
    ("_*%", [1]),
    ("b_b*org", []),
    ("c/*net", [2]),
    ("c*/*d*@", [2]),
    ("Ü*smith", [2]),
    ("lee*ann", []),
    (".com*annlee", []),
    ("annlee*ann", []),
    ("ann*bob", []),
    ("springfield", []),
    ("customer", []),
    ("zzz", []),
    ("", [0, 1, 2]),
]


@pytest.mark.parametrize(("q", "found"), SEARCHES)
def test_q_searches_email_username_and_names(admin, q, found):
    customers = create_many(admin, *PEOPLE)
    response = filtered(admin, q=q)
    assert positions(response, customers) == found
    assert totals(response) == (str(len(found)), "1" if found else "0")
    assert admin.get("/customers/count", {"filter[q]": q}).get_json() == {"count": len(found)}


@pytest.mark.parametrize(
    "q",
    [
        *("m\x1fa", "e\x1fann", "\x1f", "m\x1f*lee"),
        # What is searched is joined by U+FFFF, for which SQLite takes its neighbours, too.
        *(f"{end}{char}ann lee" for end in ("com", "m", "") for char in "\ufffd\ufffe\uffff"),
        *"\ufffd\ufffe\uffff",
    ],
)
def test_q_finds_no_text_that_spans_two_fields(admin, q):
    create_many(admin, *PEOPLE)
    response = filtered(admin, q=q)
    assert listed(response) == []
    assert totals(response) == ("0", "0")


@pytest.mark.parametrize("char", "\ufffd\ufffe")
@pytest.mark.parametrize("around", ["{}", "a{}", "ada{}x", "{}{}"])
def test_q_finds_a_neighbour_of_the_separator_and_no_other(admin, char, around):
    other = {"\ufffd": "\ufffe", "\ufffe": "\ufffd"}[char]
    wanted, _ = create_many(
        admin,
        {"email": "a@example.com", "first_name": f"Ada{char}x{char}{char}"},
        {"email": "b@example.com", "first_name": f"Ada{other}x{other}{other}"},
    )
    response = filtered(admin, q=around.replace("{}", char))
    assert listed(response) == [wanted]
    assert totals(response) == ("1", "1")


@pytest.mark.parametrize("q", ["ΚΩΣ", "κωσ", "Κωσ", "ΚΩΣΤΑΣ", "κωστας", "ΣΤΑΣ", "κω*στ"])
def test_q_ignores_case_in_greek(admin, q):
    """A capital sigma has another small letter at the end of a word than within one."""
    customers = create_many(admin, {"email": "k@example.com", "first_name": "ΚΩΣΤΑΣ"})
    assert listed(filtered(admin, q=q)) == customers


def test_q_knows_what_an_update_changed(admin):
    (customer,) = create_many(admin, PEOPLE[0])
    changes = {"email": "new@example.com", "first_name": "Zoë"}
    edited = admin.put(f"/customers/{customer['id']}", {"customer": changes}).get_json()["customer"]
    assert listed(filtered(admin, q="ann.lee@")) == []
    assert listed(filtered(admin, q="ann lee")) == []
    assert listed(filtered(admin, q="ZOË LEE")) == [edited]
    assert listed(filtered(admin, q="new@")) == [edited]


def test_q_rejects_a_nul(admin):
    assert refusal(filtered(admin, q="a\0")) == (400, "shop_api_invalid_param", "filter[q]")


# --- dates ---

DAYS = [1, 2, 2, 3]  # of January 2026, at noon
DATES = [
    ("min", "2026-01-02", [1, 2, 3]),
    ("min", "2026-01-03", [3]),
    ("min", "2026-01-02T12:00:00Z", [1, 2, 3]),
    ("min", "2026-01-02T12:00:01Z", [3]),
    ("min", "2026-01-02T12:00:00", [1, 2, 3]),
    ("min", "2026-01-02T12:00:00.5Z", [3]),
    ("min", "2026-01-02T11:59:59.999Z", [1, 2, 3]),
    ("min", "2026-01-02T14:00:00+02:00", [1, 2, 3]),
    ("min", "2026-01-02T14:00:01+02:00", [3]),
    ("min", "2026-01-02T06:30:00-05:30", [1, 2, 3]),
    ("min", "1767355200", [1, 2, 3]),
    ("min", "1767355201", [3]),
    ("min", "2030-01-01", []),
    ("min", "0001-01-01", [0, 1, 2, 3]),
    ("max", "2026-01-02", [0]),
    ("max", "2026-01-01", []),
    ("max", "2026-01-02T12:00:00Z", [0, 1, 2]),
    ("max", "2026-01-02T11:59:59Z", [0]),
    ("max", "2026-01-02T12:00:00.5Z", [0, 1, 2]),
    ("max", "2026-01-02T14:00:00+02:00", [0, 1, 2]),
    ("max", "2026-01-02T13:59:59+02:00", [0]),
    ("max", "1767355200", [0, 1, 2]),
    ("max", "9999-12-31T23:59:59Z", [0, 1, 2, 3]),
]


@pytest.fixture
def dated(app, admin):
    """Customers who were registered and modified on DAYS."""
    customers = numbered(admin, len(DAYS))
    for customer, day in zip(customers, DAYS, strict=True):
        moment = datetime(2026, 1, day, 12, tzinfo=UTC)
        set_columns(app, customer, created_at=moment, updated_at=moment)
    return customers


@pytest.mark.parametrize(("end", "value", "found"), DATES)
def test_date_filter_is_inclusive(admin, dated, end, value, found):
    for name in ("created_at", "updated_at"):
        query = {f"filter[{name}_{end}]": value}
        assert positions(admin.get("/customers", query), dated) == found
        assert admin.get("/customers/count", query).get_json() == {"count": len(found)}


@pytest.mark.parametrize("name", ["created_at", "updated_at"])
def test_date_filters_bound_both_sides(admin, dated, name):
    within = {f"{name}_min": "2026-01-02T00:00:00Z", f"{name}_max": "2026-01-02T23:59:59Z"}
    assert positions(filtered(admin, **within), dated) == [1, 2]
    swapped = {f"{name}_min": "2026-01-03", f"{name}_max": "2026-01-02"}
    assert positions(filtered(admin, **swapped), dated) == []


@pytest.mark.parametrize("seconds", ["0", "86400"])
def test_date_filter_takes_unix_seconds_near_the_epoch(admin, dated, seconds):
    """decisions 6: filters also take Unix seconds."""
    assert positions(filtered(admin, created_at_min=seconds), dated) == [0, 1, 2, 3]
    assert positions(filtered(admin, created_at_max=seconds), dated) == []


@pytest.mark.one_database
@pytest.mark.parametrize(
    "value",
    [
        "nope",
        "2026-02-30",
        "2026-13-01",
        "2026-01-02T25:00:00Z",
        "2026-01-02T12:00:00+99:00",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "99999999999999999999",
        "2026-01-02 or so",
        "2026-01-02\0",
        "null",
    ],
)
def test_date_filter_rejects_what_is_no_date(admin, value):
    for name in ("created_at_min", "created_at_max", "updated_at_min", "updated_at_max"):
        query = {f"filter[{name}]": value}
        wanted = (400, "shop_api_invalid_param", f"filter[{name}]")
        assert refusal(admin.get("/customers", query)) == wanted
        assert refusal(admin.get("/customers/count", query)) == wanted


# --- order ---

SORTED_PEOPLE = [
    {
        "email": "delta@example.com",
        "username": "bravo",
        "first_name": "Dora",
        "last_name": "Young",
        "billing_address": {"city": "Oslo", "postcode": "9"},
    },
    {
        "email": "alpha@example.com",
        "username": "delta",
        "first_name": "Cara",
        "last_name": "Xu",
        "billing_address": {"city": "Bergen", "postcode": "100"},
    },
    {
        "email": "Charlie@example.com",
        "username": "Alpha",
        "first_name": "Cara",
        "last_name": "Xu",
        "billing_address": {"city": "Bergen", "postcode": "100"},
    },
    {
        "email": "bravo@example.com",
        "username": "charlie",
        "first_name": "Anna",
        "last_name": "Zorn",
        "billing_address": {"postcode": "20 b"},
    },
]
ASCENDING = [
    ({}, [1, 2, 3, 0]),
    ({"orderby": "registered"}, [1, 2, 3, 0]),
    ({"orderby": "id"}, [0, 1, 2, 3]),
    ({"orderby": "email"}, [1, 3, 2, 0]),
    ({"orderby": "login"}, [2, 0, 3, 1]),
    ({"orderby": "username"}, [2, 0, 3, 1]),
    ({"orderby": "name"}, [3, 1, 2, 0]),
    ({"orderby": "first_name"}, [3, 1, 2, 0]),
    ({"orderby": "last_name"}, [1, 2, 0, 3]),
    ({"orderby": "modified"}, [1, 2, 0, 3]),
    ({"orderby": "orders_count"}, [3, 0, 1, 2]),
    ({"orderby": "total_spent"}, [3, 1, 2, 0]),
    ({"orderby": "meta_value", "orderby_meta_key": "billing_city"}, [3, 1, 2, 0]),
    ({"orderby": "meta_value", "orderby_meta_key": "billing_postcode"}, [1, 2, 3, 0]),
    ({"orderby": "meta_value", "orderby_meta_key": "last_name"}, [1, 2, 0, 3]),
    ({"orderby": "meta_value_num", "orderby_meta_key": "billing_postcode"}, [0, 3, 1, 2]),
    ({"orderby": "meta_value", "orderby_meta_key": "shipping_city"}, [0, 1, 2, 3]),
    ({"orderby": "meta_value_num", "orderby_meta_key": "shipping_city"}, [0, 1, 2, 3]),
    ({"orderby_meta_key": "billing_city"}, [1, 2, 3, 0]),
]


@pytest.fixture
def sortable(app, admin):
    """Four customers; 1 and 2 are equal in whatever need not be unique."""
    customers = create_many(admin, *SORTED_PEOPLE)
    for customer, created, modified in zip(customers, [3, 1, 1, 2], [2, 1, 1, 3], strict=True):
        set_columns(
            app,
            customer,
            created_at=datetime(2026, 1, created, tzinfo=UTC),
            updated_at=datetime(2026, 2, modified, tzinfo=UTC),
        )
    for place, total in [(0, "5.00"), (1, "1.00"), (1, "1.00"), (2, "0.50"), (2, "1.50")]:
        add_order(app, customers[place], total)
    return customers


@pytest.mark.parametrize(("keys", "ascending"), ASCENDING)
def test_orderby_sorts_in_both_directions_and_pages_never_overlap(admin, sortable, keys, ascending):
    """Ties break by id in the same direction, so descending is ascending backwards."""
    for order in ({}, {"order": "asc"}, {"order": "ASC"}):
        assert positions(filtered(admin, **keys, **order), sortable) == ascending
    for order in ("desc", "DESC", "Desc"):
        descending = positions(filtered(admin, **keys, order=order), sortable)
        assert descending == ascending[::-1]
    for order, wanted in (("asc", ascending), ("desc", ascending[::-1])):
        pages = [
            positions(filtered(admin, **keys, order=order, limit=1, offset=offset), sortable)
            for offset in range(4)
        ]
        assert pages == [[place] for place in wanted]


PARTS = (
    "first_name",
    "last_name",
    "company",
    "address_1",
    "address_2",
    "city",
    "state",
    "postcode",
    "country",
)
META_KEYS = [
    "first_name",
    "last_name",
    *(f"billing_{part}" for part in [*PARTS, "email", "phone"]),
    *(f"shipping_{part}" for part in PARTS),
]


@pytest.mark.parametrize("key", META_KEYS)
def test_orderby_meta_value_takes_every_name_and_address_part(admin, key):
    side, _, part = key.partition("_")
    late, early = (
        {f"{side}_address": {part: value}} if side in {"billing", "shipping"} else {key: value}
        for value in ("2", "1")
    )
    customers = create_many(
        admin, late | {"email": "late@example.com"}, early | {"email": "early@example.com"}
    )
    for orderby in ("meta_value", "meta_value_num"):
        response = filtered(admin, orderby=orderby, orderby_meta_key=key)
        assert positions(response, customers) == [1, 0]


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("keys", "param"),
    [
        ({"orderby": "nope"}, "filter[orderby]"),
        ({"orderby": "password_hash"}, "filter[orderby]"),
        ({"orderby": "billing_city"}, "filter[orderby]"),
        ({"orderby": "id;"}, "filter[orderby]"),
        ({"order": "up"}, "filter[order]"),
        ({"order": "asc,desc"}, "filter[order]"),
        ({"orderby": "meta_value"}, "filter[orderby_meta_key]"),
        ({"orderby": "meta_value_num"}, "filter[orderby_meta_key]"),
        ({"orderby": "meta_value", "orderby_meta_key": ""}, "filter[orderby_meta_key]"),
        ({"orderby": "meta_value", "orderby_meta_key": "nope"}, "filter[orderby_meta_key]"),
        (
            {"orderby": "meta_value", "orderby_meta_key": "shipping_phone"},
            "filter[orderby_meta_key]",
        ),
        ({"orderby": "meta_value", "orderby_meta_key": "email"}, "filter[orderby_meta_key]"),
    ],
)
def test_order_that_is_unknown_is_rejected(admin, keys, param):
    assert refusal(filtered(admin, **keys)) == (400, "shop_api_invalid_param", param)


# --- pages ---


@pytest.mark.parametrize(
    ("query", "found", "pages"),
    [
        ("", range(10), "2"),
        ("filter[limit]=0", range(10), "2"),
        ("filter[limit]=", range(10), "2"),
        ("filter[limit]=1", range(1), "12"),
        ("filter[limit]=5", range(5), "3"),
        ("filter[limit]=12", range(12), "1"),
        ("filter[limit]=1000", range(12), "1"),
        ("filter[limit]=1001", range(12), "1"),
        ("filter[limit]=9223372036854775807", range(12), "1"),
        ("filter[limit]=9223372036854775808", range(12), "1"),
        ("filter[limit]=99999999999999999999999999", range(12), "1"),
        ("filter[limit]=-1", range(12), "1"),
        ("filter[limit]=5&page=1", range(5), "3"),
        ("filter[limit]=5&page=2", range(5, 10), "3"),
        ("filter[limit]=5&page=3", range(10, 12), "3"),
        ("filter[limit]=5&page=4", [], "3"),
        ("filter[limit]=5&page=99999999999999999999999999", [], "3"),
        ("filter[limit]=99999999999999999999&page=2", [], "1"),
        ("page=2", range(10, 12), "2"),
        ("page=", range(10), "2"),
        ("filter[limit]=-1&page=1", range(12), "1"),
        ("filter[limit]=-1&page=2", [], "1"),
        ("filter[offset]=3", range(3, 12), "2"),
        ("filter[offset]=3&filter[limit]=5", range(3, 8), "3"),
        ("filter[offset]=3&filter[limit]=5&page=2", range(3, 8), "3"),
        ("filter[offset]=0&filter[limit]=5&page=2", range(5, 10), "3"),
        ("filter[offset]=3&filter[limit]=-1", range(3, 12), "1"),
        ("filter[offset]=12", [], "2"),
        ("filter[offset]=99999999999999999999999999", [], "2"),
        ("filter[nope]=1&nope=2&filter=3", range(10), "2"),
    ],
)
def test_page_holds_its_rows_and_the_totals_of_all(admin, query, found, pages):
    customers = numbered(admin, 12)
    response = admin.get(f"/customers?{query}")
    assert positions(response, customers) == list(found)
    assert totals(response) == ("12", pages)


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("page=0", "page"),
        ("page=-1", "page"),
        ("page=x", "page"),
        ("page=1.5", "page"),
        ("page=1e1", "page"),
        ("filter[limit]=-2", "filter[limit]"),
        ("filter[limit]=x", "filter[limit]"),
        ("filter[limit]=1.5", "filter[limit]"),
        ("filter[limit]=%00", "filter[limit]"),
        ("filter[offset]=-1", "filter[offset]"),
        ("filter[offset]=x", "filter[offset]"),
    ],
)
def test_page_that_is_not_a_number_is_rejected(admin, query, param):
    response = admin.get(f"/customers?{query}")
    assert refusal(response) == (400, "shop_api_invalid_param", param)


def test_wrong_parameters_are_reported_together(admin):
    response = admin.get("/customers?page=0&filter[limit]=x&filter[orderby]=nope")
    params = sorted(entry["param"] for entry in response.get_json()["errors"])
    assert (response.status_code, params) == (400, ["filter[limit]", "filter[orderby]", "page"])


def test_page_size_is_the_setting_of_the_shop(admin, client_with):
    customers = numbered(admin, 3)
    response = client_with(SHOP_PAGE_SIZE=2).get("/customers")
    assert positions(response, customers) == [0, 1]
    assert totals(response) == ("3", "2")


def test_unlimited_list_of_nothing_has_one_page(admin):
    """spec 4.2: total pages = ceil(total / page size), or 1 when `limit` is -1."""
    response = filtered(admin, limit=-1)
    assert (response.get_json(), totals(response)) == ({"customers": []}, ("0", "1"))


def test_list_is_sorted_before_it_is_cut_into_pages(app, admin):
    customers = numbered(admin, 4)
    for customer, day in zip(customers, [9, 8, 7, 6], strict=True):
        set_columns(app, customer, created_at=datetime(2026, 1, day, tzinfo=UTC))
    assert positions(filtered(admin, limit=2), customers) == [3, 2]
    assert positions(filtered(admin, limit=2, offset=2), customers) == [1, 0]


# --- links ---


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("query", "targets"),
    [
        ("filter[limit]=10", {}),
        ("filter[limit]=-1", {}),
        ("filter[limit]=2", {"next": "2", "last": "3"}),
        ("filter[limit]=2&page=2", {"first": "1", "prev": "1", "next": "3", "last": "3"}),
        ("filter[limit]=2&page=3", {"first": "1", "prev": "2"}),
        ("filter[limit]=2&page=5", {"first": "1", "prev": "4", "last": "3"}),
    ],
)
def test_link_header_names_the_pages_that_apply(admin, query, targets):
    numbered(admin, 5)
    response = admin.get(f"/customers?{query}")
    kept = dict(parse_qsl(query))
    assert links(response) == {rel: kept | {"page": page} for rel, page in targets.items()}


def test_link_header_keeps_the_other_parameters(admin):
    create_many(admin, {"email": "ö&+1@example.com"}, {"email": "ö&+2@example.com"})
    query = {
        "filter[q]": "ö&+*@",
        "filter[limit]": "1",
        "filter[role]": "all",
        "filter[created_at_min]": "2001-01-01T00:00:00+02:00",
        "filter[order]": "desc",
        "fields": "id,billing_address.city",
        "unknown": "x y",
    }
    response = admin.get("/customers", query)
    assert links(response) == {rel: query | {"page": "2"} for rel in ("next", "last")}


def test_link_header_leads_through_all_pages(admin):
    customers = numbered(admin, 5)
    url, seen = "/customers?filter[limit]=2", []
    while url:
        response = admin.get(url)
        seen += listed(response)
        following = re.search(r'<([^>]*)>; rel="next"', response.headers.get("Link", ""))
        url = following and following[1]
    assert seen == customers


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


# --- streams ---


@pytest.mark.pooler
def test_long_list_is_the_same_as_its_pages(app, admin):
    add_users(app, MANY)
    pages = [listed(admin.get(f"/customers?filter[limit]=500&page={page}")) for page in (1, 2, 3)]
    assert [len(page) for page in pages] == [500, 500, 1]
    for limit in (-1, 5000):
        response = filtered(admin, limit=limit)
        assert listed(response) == [row for page in pages for row in page]
        assert totals(response) == (str(MANY), "1")


@pytest.mark.pooler
def test_long_list_is_written_in_pieces(app, admin):
    add_users(app, MANY)
    with closing(streamed(admin, limit=-1)) as response:
        pieces = list(response.response)
    assert len(pieces) > 2
    assert len(json.loads(b"".join(pieces))["customers"]) == MANY
    assert "Content-Length" not in response.headers


@pytest.mark.parametrize("count", [1, 500, 501])
@pytest.mark.pooler
def test_long_list_of_any_length_is_valid_json(app, admin, count):
    add_users(app, count)
    response = filtered(admin, limit=-1)
    assert response.content_type == "application/json"
    assert len(json.loads(response.data)["customers"]) == count
    assert response.headers["X-Total"] == str(count)


@pytest.mark.pooler
def test_long_list_that_fails_in_the_middle_is_truncated(app, make_app, admin):
    """A connection that breaks must not look like the end of the list."""
    add_users(app, MANY)
    client = Client(make_app(), admin.key)
    with client.app.app_context():
        engine = db.engines["stream"]
    taken = []
    event.listen(engine, "checkout", lambda connection, *_: taken.append(connection))
    with closing(streamed(client, limit=-1)) as response:
        pieces = iter(response.response)
        written = next(pieces)
        taken[-1].close()
        with pytest.raises(DBAPIError):
            written += b"".join(pieces)
    assert response.status_code == 200
    assert written.startswith(b'{"customers":[{"id":')
    with pytest.raises(json.JSONDecodeError):
        json.loads(written)


@pytest.mark.pooler
def test_long_list_whose_reader_goes_away_gives_the_connection_back(app, admin):
    add_users(app, MANY)
    with closing(streamed(admin, limit=-1)) as response:
        assert next(iter(response.response)).startswith(b'{"customers":[{"id":')
    assert_nothing_is_open(app)


@pytest.mark.pooler
def test_head_of_a_long_list_gives_the_connection_back(app, admin):
    add_users(app, MANY)
    query = {"filter[limit]": -1}
    with closing(admin.request("HEAD", "/customers", query_string=query)) as response:
        assert (response.status_code, response.data) == (200, b"")
    assert totals(response) == (str(MANY), "1")
    assert_nothing_is_open(app)


@pytest.mark.pooler
def test_long_list_is_one_snapshot(app, admin):
    add_users(app, MANY)
    with closing(streamed(admin, limit=-1, orderby="id")) as response:
        pieces = iter(response.response)
        written = next(pieces)
        (late,) = create_many(type(admin)(app, admin.key), {"email": "late@example.com"})
        written += b"".join(pieces)
    ids = [customer["id"] for customer in json.loads(written)["customers"]]
    assert len(ids) == MANY
    assert late["id"] not in ids


# --- totals of searches that find many ---

ROLES_OF = {
    "ann.one": ["customer"],
    "ann.two": ["customer"],
    "ann.three": ["customer", "subscriber"],
    "ann.four": ["administrator"],
    "ann.five": ["administrator", "shop_manager"],
    "ann.six": [],
    "bob": ["customer"],
    "ben": ["subscriber"],
}


def add_roles(app, roles_of):
    moment = datetime(2026, 1, 1, tzinfo=UTC)

    def work(session):
        for name, roles in roles_of.items():
            user = with_normalized(BLANK | {"username": name, "email": f"{name}@example.com"})
            user |= {"created_at": moment, "updated_at": moment}
            user_id = session.scalars(insert(User).returning(User.id), [user]).one()
            for position, role in enumerate(roles):
                row = role_of(user_id, role, moment) | {"position": position}
                session.execute(insert(UserRole), [row])

    with app.app_context():
        run_in_transaction(work)


@pytest.mark.parametrize("without_roles", [True, False])
@pytest.mark.parametrize("q", ["ann", "ANN.t", "example.com", "nn*", "ann*one", "xyz", "an"])
def test_search_counts_the_same_in_every_way(app, admin, monkeypatch, q, without_roles):
    """Of the users with a role that few have, or of all users but those without it."""
    add_roles(app, {name: roles for name, roles in ROLES_OF.items() if roles or without_roles})
    for role in "customer", "administrator", "subscriber", "all", "nobody":
        query = {"filter[q]": q, "filter[role]": role}
        found = listed(admin.get("/customers", query | {"filter[limit]": -1}))
        counted = found[:10], str(len(found)), {"count": len(found)}, str(len(found))
        for is_frequent, few in product([False, True], [0, 1, 3, 1000]):
            with monkeypatch.context() as patch:
                if is_frequent:
                    patch.setattr("app.services.customer_queries.FEW_FOUND", -1)
                patch.setattr("app.services.pagination.FEW", few)
                patch.setattr("app.services.pagination.FEW_FOUND", few)
                page = admin.get("/customers", query)
                count = admin.get("/customers/count", query).get_json()
                seen = listed(page), totals(page)[0], count
                patch.setattr("app.services.customer_queries.FEW", few)
                seen += (totals(admin.get("/customers", query))[0],)
            assert seen == counted, (role, is_frequent, few)


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
    # All of them need no IDs before; a search also reads the numbers of roles.
    assert len(without_key(statements)) == {"filter[limit]=-1": 2, "filter[q]=c": 4}.get(query, 3)


def test_count_sends_one_statement(admin, statements):
    numbered(admin, 3)
    statements.clear()
    assert admin.get("/customers/count").get_json() == {"count": 3}
    assert len(without_key(statements)) == 1
