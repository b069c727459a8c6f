"""The Shop Administration API: redemptions, orders and legacy orders."""

from typing import Any

from adapters.base import Adapter
from connection import Connection


class Redemptions(Adapter):
    """Reserves and confirms uses with ``/redemptions``."""

    creates = "redemptions"
    keeps = "The released redemptions remain as a record."
    path = ""

    def create(self, connection: Connection, limit: int) -> None:
        coupon = {"code": self.code, "type": "fixed_cart", "amount": "1", "usage_limit": limit}
        body = connection.send("POST", f"{self.path}/coupons", {"coupon": coupon})
        self.coupon = body["coupon"]["id"]

    def redeem(self, connection: Connection, prepared: str) -> None:
        redemption = {"code": self.code, "reference": prepared, "email": prepared}
        body = connection.send("POST", "/redemptions", {"redemption": redemption})
        connection.send("POST", f"/redemptions/{body['redemption']['id']}/confirm")

    def uses(self, connection: Connection) -> int:
        body = connection.send("GET", f"{self.path}/coupons/{self.coupon}")
        return int(body["coupon"]["usage_count"])

    def remove(self, connection: Connection) -> None:
        for status in ("reserved", "confirmed"):
            query = {"code": self.code, "status": status}
            while found := connection.send("GET", "/redemptions", **query)["redemptions"]:
                for redemption in found:
                    self.release(connection, redemption)
        connection.send("DELETE", f"{self.path}/coupons/{self.coupon}", force="true")

    def release(self, connection: Connection, redemption: Any) -> None:
        """Release a use."""
        connection.send("POST", f"/redemptions/{redemption['id']}/release")


class Orders(Redemptions):
    """Places orders with ``/orders``."""

    creates = "orders"
    item = {"product_id": 1, "name": "coupon-race", "quantity": 1, "price": "10.00"}
    coupon_line: dict[str, str] = {}

    def redeem(self, connection: Connection, prepared: str) -> None:
        order = {
            "status": "processing",
            "billing_address": {"email": prepared},
            "line_items": [self.item],
            "coupon_lines": [{"code": self.code} | self.coupon_line],
        }
        connection.send("POST", f"{self.path}/orders", {"order": order})

    def release(self, connection: Connection, redemption: Any) -> None:
        order_id = redemption["reference"].removeprefix("order-")
        connection.send("DELETE", f"{self.path}/orders/{order_id}", force="true")


class LegacyOrders(Orders):
    """Places orders with ``/wc-api/v3``, whose coupon lines have an amount."""

    path = "/wc-api/v3"
    item = {"product_id": 1, "quantity": 1, "total": "10.00"}
    coupon_line = {"amount": "1.00"}
