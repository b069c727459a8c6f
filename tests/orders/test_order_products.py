"""The products of each order in ``order_products``, which triggers keep (reports 4)."""

import pytest
from sqlalchemy import select

from app.db.read_pool import fetch
from app.models import ORDER_PRODUCTS
from tests.factories import LINE_ITEM, insert_order

pytestmark = pytest.mark.both_databases


@pytest.fixture
def products(app):
    """Return a function: product and quantity of an order."""

    def read(order_id):
        table = ORDER_PRODUCTS.c
        with app.app_context():
            rows = fetch(select(table.product_id, table.quantity).where(table.order_id == order_id))
        return dict(map(tuple, rows))

    return read


def line(product_id, quantity=1, **more):
    return {"product_id": product_id, "name": "x", "price": "1.00", "quantity": quantity, **more}


def test_products_follow_the_line_items(admin, products):
    lines = [line(1, 2), line(2), line(1, 3), {"name": "gift wrap", "price": "1.00"}]
    order = admin.post("/orders", {"order": {"line_items": lines}}).get_json()["order"]
    assert products(order["id"]) == {1: 5, 2: 1}
    first, second, *_ = order["line_items"]
    change = [{"id": first["id"], "quantity": 4}, {"id": second["id"], "remove": True}, line(7)]
    admin.put(f"/orders/{order['id']}", {"order": {"line_items": change}})
    assert products(order["id"]) == {1: 7, 7: 1}
    admin.put(f"/orders/{order['id']}", {"order": {"note": "later"}})
    assert products(order["id"]) == {1: 7, 7: 1}
    admin.delete(f"/orders/{order['id']}")
    assert products(order["id"]) == {1: 7, 7: 1}  # in the trash
    admin.delete("/orders/trash?older_than_days=0")
    assert products(order["id"]) == {}


def test_items_without_a_product_or_a_quantity(app, products):
    items = [{**LINE_ITEM, "product_id": None}, {"id": 2, "product_id": 4}]
    assert products(insert_order(app, line_items=items)) == {4: 0}
