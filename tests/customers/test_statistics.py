"""Order statistics of customers: last_order_*, orders_count, total_spent (spec 2.2)."""

import threading
from datetime import UTC, datetime
from decimal import Decimal
from uuid import uuid4

import pytest
from sqlalchemy import select, update

from app.db.read_pool import fetch
from app.db.session import run_in_transaction
from app.models import Order
from tests.api_client import without_key
from tests.factories import ORDER

KNOWN = ["pending", "processing", "on-hold", "completed", "cancelled", "refunded", "failed"]
NONE = {"last_order_id": None, "last_order_date": None, "orders_count": 0, "total_spent": "0.00"}


def new_order(customer_id, **over):
    """An order that is not stored yet: completed, of 10.00."""
    moment = datetime(2026, 3, 1, 8, 30, tzinfo=UTC)
    values = {"customer_id": customer_id, "order_key": uuid4().hex, "total": Decimal("10.00")}
    return Order(**ORDER | values | {"created_at": moment, "updated_at": moment} | over)


@pytest.fixture
def make_order(app):
    """Return a function: store an order of a customer and return its id."""

    def make(customer, **over):
        def work(session):
            order = new_order(customer and customer["id"], **over)
            session.add(order)
            session.flush()
            return order.id

        with app.app_context():
            return run_in_transaction(work)

    return make


def read(client, customer):
    response = client.get(f"/customers/{customer['id']}")
    assert response.status_code == 200, response.get_json()
    return response.get_json()["customer"]


def statistics(customer):
    return {name: customer[name] for name in NONE}


def owner_of(app, order_id):
    with app.app_context():
        return fetch(select(Order.customer_id).where(Order.id == order_id))[0].customer_id


def test_customer_without_orders_has_none(admin, make_customer, make_order):
    customer = make_customer()
    make_order(make_customer())
    make_order(None)
    assert read(admin, customer) == customer
    assert statistics(customer) == NONE


@pytest.mark.both_databases
@pytest.mark.parametrize("status", KNOWN)
def test_orders_count_counts_every_known_status(admin, make_customer, make_order, status):
    customer = make_customer()
    order_id = make_order(customer, status=status)
    assert statistics(read(admin, customer)) == {
        "last_order_id": order_id,
        "last_order_date": "2026-03-01T08:30:00Z",
        "orders_count": 1,
        "total_spent": "10.00" if status in {"processing", "completed"} else "0.00",
    }


@pytest.mark.parametrize(
    "status", ["draft", "trash", "auto-draft", "Completed", "wc-completed", " "]
)
def test_order_in_an_unknown_status_counts_for_nothing(admin, make_customer, make_order, status):
    customer = make_customer()
    make_order(customer, status=status)
    assert statistics(read(admin, customer)) == NONE


def test_statistics_are_of_the_own_orders_only(admin, make_customer, make_order):
    ann, bob = make_customer(), make_customer()
    make_order(ann, total=Decimal("1.10"))
    last = make_order(ann, total=Decimal("2.20"), status="pending")
    make_order(bob, total=Decimal("4.40"))
    make_order(None, total=Decimal("8.80"))
    assert statistics(read(admin, ann)) == {
        "last_order_id": last,
        "last_order_date": "2026-03-01T08:30:00Z",
        "orders_count": 2,
        "total_spent": "1.10",
    }
    assert read(admin, bob)["total_spent"] == "4.40"


@pytest.mark.both_databases
def test_last_order_is_the_highest_id_in_a_known_status(admin, make_customer, make_order):
    customer = make_customer()
    make_order(customer, created_at=datetime(2030, 1, 1, tzinfo=UTC))
    last = make_order(
        customer, status="failed", created_at=datetime(2020, 5, 6, 7, 8, 9, tzinfo=UTC)
    )
    make_order(customer, status="draft", created_at=datetime(2040, 1, 1, tzinfo=UTC))
    make_order(None, created_at=datetime(2050, 1, 1, tzinfo=UTC))
    assert statistics(read(admin, customer)) == {
        "last_order_id": last,
        "last_order_date": "2020-05-06T07:08:09Z",
        "orders_count": 2,
        "total_spent": "10.00",
    }


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("totals", "spent"),
    [
        (["0.10", "0.20"], "0.30"),
        (["0.10"] * 10, "1.00"),
        (["0.00"], "0.00"),
        (["10.00", "-2.50"], "7.50"),
        (["0.01", "9999999999999.98"], "9999999999999.99"),
        (["9007199254740.99"], "9007199254740.99"),
        (["9999999999999.99"] * 10, "99999999999999.90"),
    ],
)
def test_total_spent_is_exact_to_the_cent(admin, make_customer, make_order, totals, spent):
    customer = make_customer()
    for total in totals:
        make_order(customer, total=Decimal(total))
    assert read(admin, customer)["total_spent"] == spent
    listed = admin.get("/customers", {"filter[orderby]": "total_spent"}).get_json()["customers"]
    assert [row["total_spent"] for row in listed] == [spent]


@pytest.mark.parametrize(
    ("setting", "spent"),
    [
        (["completed", "refunded"], "40.00"),
        ("completed, refunded", "40.00"),
        (["pending"], "1.00"),
        ([], "0.00"),
        (["completed", "on-hold"], "72.00"),
    ],
)
def test_total_spent_sums_the_statuses_of_the_setting(
    admin, client_with, make_customer, make_order, setting, spent
):
    customer = make_customer()
    totals = {"pending": 1, "processing": 2, "completed": 8, "refunded": 32, "on-hold": 64}
    for status, total in totals.items():
        make_order(customer, status=status, total=Decimal(total))
    other = client_with(SHOP_PAID_STATUSES=setting)
    assert read(other, customer) == read(admin, customer) | {"total_spent": spent}
    assert read(admin, customer)["total_spent"] == "10.00"


def test_status_that_an_app_knows_more_counts_in_that_app(
    admin, client_with, make_customer, make_order
):
    customer = make_customer()
    order_id = make_order(customer, status="shipped")
    other = client_with()
    other.app.extensions["shop_api"].add_order_status("shipped", "Shipped")
    assert statistics(read(other, customer)) == {
        "last_order_id": order_id,
        "last_order_date": "2026-03-01T08:30:00Z",
        "orders_count": 1,
        "total_spent": "0.00",
    }
    assert statistics(read(admin, customer)) == NONE


@pytest.mark.pooler
def test_every_answer_about_a_customer_has_the_same_statistics(admin, make_customer, make_order):
    customer = make_customer(email="ann@example.com")
    make_order(customer)
    make_order(customer, status="pending")
    wanted = read(admin, customer)
    path = f"/customers/{customer['id']}"
    item = {"id": customer["id"], "first_name": ""}
    assert wanted["orders_count"] == 2
    assert admin.get("/customers/email/ann@example.com").get_json() == {"customer": wanted}
    assert admin.get("/customers").get_json() == {"customers": [wanted]}
    assert admin.get("/customers?filter[limit]=-1").get_json() == {"customers": [wanted]}
    assert admin.put(path, {"customer": {}}).get_json() == {"customer": wanted}
    assert admin.put(path, {"customer": item}).get_json() == {"customer": wanted}
    bulk = admin.post("/customers/bulk", {"customers": [item, item]})
    assert bulk.get_json() == {"customers": [wanted, wanted]}


@pytest.mark.both_databases
def test_statistics_follow_a_changed_order_at_once(app, admin, make_customer, make_order):
    ann, bob = make_customer(), make_customer()
    order_id = make_order(ann, status="pending")

    def change(**values):
        this = update(Order).where(Order.id == order_id)
        with app.app_context():
            run_in_transaction(lambda session: session.execute(this.values(**values)))

    assert read(admin, ann)["total_spent"] == "0.00"
    change(status="completed", total=Decimal("3.50"))
    assert read(admin, ann)["total_spent"] == "3.50"
    change(status="draft")
    assert statistics(read(admin, ann)) == NONE
    change(status="processing", customer_id=bob["id"])
    assert statistics(read(admin, ann)) == NONE
    assert (read(admin, bob)["orders_count"], read(admin, bob)["total_spent"]) == (1, "3.50")


@pytest.mark.both_databases
def test_statistics_are_exact_while_orders_are_written(app, admin, make_customer):
    """Each response is consistent, and the last one includes all writes."""
    customer = make_customer()
    each, writers = 15, 4
    seen, failures, done = [], [], threading.Event()

    def write():
        try:
            with app.app_context():
                for _ in range(each):
                    run_in_transaction(lambda session: session.add(new_order(customer["id"])))
        except Exception as error:  # noqa: BLE001  # it is shown by the assertion below
            failures.append(error)

    def watch():
        client = type(admin)(app, admin.key)
        while not done.is_set():
            seen.append(statistics(read(client, customer)))

    threads = [threading.Thread(target=write) for _ in range(writers)]
    watcher = threading.Thread(target=watch)
    for thread in (watcher, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    watcher.join()
    assert failures == []
    assert seen
    for one in seen:
        assert Decimal(one["total_spent"]) == 10 * one["orders_count"]
        assert (one["last_order_id"] is None) == (one["orders_count"] == 0)
    counts = [one["orders_count"] for one in seen]
    assert counts == sorted(counts)
    final = read(admin, customer)
    assert (final["orders_count"], final["total_spent"]) == (60, "600.00")


# --- what becomes of the orders of an account that goes ---


@pytest.mark.both_databases
def test_delete_leaves_the_orders_to_a_guest(app, admin, make_customer, make_order):
    ann, bob = make_customer(), make_customer()
    of_ann = [make_order(ann), make_order(ann, status="draft")]
    of_bob, of_guest = make_order(bob), make_order(None)
    assert admin.delete(f"/customers/{ann['id']}").status_code == 200
    assert [owner_of(app, order_id) for order_id in of_ann] == [None, None]
    assert owner_of(app, of_bob) == bob["id"]
    assert owner_of(app, of_guest) is None
    assert read(admin, bob)["orders_count"] == 1


def test_account_with_the_email_of_a_deleted_one_does_not_get_its_orders(
    admin, make_customer, make_order
):
    old = make_customer(email="ann@example.com")
    make_order(old)
    admin.delete(f"/customers/{old['id']}")
    assert statistics(make_customer(email="ann@example.com")) == NONE


# --- statements ---


@pytest.mark.both_databases
@pytest.mark.parametrize("count", [1, 3])
def test_statistics_cost_no_statement_of_their_own(
    admin, make_customer, make_order, statements, count
):
    customers = [make_customer() for _ in range(count)]
    for customer in customers * 2:
        make_order(customer)
    statements.clear()
    rows = admin.get("/customers").get_json()["customers"]
    assert [row["orders_count"] for row in rows] == [2] * count
    assert len(without_key(statements)) == 1  # the records with their total
