"""Sums of the orders of each customer: after any write, they equal the orders."""

import random
from collections import Counter
from decimal import Decimal
from functools import partial

import pytest
from flask_migrate import downgrade, upgrade
from sqlalchemy import delete, func, insert, select, text, update

from app.db.read_pool import fetch
from app.db.session import db, run_in_transaction
from app.models import ORDER_SUMS, ORDERS, USERS, Order
from app.services.maintenance import order_sums
from tests.api_client import at_the_same_time
from tests.db.test_row_counts import START, STATUSES, Writer, row_count
from tests.db.test_upgrades import REVISIONS
from tests.factories import ORDER, insert_order

pytestmark = pytest.mark.both_databases


def summed():
    """What the sums say, without those that are 0."""
    key = ORDER_SUMS.c.customer_id, ORDER_SUMS.c.status
    sums = func.sum(ORDER_SUMS.c.orders), func.sum(ORDER_SUMS.c.total)
    rows = fetch(select(*key, *sums).group_by(*key))
    return {tuple(row[:2]): (int(row[2]), row[3]) for row in rows if row[2] or row[3]}


def counted():
    """What the sums must say, counted."""
    orders, total = Counter(), Counter()
    for customer, status, each in fetch(
        select(ORDERS.c.customer_id, ORDERS.c.status, ORDERS.c.total)
    ):
        if customer is not None:
            orders[customer, status] += 1
            total[customer, status] += each
    return {key: (number, total[key]) for key, number in orders.items()}


def write_orders(seed, steps=25):
    """Write anything; also, give orders to other customers and guests."""
    chance = random.Random(seed)

    def change(session):
        writer = Writer(session, chance)
        writer.add_orders()
        writer.step()
        buyers = [None, *session.scalars(select(USERS.c.id)).all()]
        values = (
            {"customer_id": chance.choice(buyers)},
            {"total": Decimal(chance.randrange(100)), "status": chance.choice(STATUSES)},
            {"note": "the sums stay the same"},
        )
        for each in values:
            session.execute(
                update(Order).where(writer.some(Order)).values(each),
                execution_options={"synchronize_session": False},
            )

    run_in_transaction(lambda session: Writer(session, chance).add_users())
    for _ in range(steps):
        run_in_transaction(change)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(4))
def test_sums_equal_the_orders_after_any_write(app, seed):
    with app.app_context():
        write_orders(seed)
        assert summed() == counted()
        assert len(summed()) > 3
        assert order_sums.count_wrong_sums() == 0


def test_sums_of_no_orders_are_removed(app):
    with app.app_context():
        write_orders(1)
        assert summed()
        run_in_transaction(lambda session: session.execute(delete(ORDERS)))
        assert fetch(select(ORDER_SUMS)) == []


def test_sums_are_exact_after_concurrent_writes(app):
    def write(number):
        with app.app_context():
            write_orders(number, steps=6)

    at_the_same_time(write, range(4))
    with app.app_context():
        assert summed() == counted()


def test_figures_are_completed_of_the_orders_that_lack_them(app):
    complete, lacking = insert_order(app, items=7), insert_order(app)
    with app.app_context():
        run = partial(order_sums.complete_figures, limit=1)
        assert [run_in_transaction(run), run_in_transaction(run)] == [1, 0]
        assert dict(map(tuple, fetch(select(ORDERS.c.id, ORDERS.c["items"])))) == {
            complete: 7,
            lacking: 2,
        }


@pytest.mark.slow
def test_rebuilding_corrects_wrong_sums(app, monkeypatch):
    monkeypatch.setattr(order_sums, "BATCH", 1)
    with app.app_context():
        write_orders(2)
        gone = {"customer_id": 10**15, "status": "pending", "shard": 0, "orders": 1}
        taken = select(ORDER_SUMS.c.customer_id).order_by(ORDER_SUMS.c.customer_id).limit(1)
        more = {"orders": ORDER_SUMS.c.orders + 1, "total": ORDER_SUMS.c.total + Decimal(7)}
        other = select(func.max(ORDERS.c.customer_id))
        is_first = ORDER_SUMS.c.customer_id == taken.scalar_subquery()

        def damage(session):
            session.execute(
                delete(ORDER_SUMS).where(ORDER_SUMS.c.customer_id == other.scalar_subquery())
            )
            session.execute(update(ORDER_SUMS).where(is_first).values(more))
            session.execute(insert(ORDER_SUMS), [gone | {"total": Decimal(5)}])

        run_in_transaction(damage)
        wrong = order_sums.count_wrong_sums()
        assert wrong > 2
        assert summed() != counted()
        assert order_sums.rebuild_sums() == wrong
        assert summed() == counted()
        assert (order_sums.count_wrong_sums(), order_sums.rebuild_sums()) == (0, 0)


@pytest.fixture
def customer(app, make_customer):
    """The ID of a customer. The tests have concurrent writers, which SQLite has not."""
    with app.app_context():
        yield make_customer()["id"]


def order_of(customer_id, number):
    return ORDER | {
        "customer_id": customer_id,
        "order_key": f"key-{number}",
        "created_at": START,
        "updated_at": START,
    }


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_writers_of_orders_of_one_customer_do_not_wait_for_each_other(customer):
    """Each has written and not committed yet; also when an earlier one made the first shard."""
    for turn in range(3):
        connections = [db.engine.connect() for _ in range(4)]
        for number, connection in enumerate(connections if turn % 2 else connections[::-1]):
            connection.execute(text("SET LOCAL lock_timeout = '2s'"))
            connection.execute(insert(ORDERS), [order_of(customer, f"{turn}-{number}")])
        for connection in connections:
            connection.commit()
            connection.close()
    assert sum(orders for orders, _ in summed().values()) == 12
    assert summed() == counted()
    assert len(fetch(select(ORDER_SUMS))) == 4  # as many shards as there were writers at once
    assert sum(number for (table, *_), number in row_count().items() if table == "orders") == 12


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_connection_whose_shard_another_one_uses_does_not_wait(customer):
    with db.engine.connect() as one, db.engine.connect() as two:
        one.execute(insert(ORDERS), [order_of(customer, 1)])
        one.commit()  # the first shard
        two.execute(insert(ORDERS), [order_of(customer, 2)])
        one.execute(text("SET LOCAL lock_timeout = '2s'"))
        one.execute(insert(ORDERS), [order_of(customer, 3)])
        one.commit()
        two.commit()
    assert summed() == counted()


# --- the migration ---

MIGRATION = "0033"
BEFORE = REVISIONS[REVISIONS.index(MIGRATION) - 1]


@pytest.fixture
def old_shop(make_app, fresh_database_url):
    """Orders of two customers and of guests, in the schema before the sums."""
    app = make_app(DATABASE_URL=fresh_database_url)
    with app.app_context():
        upgrade()  # the models write to the latest schema
        chance = random.Random(1)

        def fill(session):
            Writer(session, chance).add_users()
            buyers = [None, *session.scalars(select(USERS.c.id)).all()]
            orders = [order_of(chance.choice(buyers), number) for number in range(30)]
            session.execute(insert(ORDERS), orders)

        run_in_transaction(fill)
        downgrade(revision=BEFORE)
        yield app


@pytest.mark.slow
def test_migration_sums_the_orders_of_before(old_shop):
    upgrade(revision=MIGRATION)
    assert summed() == counted()
    assert summed()


@pytest.mark.slow
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_interrupted_migration_is_continued(old_shop):
    """It had committed its triggers and a part of the sums, and others wrote afterwards."""
    upgrade(revision=MIGRATION)
    with db.engine.begin() as connection:
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{BEFORE}'"))
        half = select(func.avg(ORDER_SUMS.c.customer_id)).scalar_subquery()
        connection.execute(delete(ORDER_SUMS).where(ORDER_SUMS.c.customer_id > half))
        connection.execute(update(ORDERS).values(total=ORDERS.c.total + Decimal(1)))
    assert summed() != counted()
    upgrade(revision=MIGRATION)
    assert summed() == counted()
