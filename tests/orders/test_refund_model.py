"""Random refunds of an order, compared with an independent computation (records 2)."""

import random
from decimal import Decimal

import pytest

from tests.orders.calls import change, create, read
from tests.orders.test_refunds import LINE, SHIPPING, refund, refunds_of

pytestmark = pytest.mark.both_databases

STEPS = 25


class Model:
    """What is left of an order, and its live refunds."""

    def __init__(self, order):
        self.total, self.status = Decimal(order["total"]), order["status"]
        self.left = {
            item["id"]: [
                item.get("quantity", 1),
                Decimal(item["total"]),
                Decimal(item["total_tax"]),
            ]
            for name in ("line_items", "shipping_lines")
            for item in order[name]
        }
        self.refunds = {}

    @property
    def rest(self):
        return self.total - sum((amount for amount, _ in self.refunds.values()), Decimal(0))

    def allows(self, amount, item=None):
        if item:
            item_id, *parts = item
            if any(part > left for part, left in zip(parts, self.left[item_id], strict=True)):
                return False
        return 0 < amount <= self.rest

    def add(self, refund_id, amount, item=None):
        if amount == self.rest:
            self.status = "refunded"
        self.refunds[refund_id] = amount, item
        self._give(item, -1)

    def remove(self, refund_id):
        _, item = self.refunds.pop(refund_id)
        self._give(item, 1)

    def _give(self, item, sign):
        if item:
            item_id, *parts = item
            left = self.left[item_id]
            self.left[item_id] = [
                value + sign * part for value, part in zip(left, parts, strict=True)
            ]


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(6))
def test_random_refunds(admin, seed):
    chance = random.Random(seed)
    other = {"name": "Plate", "quantity": 3, "price": "1.00"}
    status = chance.choice(["pending", "processing", "failed"])
    order = create(admin, line_items=[LINE, other], shipping_lines=[SHIPPING], status=status)
    model = Model(order)
    for _ in range(STEPS):
        step = chance.choice([refund_amount, refund_amount, refund_item, refund_item, delete, move])
        step(admin, order, model, chance)
        assert read(admin, order["id"])["status"] == model.status
        live = {each["id"]: Decimal(each["amount"]) for each in refunds_of(admin, order)}
        assert live == {refund_id: amount for refund_id, (amount, _) in model.refunds.items()}


def refund_amount(admin, order, model, chance):
    amount = Decimal(chance.randint(0, 1200)).scaleb(-2)
    made = refund(admin, order, amount=str(amount))
    assert isinstance(made, dict) == model.allows(amount)
    if isinstance(made, dict):
        model.add(made["id"], amount)


def refund_item(admin, order, model, chance):
    quantity = chance.randint(0, 2)
    total, tax = (Decimal(chance.randint(0, most)).scaleb(-2) for most in (600, 100))
    item = chance.choice(list(model.left)), quantity, total, tax
    names = ("id", "quantity", "total", "total_tax")
    given = dict(zip(names, (item[0], quantity, str(total), str(tax)), strict=True))
    made = refund(admin, order, line_items=[given])
    assert isinstance(made, dict) == model.allows(total + tax, item)
    if isinstance(made, dict):
        model.add(made["id"], total + tax, item)


def delete(admin, order, model, chance):
    if model.refunds:
        refund_id = chance.choice(list(model.refunds))
        model.remove(refund_id)
        path = f"/orders/{order['id']}/refunds/{refund_id}"
        assert admin.delete(path).status_code == 200


def move(admin, order, model, chance):
    status, rest = chance.choice(["completed", "refunded"]), model.rest
    change(admin, order["id"], status=status)
    if status == "refunded" and model.status != "refunded" and rest:
        (new,) = (each for each in refunds_of(admin, order) if each["id"] not in model.refunds)
        assert (Decimal(new["amount"]), new["reason"]) == (rest, "Order fully refunded.")
        model.add(new["id"], rest)
    model.status = status
