"""Vendure."""

from typing import Any

from adapters.base import Adapter
from connection import Connection, RaceError

ORDER = "{ ... on Order { id state couponCodes } ... on ErrorResult { message } }"
FOUND = "{ products(options: { take: 1 }) { items { variants { id } } } }"
METHODS = "{ eligibleShippingMethods { id } eligiblePaymentMethods { code } }"


class Vendure(Adapter):
    """Pays orders. Key and secret are the name and the password of an administrator."""

    creates = "orders, of the first product of the shop,"
    keeps = "The orders are cancelled, because Vendure cannot delete them."

    def ask(self, connection: Connection, api: str, query: str) -> Any:
        """Return the data of a response, and stay in the session that it starts."""
        body = connection.send("POST", f"/{api}-api", {"query": query})
        if token := connection.response_headers["vendure-auth-token"]:
            connection.headers["Authorization"] = f"Bearer {token}"
        results = [each for each in (body.get("data") or {}).values() if isinstance(each, dict)]
        for result in (*body.get("errors", ()), *results):
            if message := result.get("message"):
                raise RaceError(f"{api} API: {message}")
        return body["data"]

    def log_in(self, connection: Connection) -> None:
        login = f'login(username: "{self.key}", password: "{self.secret}")'
        self.ask(
            connection, "admin", f"mutation {{ {login} {{ ... on ErrorResult {{ message }} }} }}"
        )

    def create(self, connection: Connection, limit: int) -> None:
        action = (
            '{ code: "order_percentage_discount", arguments: [{ name: "discount", value: "9" }] }'
        )
        promotion = f'enabled: true, couponCode: "{self.code}", usageLimit: {limit}, conditions: []'
        translation = f'{{ languageCode: en, name: "{self.code}" }}'
        query = f"""mutation {{ createPromotion(input: {{ {promotion}, actions: [{action}],
            translations: [{translation}] }}) {{
            ... on Promotion {{ id }} ... on ErrorResult {{ message }} }} }}"""
        self.coupon = self.ask(connection, "admin", query)["createPromotion"]["id"]

    def prepare(self, connection: Connection, email: str) -> Any:
        product = self.ask(connection, "shop", FOUND)["products"]["items"][0]
        customer = f'{{ firstName: "A", lastName: "A", emailAddress: "{email}" }}'
        cart = f"""mutation {{
            addItemToOrder(productVariantId: "{product["variants"][0]["id"]}", quantity: 1) {ORDER}
            setCustomerForOrder(input: {customer}) {ORDER}
            setOrderShippingAddress(input: {{ streetLine1: "A", countryCode: "US" }}) {ORDER}
            applyCouponCode(couponCode: "{self.code}") {ORDER} }}"""
        self.ask(connection, "shop", cart)
        methods = self.ask(connection, "shop", METHODS)
        shipping = methods["eligibleShippingMethods"][0]["id"]
        query = f"""mutation {{ setOrderShippingMethod(shippingMethodId: ["{shipping}"]) {ORDER}
            transitionOrderToState(state: "ArrangingPayment") {ORDER} }}"""
        self.ask(connection, "shop", query)
        return methods["eligiblePaymentMethods"][0]["code"]

    def redeem(self, connection: Connection, prepared: str) -> None:
        payment = f'addPaymentToOrder(input: {{ method: "{prepared}", metadata: {{}} }})'
        data = self.ask(connection, "shop", f"mutation {{ {payment} {ORDER} }}")
        if self.code not in data["addPaymentToOrder"]["couponCodes"]:
            raise RaceError("an order without the coupon")

    def orders(self, connection: Connection) -> list[Any]:
        """Return the placed orders with the coupon, among the latest 1,000."""
        latest = "take: 1000, sort: { id: DESC }, filter: { active: { eq: false } }"
        query = f"{{ orders(options: {{ {latest} }}) {{ items {{ id couponCodes }} }} }}"
        orders = self.ask(connection, "admin", query)["orders"]["items"]
        return [order for order in orders if self.code in order["couponCodes"]]

    def uses(self, connection: Connection) -> int:
        return len(self.orders(connection))

    def remove(self, connection: Connection) -> None:
        for order in self.orders(connection):
            query = f'mutation {{ cancelOrder(input: {{ orderId: "{order["id"]}" }}) {ORDER} }}'
            self.ask(connection, "admin", query)
        query = f'mutation {{ deletePromotion(id: "{self.coupon}") {{ result }} }}'
        self.ask(connection, "admin", query)
