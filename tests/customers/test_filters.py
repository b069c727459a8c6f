"""Filters of customer lists: role, search and dates (spec 4.2, decisions 5)."""

from datetime import UTC, datetime
from itertools import product

import pytest
from sqlalchemy import insert

from app.db.session import run_in_transaction
from app.models import User, UserRole
from app.models.user import role_of, with_normalized
from app.services.customers.columns import BLANK
from tests.customers.calls import give_role, refusal
from tests.customers.lists import (
    create_many,
    filtered,
    listed,
    numbered,
    positions,
    set_columns,
    totals,
)

# --- role ---


def test_date_filters_bound_both_sides(admin, dated):
    for name in ["created_at", "updated_at"]:
        within = {f"{name}_min": "2026-01-02T00:00:00Z", f"{name}_max": "2026-01-02T23:59:59Z"}
        assert positions(filtered(admin, **within), dated) == [1, 2], name
        swapped = {f"{name}_min": "2026-01-03", f"{name}_max": "2026-01-02"}
        assert positions(filtered(admin, **swapped), dated) == [], name


@pytest.mark.both_databases
def test_role_selects_the_accounts_that_have_it(app, admin, client_for):
    for login, its_role in [("boss", "shop_manager"), ("cora", "customer"), ("sub", "subscriber")]:
        client_for(its_role, login=login)
    both = client_for("customer", login="both").key.user_id
    give_role(app, both, "shop_manager", 1)
    for role, usernames in [
        (None, ["cora", "both"]),
        ("", ["cora", "both"]),
        ("customer", ["cora", "both"]),
        ("shop_manager", ["boss", "both"]),
        ("administrator", ["administrator"]),
        ("subscriber", ["sub"]),
        ("all", ["administrator", "boss", "cora", "sub", "both"]),
        *[(role, []) for role in ("nobody", "customer,subscriber", "%", "Customer' OR '1'='1")],
    ]:
        query = {} if role is None else {"filter[role]": role}
        response = admin.get("/customers", query)
        assert [customer["username"] for customer in listed(response)] == usernames, role
        assert totals(response) == (str(len(usernames)), "1" if usernames else "0"), role
        counted = admin.get("/customers/count", query).get_json()
        assert counted == {"count": len(usernames)}, role


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
    }
    | {"billing_address": {"city": "Springfield"}},
]
# What each of these searches finds.
SEARCHES = [
    ([0], ["ann", "ANN", "nN.lE", "Ann Lee", "n l", "annlee", "*ann*", "an*lee", "A*N*L*E"]),
    (
        [1],
        ["EXAMPLE.ORG", "bob.x", "Bób", "BÓB", "émile", "Émile", "%", "_", "50%", "50%*org", "_*%"],
    ),
    ([2], ["carl", "ÜNAL", "-smith", "/", "c/d@", "c/*net", "c*/*d*@", "Ü*smith"]),
    ([0, 1, 2], ["example", "*", "**", ""]),
    ([], ["Lee Ann", "bobx", "b%b", "b_b", "//", "\\", "'", '"', "?", "b_b*org", "lee*ann"]),
    ([], [".com*annlee", "annlee*ann", "ann*bob", "springfield", "customer", "zzz"]),
]


@pytest.mark.both_databases
def test_q_searches_email_username_and_names(admin):
    customers = create_many(admin, *PEOPLE)
    for found, q in ((found, q) for found, words in SEARCHES for q in words):
        response = filtered(admin, q=q)
        assert positions(response, customers) == found, q
        assert totals(response) == (str(len(found)), "1" if found else "0"), q
        counted = admin.get("/customers/count", {"filter[q]": q}).get_json()
        assert counted == {"count": len(found)}, q


@pytest.mark.both_databases
def test_q_finds_no_text_that_spans_two_fields(admin):
    create_many(admin, *PEOPLE)
    for q in [
        *("m\x1fa", "e\x1fann", "\x1f", "m\x1f*lee"),
        # What is searched is joined by U+FFFF, for which SQLite takes its neighbours, too.
        *(f"{end}{char}ann lee" for end in ("com", "m", "") for char in "\ufffd\ufffe\uffff"),
        *"\ufffd\ufffe\uffff",
    ]:
        response = filtered(admin, q=q)
        assert listed(response) == [], q
        assert totals(response) == ("0", "0"), q


@pytest.mark.both_databases
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


@pytest.mark.both_databases
def test_q_ignores_case_in_greek(admin):
    """A capital sigma has another small letter at the end of a word than within one."""
    customers = create_many(admin, {"email": "k@example.com", "first_name": "ΚΩΣΤΑΣ"})
    for q in ["ΚΩΣ", "κωσ", "Κωσ", "ΚΩΣΤΑΣ", "κωστας", "ΣΤΑΣ", "κω*στ"]:
        assert listed(filtered(admin, q=q)) == customers, q


@pytest.mark.both_databases
def test_q_knows_what_an_update_changed(admin):
    (customer,) = create_many(admin, PEOPLE[0])
    changes = {"email": "new@example.com", "first_name": "Zoë"}
    edited = admin.put(f"/customers/{customer['id']}", {"customer": changes}).get_json()["customer"]
    assert listed(filtered(admin, q="ann.lee@")) == []
    assert listed(filtered(admin, q="ann lee")) == []
    assert listed(filtered(admin, q="ZOË LEE")) == [edited]
    assert listed(filtered(admin, q="new@")) == [edited]


@pytest.mark.both_databases
def test_q_rejects_a_nul(admin):
    assert refusal(filtered(admin, q="a\0")) == (400, "shop_api_invalid_param", "filter[q]")


# --- dates ---

DAYS = [1, 2, 2, 3]  # of January 2026, at noon


@pytest.fixture
def dated(app, admin):
    """Customers who were registered and modified on DAYS."""
    customers = numbered(admin, len(DAYS))
    for customer, day in zip(customers, DAYS, strict=True):
        timestamp = datetime(2026, 1, day, 12, tzinfo=UTC)
        set_columns(app, customer, created_at=timestamp, updated_at=timestamp)
    return customers


@pytest.mark.both_databases
def test_date_filter_is_inclusive(admin, dated):
    """At or after the minimum, and at or before the maximum."""
    noon, second, before = "2026-01-02T12:00:00", "2026-01-02T12:00:01", "2026-01-02T11:59:59"
    for end, found, values in (
        ("min", [0, 1, 2, 3], ["0001-01-01"]),
        ("min", [1, 2, 3], ["2026-01-02", noon, f"{noon}Z", f"{before}.999Z", "1767355200"]),
        ("min", [1, 2, 3], ["2026-01-02T14:00:00+02:00", "2026-01-02T06:30:00-05:30"]),
        ("min", [3], ["2026-01-03", f"{second}Z", f"{noon}.5Z", "1767355201"]),
        ("min", [3], ["2026-01-02T14:00:01+02:00"]),
        ("min", [], ["2030-01-01"]),
        ("max", [], ["2026-01-01"]),
        ("max", [0], ["2026-01-02", f"{before}Z", "2026-01-02T13:59:59+02:00"]),
        ("max", [0, 1, 2], [f"{noon}Z", f"{noon}.5Z", "2026-01-02T14:00:00+02:00", "1767355200"]),
        ("max", [0, 1, 2, 3], ["9999-12-31T23:59:59Z"]),
    ):
        for value, name in product(values, ("created_at", "updated_at")):
            query = {f"filter[{name}_{end}]": value}
            assert positions(admin.get("/customers", query), dated) == found, (end, value)
            counted = admin.get("/customers/count", query).get_json()
            assert counted == {"count": len(found)}, (end, value)


@pytest.mark.both_databases
def test_date_filter_takes_unix_seconds_near_the_epoch(admin, dated):
    """decisions 6: filters also take Unix seconds."""
    for seconds in ["0", "86400"]:
        assert positions(filtered(admin, created_at_min=seconds), dated) == [0, 1, 2, 3], seconds
        assert positions(filtered(admin, created_at_max=seconds), dated) == [], seconds


def test_date_filter_rejects_what_is_no_date(admin):
    days = (
        "nope",
        "null",
        "2026-02-30",
        "2026-13-01",
        "2026-01-02 or so",
        "2026-01-02\0",
        "9" * 20,
    )
    zones = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-01-02T12:00:00+99:00")
    ends = ("created_at_min", "created_at_max", "updated_at_min", "updated_at_max")
    for value, name in product((*days, *zones, "2026-01-02T25:00:00Z"), ends):
        query = {f"filter[{name}]": value}
        wanted = (400, "shop_api_invalid_param", f"filter[{name}]")
        assert refusal(admin.get("/customers", query)) == wanted, (value, name)
        assert refusal(admin.get("/customers/count", query)) == wanted, (value, name)


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
    timestamp = datetime(2026, 1, 1, tzinfo=UTC)

    def work(session):
        for name, roles in roles_of.items():
            user = with_normalized(BLANK | {"username": name, "email": f"{name}@example.com"})
            user |= {"created_at": timestamp, "updated_at": timestamp}
            user_id = session.scalars(insert(User).returning(User.id), [user]).one()
            for position, role in enumerate(roles):
                row = role_of(user_id, role, timestamp, position)
                session.execute(insert(UserRole), [row])

    with app.app_context():
        run_in_transaction(work)


@pytest.mark.sample(1)
@pytest.mark.both_databases
@pytest.mark.parametrize("without_roles", [True, False])
@pytest.mark.parametrize(
    "q",
    # A case sends a hundred requests. These are a start, and a text that is too short for the index.
    ["ann", "an"]
    + [
        pytest.param(q, marks=pytest.mark.slow)
        for q in ("nn*", "xyz", "ANN.t", "example.com", "ann*one")
    ],
)
def test_search_counts_the_same_in_every_way(app, admin, monkeypatch, q, without_roles):
    """Of the users with a role that few have, or of all users but those without it."""
    add_roles(app, {name: roles for name, roles in ROLES_OF.items() if roles or without_roles})
    for role in "customer", "administrator", "subscriber", "all", "nobody":
        query = {"filter[q]": q, "filter[role]": role}
        found = listed(admin.get("/customers", query | {"filter[limit]": -1}))
        counted = found[:10], str(len(found)), {"count": len(found)}
        for few, others in product([-1, 1, 3, 10_000], [0, 1000]):
            with monkeypatch.context() as patch:
                patch.setattr("app.services.customers.queries._FEW_OTHERS", others)
                for module in "common.plans", "customers.queries":
                    patch.setattr(f"app.services.{module}.FEW", few)
                page = admin.get("/customers", query)
                count = admin.get("/customers/count", query).get_json()
            assert (listed(page), totals(page)[0], count) == counted, (role, few, others)
