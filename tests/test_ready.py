"""Selects that are kept ready: they answer and fail as they do by way of SQLAlchemy."""

import time

import orjson
import pytest
from sqlalchemy import bindparam, event, select, text
from sqlalchemy.exc import DBAPIError

from app.columns import Ids
from app.functions import is_one_of
from app.models import Coupon, Order, User
from app.reading import fetch, reader
from app.ready import Ready
from app.records import as_printed
from app.services.statistics import COLUMNS
from app.timeouts import took_too_long
from tests.factories import insert_order

TABLES = [model.__table__ for model in (Coupon, User, Order)]


def counting(amount):
    """A select that counts to an amount, row by row."""
    numbers = (
        f"(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {amount}) "
        "SELECT i FROM n) AS numbers"
    )
    return select(text("max(i)")).select_from(text(numbers))


@pytest.fixture
def shop(app, make_coupon, make_customer):
    """Something of each kind, with values and without."""
    make_coupon(code="a", product_ids=[1, 2], expiry_date="2030-12-31", customer_emails=["*@b.io"])
    make_coupon(code="b")
    insert_order(app, customer_id=make_customer()["id"])
    insert_order(app)
    make_customer()


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_rows_are_those_that_sqlalchemy_reads(app, shop, table):
    columns = [*table.c, *map(as_printed, table.c)]
    if table is User.__table__:
        columns += COLUMNS.values()
    statement = select(*columns).where(is_one_of(table.c.id, bindparam("ids", type_=Ids)))
    with app.app_context():
        ids = {"ids": [row[0] for row in fetch(select(table.c.id))]}
        found = [shown(row) for row in fetch(Ready(statement), ids)]
        assert found == [shown(row) for row in fetch(statement, ids)]
        assert len(found) == len(ids["ids"]) > 0


def shown(row):
    """The values of a row with their types; an object that is a text already as what it means."""
    return [
        (type(value), orjson.dumps(value) if isinstance(value, orjson.Fragment) else value)
        for value in row
    ]


def test_parameters_are_taken_anew_each_time(app):
    numbers = iter(range(10))
    computed = bindparam("computed", callable_=lambda: next(numbers), type_=User.id.type)
    given = bindparam("given", type_=User.id.type)
    statement = Ready(select(computed, given, bindparam("fixed", 5)))
    with app.app_context():
        found = [tuple(fetch(statement, {"given": number})[0]) for number in (7, 8)]
    assert found == [(0, 7, 5), (1, 8, 5)]


def test_list_of_any_length_is_refused(app):
    with app.app_context(), pytest.raises(TypeError, match=r"no lists of any length"):
        fetch(Ready(select(User.id).where(User.id.in_([1, 2]))))


def test_parameter_that_is_missing_is_refused(app):
    with app.app_context(), pytest.raises(KeyError, match=r"wanted"):
        fetch(Ready(select(User.id).where(User.id == bindparam("wanted"))))


def test_error_is_the_one_that_sqlalchemy_raises(app):
    wrong = select(text("nonsense"))
    raised = []
    with app.app_context():
        for statement in (wrong, Ready(wrong)):
            with pytest.raises(DBAPIError) as caught:
                fetch(statement)
            raised.append(caught.value)
        assert fetch(Ready(select(text("1"))))[0][0] == 1
    theirs, ours = raised
    assert type(ours) is type(theirs)
    assert type(ours.orig) is type(theirs.orig)
    assert ours.statement == theirs.statement
    assert ours.hide_parameters


def test_statement_that_takes_too_long_is_stopped(make_app):
    app = make_app(SHOP_STATEMENT_TIMEOUT_SECONDS=0.2)
    with app.app_context():
        with pytest.raises(DBAPIError) as caught:
            fetch(Ready(counting(2_000_000_000)))
        assert took_too_long(caught.value)


def test_each_statement_has_its_own_time(make_app):
    app = make_app(SHOP_STATEMENT_TIMEOUT_SECONDS=1)
    some = Ready(counting(200_000))
    with app.app_context():
        assert fetch(some)[0][0] == 200_000
        time.sleep(1.1)
        assert fetch(some)[0][0] == 200_000


def test_who_listens_to_statements_misses_none(app, statements):
    with app.app_context():
        fetch(Ready(select(text("1"))))
    assert statements == ["SELECT 1"]


@pytest.mark.parametrize(
    "name",
    ["before_cursor_execute", "after_cursor_execute", "before_execute", "after_execute"],
)
def test_listener_of_any_kind_hears_of_them(app, name):
    heard = []

    def note(*_):
        heard.append(name)

    with app.app_context():
        engine = reader().engine
        event.listen(engine, name, note)
        try:
            fetch(Ready(select(text("1"))))
        finally:
            event.remove(engine, name, note)
        assert heard == [name]
        fetch(Ready(select(text("1"))))
    assert heard == [name]
