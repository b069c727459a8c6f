"""Plugins see refunds: change hooks are called with them, and order extensions can read them."""

import marshmallow as ma
import pytest
from sqlalchemy import func, select

from app.catalog import EXTENSION
from app.plugin_api import ChangeHook, OrderExtension, OrderRefund, ShopError, fetch
from tests.api_client import Client
from tests.orders.calls import create

LINE = {"product_id": 1, "name": "Teapot", "quantity": 2, "price": "8.00", "total": "16.00"}


@pytest.fixture
def client(make_app, admin):
    return Client(make_app(), admin.key)


@pytest.fixture
def order(client):
    return create(client, line_items=[LINE], status="completed")


def refund(client, order, amount):
    body = {"order_refund": {"amount": amount}}
    return client.post(f"/orders/{order['id']}/refunds", body)


def test_change_hooks_are_called_with_refunds_and_their_order(client, order):
    calls = {"order_refund": [], "order": [], "*": []}
    for resource, seen in calls.items():
        hook = ChangeHook(resource, after_commit=seen.extend)
        client.app.extensions[EXTENSION].add_change_hook(hook)
    made = refund(client, order, "6.00").get_json()["order_refund"]
    path = f"/orders/{order['id']}/refunds/{made['id']}"
    assert client.put(path, {"order_refund": {"reason": "Late."}}).status_code == 200
    assert client.delete(path).status_code == 200
    found = [
        (change.event, change.before and str(change.before["amount"]), bool(change.after))
        for change in calls["order_refund"]
    ]
    assert found == [
        ("order_refund.created", None, True),
        ("order_refund.updated", "6.00", True),
        ("order_refund.deleted", "6.00", False),
    ]
    created, updated, _ = calls["order_refund"]
    assert created.after["order_id"] == order["id"]
    assert (updated.before["reason"], updated.after["reason"]) == ("", "Late.")
    assert {change.event for change in calls["order"]} == {"order.updated"}
    assert len(calls["*"]) == len(calls["order_refund"]) + len(calls["order"])


def test_change_hook_can_reject_a_refund(client, order):
    def reject(changes):
        if any(change.after["amount"] > 5 for change in changes):
            raise ShopError("shop_api_invalid_order_refund", reason="It is too much.")

    hook = ChangeHook("order_refund", before_commit=reject)
    client.app.extensions[EXTENSION].add_change_hook(hook)
    assert refund(client, order, "5.01").status_code == 400
    assert refund(client, order, "5.00").status_code == 201
    refunds = client.get(f"/orders/{order['id']}/refunds").get_json()["order_refunds"]
    assert [each["amount"] for each in refunds] == ["5.00"]


def test_order_extension_reads_refunds(client, order):
    def refunds_of(orders):
        ids = [each["id"] for each in orders]
        counts = select(OrderRefund.order_id, func.count()).group_by(OrderRefund.order_id)
        found = {row[0]: row[1] for row in fetch(counts.where(OrderRefund.order_id.in_(ids)))}
        return [found.get(each, 0) for each in ids]

    extension = OrderExtension("number_of_refunds", ma.fields.Integer(), refunds_of)
    client.app.extensions[EXTENSION].add_order_extension(extension)
    numbers = []
    for amount in ("1.00", "2.00"):
        shown = client.get(f"/orders/{order['id']}").get_json()["order"]
        numbers.append(shown["number_of_refunds"])
        refund(client, order, amount)
    listed = client.get("/orders", {"fields": "number_of_refunds"}).get_json()["orders"]
    assert (numbers, listed) == ([0, 1], [{"number_of_refunds": 2}])
