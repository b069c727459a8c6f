"""Requests for the tests of orders."""

LINE = {"name": "Mug", "price": "4.00"}
KNOWN = "pending, processing, on-hold, completed, cancelled, refunded, failed"


def create(client, prefix="", **order):
    """Create an order and return it as the API returns it."""
    response = client.post(f"{prefix}/orders", {"order": order})
    assert response.status_code == 201, response.get_json()
    return response.get_json()["order"]


def change(client, order_id, prefix="", **order):
    """Update an order and return it as the API returns it."""
    response = client.put(f"{prefix}/orders/{order_id}", {"order": order})
    assert response.status_code == 200, response.get_json()
    return response.get_json()["order"]


def read(client, order_id):
    """Return an order as the API returns it."""
    return client.get(f"/orders/{order_id}").get_json()["order"]
