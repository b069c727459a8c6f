"""The Shop Administration API: redemptions, orders and legacy orders."""

from typing import Any

from adapters.base import Adapter
from connection import Connection, RaceError

CODES = 5
"""Number of codes of a campaign."""


class Redemptions(Adapter):
    """Reserves and confirms uses with ``/redemptions``."""

    creates = "redemptions"
    keeps = "The released redemptions remain as a record."
    campaigns = True
    path = ""

    def create(self, connection: Connection, limit: int) -> None:
        coupon = {"code": self.code, "type": "fixed_cart", "amount": "1"}
        self.coupons: dict[str, int] = {}
        if not self.campaign:
            self._create_coupon(connection, coupon | {"usage_limit": limit}, self.path)
            return
        # Each use has a discount of 1.00, so both campaigns have the same number of uses.
        terms = {"budget": str(limit)} if self.campaign == "budget" else {"usage_limit": limit}
        body = connection.send("POST", "/campaigns", {"campaign": {"name": self.code} | terms})
        self.campaign_id = body["campaign"]["id"]
        for number in range(CODES):
            new = {"code": f"{self.code}-{number}", "campaign_id": self.campaign_id}
            self._create_coupon(connection, coupon | new, "")

    def _create_coupon(self, connection: Connection, coupon: Any, path: str) -> None:
        body = connection.send("POST", f"{path}/coupons", {"coupon": coupon})
        self.coupon = self.coupons[coupon["code"]] = body["coupon"]["id"]

    def code_of(self, client: str) -> str:
        """Return the code that a client uses."""
        number = int(client.partition("@")[0].removeprefix("client-"))
        codes = list(self.coupons)
        return codes[number % len(codes)]

    def redeem(self, connection: Connection, prepared: str) -> None:
        code = self.code_of(prepared)
        redemption = {"code": code, "reference": prepared, "email": prepared, "amount": "1.00"}
        body = connection.send("POST", "/redemptions", {"redemption": redemption})
        connection.send("POST", f"/redemptions/{body['redemption']['id']}/confirm")

    def uses(self, connection: Connection) -> int:
        if not self.campaign:
            body = connection.send("GET", f"{self.path}/coupons/{self.coupon}")
            return int(body["coupon"]["usage_count"])
        campaign = connection.send("GET", f"/campaigns/{self.campaign_id}")["campaign"]
        if campaign["discount"] != f"{campaign['uses']}.00":
            raise RaceError(f"{campaign['uses']} uses have the discount {campaign['discount']}")
        return int(campaign["uses"])

    def remove(self, connection: Connection) -> None:
        for code, coupon in self.coupons.items():
            for status in ("reserved", "confirmed"):
                query = {"code": code, "status": status}
                while found := connection.send("GET", "/redemptions", **query)["redemptions"]:
                    for redemption in found:
                        self.release(connection, redemption)
            connection.send("DELETE", f"{self.path}/coupons/{coupon}", force="true")
        if self.campaign:
            connection.send("DELETE", f"/campaigns/{self.campaign_id}")

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
            "coupon_lines": [{"code": self.code_of(prepared)} | self.coupon_line],
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
