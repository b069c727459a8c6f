"""Quantities are never a part of another value (orders 9)."""

import pytest

from tests.coupons.test_evaluate import evaluate

PART = [1.5, "1.5", "1,5", "2 kg", "1e2", True, "two"]


def line(quantity):
    return {"name": "Mug", "price": "5.00", "total": "5.00", "quantity": quantity}


@pytest.mark.parametrize("quantity", PART)
def test_a_fraction_or_text_is_rejected(admin, quantity):
    for prefix in ("", "/wc-api/v3"):
        body = {"order": {"line_items": [line(2)]}}
        order = admin.post(f"{prefix}/orders", body).get_json()["order"]
        (stored,) = order["line_items"]
        assert stored["quantity"] == 2
        path = f"{prefix}/orders/{order['id']}"
        changed = {"line_items": [{"id": stored["id"], "quantity": quantity}]}
        assert admin.put(path, {"order": changed}).status_code == 400
        body = {"order": {"line_items": [line(quantity)]}}
        assert admin.post(f"{prefix}/orders", body).status_code == 400
        assert admin.get(path).get_json()["order"] == order
    refund = {"line_items": [{"id": stored["id"], "quantity": quantity, "total": "1.00"}]}
    path = f"/orders/{order['id']}/refunds"
    assert admin.post(path, {"order_refund": refund}).status_code == 400
    assert evaluate(admin, items=[{"price": "5.00", "quantity": quantity}]).status_code == 400


@pytest.mark.parametrize("quantity", [2, 2.0, "2", " 2 "])
def test_an_integral_number_is_accepted(admin, quantity):
    body = {"order": {"line_items": [line(quantity)]}}
    order = admin.post("/orders", body).get_json()["order"]
    assert order["line_items"][0]["quantity"] == 2
    assert evaluate(admin, items=[{"price": "5.00", "quantity": quantity}]).status_code == 200
