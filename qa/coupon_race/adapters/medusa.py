"""Medusa 2.12 or later."""

from typing import Any

from adapters.base import Adapter
from connection import Connection, RaceError


class Medusa(Adapter):
    """Completes carts. The key is a secret API key, and there is no secret."""

    creates = "orders, of the first product of the shop,"
    keeps = "The orders are cancelled, because Medusa cannot delete them."

    def create(self, connection: Connection, limit: int) -> None:
        tokens = connection.send("GET", "/admin/api-keys", type="publishable")["api_keys"]
        self.store_headers = {"x-publishable-api-key": tokens[0]["token"]}
        self.region = connection.send("GET", "/admin/regions")["regions"][0]
        discount: Any = {"type": "percentage", "target_type": "items", "allocation": "across"}
        discount |= {"value": 9, "currency_code": self.region["currency_code"]}
        promotion = {"code": self.code, "type": "standard", "status": "active", "limit": limit}
        promotion["application_method"] = discount
        body = connection.send("POST", "/admin/promotions", promotion)
        self.coupon, self.orders = body["promotion"]["id"], list[str]()

    def prepare(self, connection: Connection, email: str) -> Any:
        connection.headers |= self.store_headers
        region = self.region["id"]
        products = connection.send("GET", "/store/products", limit="1", region_id=region)
        cart = {
            "region_id": region,
            "email": email,
            "items": [{"variant_id": products["products"][0]["variants"][0]["id"], "quantity": 1}],
            "shipping_address": {"country_code": self.region["countries"][0]["iso_2"]},
            "promo_codes": [self.code],
        }
        cart_id: str = connection.send("POST", "/store/carts", cart)["cart"]["id"]
        found = connection.send("GET", "/store/shipping-options", cart_id=cart_id)
        option = {"option_id": found["shipping_options"][0]["id"]}
        connection.send("POST", f"/store/carts/{cart_id}/shipping-methods", option)
        payment = connection.send("POST", "/store/payment-collections", {"cart_id": cart_id})
        path = f"/store/payment-collections/{payment['payment_collection']['id']}/payment-sessions"
        connection.send("POST", path, {"provider_id": "pp_system_default"})
        return cart_id

    def redeem(self, connection: Connection, prepared: str) -> None:
        path = f"/store/carts/{prepared}/complete"
        body = connection.send("POST", path, {}, fields="id,discount_total")
        if body["type"] != "order":
            raise RaceError(str(body["error"]["message"]))
        self.orders.append(body["order"]["id"])
        if not body["order"]["discount_total"]:
            raise RaceError("an order without the discount")

    def uses(self, connection: Connection) -> int:
        body = connection.send("GET", f"/admin/promotions/{self.coupon}")
        return int(body["promotion"]["used"])

    def remove(self, connection: Connection) -> None:
        for order in self.orders:
            connection.send("POST", f"/admin/orders/{order}/cancel", {})
        connection.send("DELETE", f"/admin/promotions/{self.coupon}")
