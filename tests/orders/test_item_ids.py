"""IDs of items of orders and of refunds, which are unique in the shop (records 5)."""

import pytest
from sqlalchemy import select, update

from app.db.read_pool import fetch
from app.db.session import db
from app.models import ORDER_REFUNDS, ORDERS
from app.services.orders.items import KINDS
from tests.api_client import at_the_same_time
from tests.orders.calls import LINE, change, create

pytestmark = pytest.mark.both_databases


def all_ids(order):
    return [item["id"] for name in KINDS for item in order[name]]


def test_ids_are_unique_in_the_shop(app, admin):
    """Items of orders and of refunds get their IDs from one sequence (records 5)."""
    shipping = {"method_id": "flat_rate", "total": "1.00"}
    first, second = (
        create(admin, line_items=[LINE, LINE], shipping_lines=[shipping]) for _ in range(2)
    )
    refunded = [{"id": line["id"], "total": "1.00"} for line in first["line_items"]]
    path = f"/orders/{first['id']}/refunds"
    assert admin.post(path, {"order_refund": {"line_items": refunded}}).status_code == 201
    first = change(admin, first["id"], line_items=[LINE])
    bulk = {"orders": [{"line_items": [LINE]}, {"id": second["id"], "line_items": [LINE]}]}
    third, second = admin.post("/orders/bulk", bulk).get_json()["orders"]
    with app.app_context():
        ((stored,),) = fetch(select(ORDER_REFUNDS.c.line_items))
    ids = [*map(all_ids, (first, second, third)), [item["item_id"] for item in stored]]
    together = [each for several in ids for each in several]
    assert len(together) == len({*together}) == 11
    for order in (first, second, third):
        lines = [line["id"] for line in order["line_items"]]
        assert lines == sorted(lines)


def test_ids_of_items_that_were_deleted_are_not_used_again(admin):
    order = create(admin, line_items=[LINE])
    admin.delete(f"/orders/{order['id']}", {"force": "true"})
    assert all_ids(create(admin, line_items=[LINE])) > all_ids(order)


def test_concurrent_orders_get_different_ids(admin):
    made = at_the_same_time(lambda n: create(admin, line_items=[LINE] * n), [3] * 8)
    ids = [each for order in made for each in all_ids(order)]
    assert len({*ids}) == 24


def test_order_of_a_previous_release_keeps_ascending_ids(app, admin):
    """It can have assigned IDs above the last one of the sequence, during an upgrade."""
    order = create(admin, line_items=[LINE])
    with app.app_context(), db.engine.begin() as connection:
        ahead = update(ORDERS).where(ORDERS.c.id == order["id"]).values(next_item_id=500)
        connection.execute(ahead)
    ids = all_ids(change(admin, order["id"], line_items=[LINE, LINE]))
    assert (ids[1] >= 500, ids) == (True, sorted({*ids}))
    assert all_ids(create(admin, line_items=[LINE]))[0] > ids[-1]
