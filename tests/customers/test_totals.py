"""Lists of customers by their statistics are exact, whether or not the totals are up to date."""

import random
from decimal import Decimal

import pytest
from sqlalchemy import delete, func, select, update

from app.db.read_pool import fetch, read_engine, snapshot
from app.db.session import run_in_transaction
from app.models import CUSTOMER_TOTALS, STALE_TOTALS, USERS, Order
from app.services.customers import totals
from app.services.maintenance import order_sums
from tests.db.test_row_counts import STATUSES, Writer
from tests.factories import insert_order

pytestmark = pytest.mark.both_databases

NAMES = ("orders_count", "total_spent")


def listed(admin, name, order, **more):
    query = {
        "filter[orderby]": name,
        "filter[order]": order,
        "filter[role]": "all",
        "filter[limit]": 100,
    }
    found = admin.get("/customers", query | more).json["customers"]
    return [each["id"] for each in found]


def expected(admin, name, order, least=Decimal("-Infinity")):
    """The customers who have spent so much, sorted by the statistics that they show."""
    shown = admin.get("/customers", {"filter[role]": "all", "filter[limit]": "-1"}).json[
        "customers"
    ]
    rows = sorted(
        (Decimal(each[name]), each["id"]) for each in shown if Decimal(each["total_spent"]) >= least
    )
    return [row[1] for row in (rows if order == "asc" else rows[::-1])]


def check(admin):
    for name in NAMES:
        for order in ("asc", "desc"):
            wanted = expected(admin, name, order)
            assert listed(admin, name, order) == wanted
            pages = [listed(admin, name, order, **{"filter[limit]": 3, "page": n}) for n in (1, 2)]
            assert pages == [wanted[:3], wanted[3:6]]
        bound = {"filter[total_spent_min]": "20"}
        assert listed(admin, name, "asc", **bound) == expected(admin, name, "asc", Decimal(20))


def write(seed):
    chance = random.Random(seed)

    def change(session):
        writer = Writer(session, chance)
        writer.add_orders()
        writer.step()
        buyers = [None, *session.scalars(select(USERS.c.id)).all()]
        values = {"customer_id": chance.choice(buyers), "total": Decimal(chance.randrange(90))}
        session.execute(
            update(Order)
            .where(writer.some(Order))
            .values(values | {"status": chance.choice(STATUSES)}),
            execution_options={"synchronize_session": False},
        )

    run_in_transaction(change)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(3))
def test_lists_are_exact_between_any_writes_and_refreshes(
    app, admin, make_customer, seed, monkeypatch
):
    chance = random.Random(seed)
    monkeypatch.setattr("app.services.common.plans.FEW", 0)
    for number in range(8):
        make_customer(email=f"c{number}@example.com")
    for step in range(6):
        with app.app_context():
            write(f"{seed} {step}")
            if chance.random() < 0.6:
                totals.refresh(chance.choice([1, None]))
            assert order_sums.count_wrong_totals() == 0
        check(admin)


def test_a_deleted_customer_with_a_stale_total_takes_no_place(app, admin, make_customer):
    """Deleting a customer changes its sums, and so makes a total stale that no user has."""
    ids = [make_customer(email=f"c{number}@example.com")["id"] for number in range(4)]
    for id_ in ids:
        insert_order(app, customer_id=id_)
    with app.app_context():
        totals.refresh()
    admin.delete(f"/customers/{ids[1]}")
    assert ids[1] in {row[0] for row in stale(app)}
    check(admin)
    for role in ("all", "customer"):
        query = {"filter[role]": role, "filter[limit]": 2, "filter[offset]": 1}
        assert listed(admin, "orders_count", "desc", **query) == [ids[2], ids[0]]


def test_wrong_and_missing_totals_are_found_and_rebuilt(app, admin, make_customer, monkeypatch):
    monkeypatch.setattr(order_sums, "BATCH", 2)
    first, second, third, *_ = (make_customer(email=f"c{n}@example.com")["id"] for n in range(5))
    column = CUSTOMER_TOTALS.c.customer_id
    damages = (
        update(CUSTOMER_TOTALS).where(column == first).values(orders_count=70),
        update(CUSTOMER_TOTALS).where(column == second).values(total_spent=Decimal("0.01")),
        delete(CUSTOMER_TOTALS).where(column == third),
    )
    with app.app_context():
        for seed in range(4):
            write(seed)
        totals.refresh()
        right = sorted(map(tuple, fetch(select(CUSTOMER_TOTALS))))
        for number, damage in enumerate(damages):
            assert order_sums.count_wrong_totals() == number
            run_in_transaction(lambda session, damage=damage: session.execute(damage))
        assert order_sums.count_wrong_totals() == 3
        assert order_sums.rebuild_sums() == 0
        assert order_sums.count_wrong_totals() == 0
        assert sorted(map(tuple, fetch(select(CUSTOMER_TOTALS)))) == right
    check(admin)


def test_refresh_leaves_nothing_stale_and_is_repeatable(app, admin, make_customer, monkeypatch):
    monkeypatch.setattr(totals, "BATCH", 2)
    with app.app_context():
        for number in range(5):
            make_customer(email=f"c{number}@example.com")
        for seed in range(4):
            write(seed)
        monkeypatch.setattr(totals, "BATCH", 2)
        totals.refresh()
        totals.refresh()
        assert fetch(select(STALE_TOTALS)) == []
        (stored,) = fetch(select(func.count()).select_from(CUSTOMER_TOTALS))
        assert stored == fetch(select(func.count()).select_from(USERS))[0]
    check(admin)


@pytest.mark.sample(1)
def test_other_statuses_make_all_totals_stale(app, admin, make_customer, client_with, app_with):
    """A process in which other statuses count computes all sums, until a worker of it has run."""
    paid = {"SHOP_PAID_STATUSES": ["pending"]}
    other = client_with(**paid)
    for number in range(4):
        make_customer(email=f"c{number}@example.com")
    with app.app_context():
        for seed in range(4):
            write(seed)
        totals.refresh()
        assert is_index_used()
    check(other)
    with app_with(**paid).app_context():
        assert not is_index_used()
        totals.refresh()
        assert is_index_used()
    for client in (admin, other):
        check(client)


def is_index_used():
    with snapshot() as select_rows:
        return "customer_totals" in str(
            totals.ranks("total_spent", select_rows).compile(read_engine())
        )


def test_with_many_stale_totals_all_sums_are_read(app, admin, make_customer, monkeypatch):
    monkeypatch.setattr("app.services.common.plans.FEW", 0)
    for number in range(3):
        make_customer(email=f"c{number}@example.com")
    with app.app_context():
        totals.refresh()
        write(1)
        assert is_index_used()
    most = len(stale(app)) - 1
    monkeypatch.setattr(totals, "MOST_STALE", most)
    with app.app_context():
        assert not is_index_used()
    check(admin)


def stale(app):
    with app.app_context():
        return fetch(select(STALE_TOTALS.c.customer_id).distinct())
