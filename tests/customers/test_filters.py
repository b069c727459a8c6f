"""Filters of customer lists: role and search (spec 4.2, decisions 5)."""

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
    positions,
    totals,
)

# --- role ---


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
