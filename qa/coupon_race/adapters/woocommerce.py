"""WooCommerce."""

import hmac
import secrets
import time
from base64 import b64encode
from typing import Any
from urllib.parse import quote, urlencode

from adapters.base import Adapter
from connection import Connection, HTTPError, RaceError


class WooCommerce(Adapter):
    """Places orders with ``wc/v3``."""

    creates = "orders, of a hidden product that it creates as well,"
    product: Any = None

    def log_in(self, connection: Connection) -> None:
        if connection.is_encrypted:  # otherwise, ``send`` signs each request
            super().log_in(connection)

    def send(
        self, connection: Connection, method: str, path: str, body: Any = None, **query: str
    ) -> Any:
        """Return the body of a response, to a signed request if the connection is not encrypted."""
        path = f"/wp-json/wc/v3/{path}"
        if not connection.is_encrypted:
            query |= self._signature(method, connection.url + path, query)
        return connection.send(method, path, body, **query)

    def _signature(self, method: str, url: str, query: dict[str, str]) -> dict[str, str]:
        """Return the parameters of OAuth 1.0a without a token."""
        oauth = {
            "oauth_consumer_key": self.key,
            "oauth_nonce": secrets.token_hex(16),
            "oauth_signature_method": "HMAC-SHA256",
            "oauth_timestamp": str(int(time.time())),
        }
        parameters = urlencode(sorted((query | oauth).items()), quote_via=quote)
        text = "&".join(quote(part, safe="") for part in (method, url, parameters))
        digest = hmac.digest(f"{self.secret}&".encode(), text.encode(), "sha256")
        return oauth | {"oauth_signature": b64encode(digest).decode()}

    def create(self, connection: Connection, limit: int) -> None:
        coupon: Any = {"code": self.code, "discount_type": "fixed_cart", "amount": "1.00"}
        coupon["usage_limit"] = limit
        self.coupon = self.send(connection, "POST", "coupons", coupon)["id"]
        product = {"name": self.code, "virtual": True, "catalog_visibility": "hidden"}
        try:
            self.product = self.send(
                connection, "POST", "products", product | {"regular_price": "10"}
            )
            self.item = {"product_id": self.product["id"], "quantity": 1}
        except HTTPError as error:  # a shop without a catalogue, such as this service
            if error.status != 404:
                raise
            self.item = {"name": self.code, "product_id": 1, "quantity": 1, "total": "10.00"}

    def redeem(self, connection: Connection, prepared: str) -> None:
        order = {
            "status": "processing",
            "billing": {"email": prepared},
            "line_items": [self.item],
            "coupon_lines": [{"code": self.code}],
        }
        if not self.send(connection, "POST", "orders", order)["coupon_lines"]:
            raise RaceError("an order without the coupon")

    def uses(self, connection: Connection) -> int:
        return int(self.send(connection, "GET", f"coupons/{self.coupon}")["usage_count"])

    def remove(self, connection: Connection) -> None:
        # WooCommerce stores an order also if it rejects the coupon.
        query = {"search": self.email_domain, "per_page": "100"}
        while orders := self.send(connection, "GET", "orders", **query):
            for order in orders:
                self.send(connection, "DELETE", f"orders/{order['id']}", force="true")
        self.send(connection, "DELETE", f"coupons/{self.coupon}", force="true")
        if self.product:
            self.send(connection, "DELETE", f"products/{self.product['id']}", force="true")
