"""Pages of customers with a limit, and streams of them (spec 4.2, decisions 6)."""

import json
from contextlib import closing
from datetime import UTC, datetime

import psycopg
import pytest
from sqlalchemy import event, insert
from sqlalchemy.exc import DBAPIError, OperationalError

from app.db.read_pool import RowStream
from app.db.session import db, run_in_transaction
from app.models import User, UserRole
from app.models.user import role_of, with_normalized
from app.services.customers.columns import BLANK
from tests.api_client import Client
from tests.customers.lists import (
    create_many,
    filtered,
    listed,
    numbered,
    positions,
    set_columns,
    totals,
)
from tests.databases import assert_nothing_is_open

MANY = 1001  # more than a page in memory, and no multiple of a batch


def streamed(client, **keys):
    """The response to a list, without reading its body."""
    return client.http.get(
        "/customers",
        query_string={f"filter[{name}]": value for name, value in keys.items()},
        auth=(client.key.consumer_key, client.key.consumer_secret),
    )


def add_users(app, count):
    """Store many customers without the work of creating them over HTTP."""
    timestamp = datetime(2026, 1, 1, tzinfo=UTC)

    users = [
        with_normalized(BLANK | {"username": f"u{number}", "email": f"u{number}@example.com"})
        | {"created_at": timestamp, "updated_at": timestamp}
        for number in range(count)
    ]

    def work(session):
        ids = session.scalars(insert(User).returning(User.id), users).all()
        roles = [role_of(user_id, "customer", timestamp) for user_id in ids]
        session.execute(insert(UserRole), roles)

    with app.app_context():
        run_in_transaction(work)


# --- pages ---


@pytest.mark.both_databases
def test_page_holds_its_rows_and_the_totals_of_all(admin):
    customers, most = numbered(admin, 12), "9" * 26
    for found, pages, queries in [
        (range(10), 2, ["", "filter[limit]=0", "filter[limit]=", "page=", "filter[nope]=1&nope=2"]),
        (range(1), 12, ["filter[limit]=1"]),
        (range(5), 3, ["filter[limit]=5", "filter[limit]=5&page=1"]),
        (range(12), 1, [f"filter[limit]={limit}" for limit in (12, 1000, 1001, 2**63 - 1, 2**63)]),
        (range(12), 1, [f"filter[limit]={most}", "filter[limit]=-1", "filter[limit]=-1&page=1"]),
        (range(5, 10), 3, ["filter[limit]=5&page=2", "filter[offset]=0&filter[limit]=5&page=2"]),
        (range(10, 12), 3, ["filter[limit]=5&page=3"]),
        (range(10, 12), 2, ["page=2"]),
        ([], 3, ["filter[limit]=5&page=4", f"filter[limit]=5&page={most}"]),
        ([], 1, [f"filter[limit]={most}&page=2", "filter[limit]=-1&page=2"]),
        (range(3, 12), 2, ["filter[offset]=3"]),
        (range(3, 12), 1, ["filter[offset]=3&filter[limit]=-1"]),
        (
            range(3, 8),
            3,
            ["filter[offset]=3&filter[limit]=5", "filter[offset]=3&filter[limit]=5&page=2"],
        ),
        ([], 2, ["filter[offset]=12", f"filter[offset]={most}"]),
    ]:
        for query in queries:
            response = admin.get(f"/customers?{query}")
            assert positions(response, customers) == list(found), query
            assert totals(response) == ("12", str(pages)), query


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


@pytest.mark.slow
@pytest.mark.pooler
def test_long_list_is_written_in_pieces(app, admin):
    add_users(app, MANY)
    with closing(streamed(admin, limit=-1)) as response:
        pieces = list(response.response)
    assert len(pieces) > 2
    assert len(json.loads(b"".join(pieces))["customers"]) == MANY
    assert "Content-Length" not in response.headers


@pytest.mark.sample(1)
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


@pytest.mark.both_databases
@pytest.mark.parametrize("path", ["/orders", "/reports/customers"])
def test_database_is_lost_before_the_first_piece(app, admin, monkeypatch, path):
    """Nothing has been sent, so the response can be an error."""
    (customer,) = create_many(admin, {"email": "ada@example.com"})
    order = {"customer_id": customer["id"], "status": "completed"}
    assert admin.post("/orders", {"order": order}).status_code == 201

    def lose(*_):
        raise OperationalError("SELECT", {}, psycopg.OperationalError("the connection is lost"))

    monkeypatch.setattr(RowStream, "batches", lose)
    response = admin.get(path, {"filter[limit]": -1, "format": "csv"})
    assert response.status_code == 503
    assert response.get_json()["errors"][0]["code"] == "shop_api_unavailable"
    assert_nothing_is_open(app)


@pytest.mark.slow
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


@pytest.mark.slow
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
