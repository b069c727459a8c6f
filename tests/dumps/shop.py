"""A generated shop of any size. Its rows are generated when they are read.

All values depend only on the number of a record, so a shop of a million rows needs no memory and is
the same in every layout.
"""

import hmac
from datetime import UTC, datetime, timedelta

from tests.dumps.schemas import LAYOUTS

BEGIN = datetime(2021, 3, 1, 8, 0, tzinfo=UTC)
ZERO = "0000-00-00 00:00:00"
PARTS = ("first_name", "last_name", "company", "address_1", "address_2", "city", "state",
         "postcode", "country", "email", "phone")  # fmt: skip
STATUSES = ("completed", "completed", "completed", "processing", "on-hold", "pending",
            "cancelled", "refunded", "failed")  # fmt: skip
FIRST = ("Ada", "Jürgen", "Zoë", "O'Neil", "李", "Łukasz")
LAST = ("Lovelace", "Müller", "D\\Angelo", 'Quote "Q"', "Sørensen", "Ivanova")
CITIES = ("Köln", "Zürich", "Kraków", "São Paulo", "New York", "東京")
PLUGIN_KEYS = 40
VERSIONS = {"2.6": "2.6.14", "3.5": "3.5.3", "8": "8.2.1"}
FIRST_CUSTOMER, FIRST_COUPON, FIRST_ORDER = 2, 1_000, 100_000
KEY, SECRET = "ck_" + "5e" * 20, "cs_" + "a7" * 20


def php(value):
    """Return a value in the serialization format of PHP, with the lengths of texts in bytes."""
    if isinstance(value, bool):
        return f"b:{int(value)};"
    if isinstance(value, int):
        return f"i:{value};"
    if value is None:
        return "N;"
    if isinstance(value, float):
        return f"d:{value};"
    if isinstance(value, str):
        return f's:{len(value.encode())}:"{value}";'
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    return f"a:{len(value)}:{{{''.join(php(k) + php(v) for k, v in pairs)}}}"


class Shop:
    """A shop.

    Args:
        layout: ``2.6``, ``3.5`` or ``8``.
        plugin_keys: metadata of plugins of each order, which no import needs.
        extra: more rows of each table, by name: what the tests add.
        offset: hours that local times are ahead of UTC.
    """

    def __init__(self, customers=20, coupons=8, orders=60, layout="3.5", *, products=5,
                 plugin_keys=PLUGIN_KEYS, extra=None, offset=1, notes=1):  # fmt: skip
        self.customers, self.coupons, self.orders = customers, coupons, orders
        self.layout, self.products, self.plugin_keys = layout, products, plugin_keys
        self.tables = LAYOUTS[layout]
        self.extra = extra or {}
        self.offset, self.notes = timedelta(hours=offset), notes

    def rows(self, name):
        """Yield the rows of a table."""
        make = getattr(self, f"_{name}", None)
        if make:
            yield from make()
        yield from self.extra.get(name, ())

    # --- records ---

    def time(self, number):
        return BEGIN + timedelta(minutes=37 * number)

    def order(self, number):
        """Return the properties of an order, given its number from 0."""
        guest = number % 7 == 0 or not self.customers
        customer = 0 if guest else FIRST_CUSTOMER + number % self.customers
        coupon = number % 3 == 1 and self.coupons
        quantity = number % 3 + 1
        price = 995 + 10 * (number % 50)
        subtotal = price * quantity
        discount = subtotal // 10 if coupon else 0
        tax, shipping, shipping_tax = (subtotal - discount) * 19 // 100, 490, 93
        return {
            "id": FIRST_ORDER + number,
            "status": STATUSES[number % len(STATUSES)],
            "customer": customer,
            "created": self.time(number),
            "coupon": f"code-{number % self.coupons}" if coupon else None,
            "product": 10 + number % self.products if self.products else 0,
            "quantity": quantity,
            "subtotal": subtotal,
            "discount": discount,
            "total": subtotal - discount + tax + shipping + shipping_tax,
            "tax": tax,
            "shipping": shipping,
            "shipping_tax": shipping_tax,
            "key": f"wc_order_{number:013x}",
            "paid": STATUSES[number % len(STATUSES)] in {"completed", "processing", "refunded"},
        }

    def each_order(self):
        return map(self.order, range(self.orders))

    def address(self, number, email):
        first, last = FIRST[number % 6], LAST[number % 5]
        return dict(zip(PARTS, (first, last, "", f"{number} Main St", "", CITIES[number % 6],
                                "", f"{number:05}", "DE", email, "+49 30 1"), strict=True))  # fmt: skip

    # --- tables ---

    def _options(self):
        hours = self.offset.total_seconds() / 3600
        values = {
            "siteurl": "https://old.example/shop",
            "home": "https://old.example/shop",
            "timezone_string": "",
            "gmt_offset": f"{hours:g}",
            "woocommerce_currency": "EUR",
            "woocommerce_version": VERSIONS[self.layout],
            "active_plugins": php(["woocommerce/woocommerce.php"]),
        }
        if self.layout == "8":
            values["woocommerce_custom_orders_table_enabled"] = "yes"
        for number, (name, value) in enumerate(values.items(), 1):
            yield number, name, value, "yes"

    def _users(self):
        yield self._user(1, "boss", "boss@example.com", 0)
        for number in range(self.customers):
            name = f"user{number}"
            yield self._user(FIRST_CUSTOMER + number, name, f"{name}@example.com", number)

    def _user(self, user_id, name, email, number):
        return (user_id, name, "$P$Bhash", name, email, "", f"{self.time(number):%F %T}", "", 0,
                name)  # fmt: skip

    def _usermeta(self):
        number = 0
        for user_id in range(1, self.customers + FIRST_CUSTOMER):
            role = "administrator" if user_id == 1 else "customer"
            address = self.address(user_id, f"user{user_id}@example.com")
            values = {
                "nickname": f"user{user_id}",
                "first_name": address["first_name"],
                "last_name": address["last_name"],
                "description": "",
                "rich_editing": "true",
                "wp_capabilities": php({role: True}),
                "wp_user_level": "0",
                "session_tokens": php({"a" * 64: {"expiration": 1, "ip": "192.0.2.1"}}),
                **{f"billing_{part}": value for part, value in address.items()},
                **{f"shipping_{part}": value for part, value in list(address.items())[:9]},
                "last_update": str(int(self.time(user_id).timestamp()) + 60),
                "paying_customer": "1",
            }
            for key, value in values.items():
                number += 1
                yield number, user_id, key, value

    def post(self, post_id, kind, status, title, excerpt, created, *, author=1, parent=0, gmt=True):
        local = f"{created + self.offset:%F %T}"
        utc = f"{created:%F %T}" if gmt else ZERO
        return (post_id, author, local, utc, "", title, excerpt, status, "open", "closed", "",
                "slug", "", "", local, utc, "", parent, "https://old.example/?p=1", 0, kind, "", 0)  # fmt: skip

    def _posts(self):
        yield self.post(5, "page", "publish", "About; (it's) 'us'", "", BEGIN)
        for number in range(self.products):
            yield self.post(10 + number, "product", "publish", f"Tea {number}", "", BEGIN)
        for number in range(self.coupons):
            yield self.post(FIRST_COUPON + number, "shop_coupon", "publish", f"Code-{number}",
                            f"It's campaign {number}", self.time(number))  # fmt: skip
        if self.layout == "2.6":
            yield self.post(7, "shop_webhook", "publish", "Hook 7", "", BEGIN)
        for order in self.each_order():
            if self.layout != "8":
                yield self.post(order["id"], "shop_order", f"wc-{order['status']}", "Order",
                                "Ring twice" if order["id"] % 5 == 0 else "", order["created"])  # fmt: skip
                if order["status"] == "refunded":
                    yield self.post(order["id"] + 10_000_000, "shop_order_refund", "wc-completed",
                                    "Refund", "", order["created"], parent=order["id"])  # fmt: skip
            else:
                yield self.post(order["id"], "shop_order_placehold", "draft", "", "",
                                order["created"])  # fmt: skip

    def order_meta(self, order):
        created = order["created"]
        address = self.address(order["id"], f"buyer{order['id'] % 90}@example.net")
        values = {
            "_order_key": order["key"],
            "_customer_user": str(order["customer"]),
            "_payment_method": "bacs",
            "_payment_method_title": "Bank transfer",
            "_customer_ip_address": "192.0.2.7",
            "_customer_user_agent": 'Mozilla/5.0 (it\'s "quoted")',
            "_created_via": "checkout",
            "_order_currency": "EUR",
            "_cart_discount": cents(order["discount"]),
            "_cart_discount_tax": "0",
            "_order_shipping": cents(order["shipping"]),
            "_order_shipping_tax": cents(order["shipping_tax"]),
            "_order_tax": cents(order["tax"]),
            "_order_total": cents(order["total"]),
            "_order_version": self.layout,
            "_prices_include_tax": "no",
            "_recorded_coupon_usage_counts": yes(order["status"] not in {"cancelled", "failed"}),
        }
        for part, value in address.items():
            values[f"_billing_{part}"] = value
            if part not in {"email", "phone"}:
                values[f"_shipping_{part}"] = value
        if order["paid"]:
            if self.layout == "2.6":
                values["_paid_date"] = f"{created + self.offset:%F %T}"
            else:
                values["_date_paid"] = str(int(created.timestamp()))
        if order["status"] == "completed":
            done = created + timedelta(hours=5)
            if self.layout == "2.6":
                values["_completed_date"] = f"{done + self.offset:%F %T}"
            else:
                values["_date_completed"] = str(int(done.timestamp()))
        for number in range(self.plugin_keys):
            values[f"_plugin_{number}"] = f"value {number} of {order['id']}"
        return values

    def _postmeta(self):
        number = 0
        for post_id, values in self._metas():
            for key, value in values:
                number += 1
                yield number, post_id, key, value

    def _metas(self):
        for product in range(self.products):
            file = {"id": "f1", "name": f"Guide {product}", "file": "https://old.example/g.pdf"}
            files = [("_downloadable_files", php({"f1": file}))] if product == 0 else []
            yield 10 + product, [("_sku", f"SKU-{product}"), ("_price", "9.95"), *files]
        for coupon in range(self.coupons):
            yield FIRST_COUPON + coupon, self.coupon_meta(coupon)
        if self.layout == "2.6":
            yield 7, [("_topic", "order.updated"), ("_secret", "old secret"),
                      ("_delivery_url", "https://erp.example/hook")]  # fmt: skip
        for order in self.each_order():
            if self.layout != "8":
                yield order["id"], self.order_meta(order).items()
                if order["status"] == "refunded":
                    refund = {"_refund_amount": "5.00", "_refund_reason": "broken",
                              "_order_total": "-5.00", "_order_currency": "EUR"}  # fmt: skip
                    yield order["id"] + 10_000_000, refund.items()

    def coupon_meta(self, number):
        uses = [
            str(order["customer"]) if order["customer"] else f"buyer{order['id'] % 90}@example.net"
            for order in self.each_order()
            if order["coupon"] == f"code-{number}"
            and order["status"] not in {"cancelled", "failed"}
        ] if self.orders <= 10_000 else []  # fmt: skip
        expires = datetime(2030, 12, 31, tzinfo=UTC) - self.offset
        return [
            ("discount_type", ("fixed_cart", "percent", "fixed_product")[number % 3]),
            ("coupon_amount", f"{number % 20 + 5}.5"),
            ("individual_use", yes(number % 4 == 1)),
            ("product_ids", "10,11" if number % 3 == 2 else ""),
            ("exclude_product_ids", ""),
            ("usage_limit", "0" if number % 2 else "100000"),
            ("usage_limit_per_user", ""),
            ("limit_usage_to_x_items", ""),
            ("usage_count", str(len(uses) + 1)),
            ("date_expires", str(int(expires.timestamp()))) if self.layout != "2.6"
            else ("expiry_date", "2030-12-31"),
            ("free_shipping", yes(number % 5 == 0)),
            ("product_categories", php([3, 4]) if number % 4 == 0 else php([])),
            ("exclude_product_categories", php([])),
            ("exclude_sale_items", "no"),
            ("minimum_amount", "20" if number % 2 else ""),
            ("maximum_amount", ""),
            ("customer_email", php(["*@example.com", "Ä.Ö@example.com"]) if number == 3 else php([])),
            *(("_used_by", use) for use in uses),
            ("_used_by", "phone-order@example.com"),
        ]  # fmt: skip

    def items(self, order):
        """Return ID, name, kind and metadata of the items of an order."""
        first = (order["id"] - FIRST_ORDER) * 4 + 1
        line = {
            "_qty": str(order["quantity"]),
            "_tax_class": "",
            "_product_id": str(order["product"]),
            "_variation_id": "0",
            "_line_subtotal": cents(order["subtotal"]),
            "_line_subtotal_tax": cents(order["subtotal"] * 19 // 100),
            "_line_total": cents(order["subtotal"] - order["discount"]),
            "_line_tax": cents(order["tax"]),
            "_line_tax_data": php({"total": {1: cents(order["tax"])}}),
            "pa_size": "large",
            "Gravur": "Für Dich",
        }
        shipping = {"method_id": "flat_rate", "cost": cents(order["shipping"]), "taxes": php([])}
        taxes = {"rate_id": "1", "label": "VAT", "compound": "",
                 "tax_amount": cents(order["tax"]),
                 "shipping_tax_amount": cents(order["shipping_tax"])}  # fmt: skip
        yield first, f"Tea {order['product'] - 10}", "line_item", line
        yield first + 1, "Flat rate", "shipping", shipping
        yield first + 2, "DE-VAT-1", "tax", taxes
        if order["coupon"]:
            yield first + 3, order["coupon"], "coupon", {
                "discount_amount": cents(order["discount"]), "discount_amount_tax": "0",
            }  # fmt: skip

    def _woocommerce_order_items(self):
        for order in self.each_order():
            for item_id, name, kind, _ in self.items(order):
                yield item_id, name, kind, order["id"]

    def _woocommerce_order_itemmeta(self):
        number = 0
        for order in self.each_order():
            for item_id, _, _, meta in self.items(order):
                for key, value in meta.items():
                    number += 1
                    yield number, item_id, key, value

    def _woocommerce_attribute_taxonomies(self):
        yield 1, "size", "Größe", "select", "menu_order", 1

    def _comments(self):
        number = 0
        for order in self.each_order():
            for note in range(self.notes):
                number += 1
                created = order["created"]
                yield (number, order["id"], "WooCommerce", "woo@example.com", "", "",
                       f"{created + self.offset:%F %T}", f"{created:%F %T}",
                       f"Note {note}: it's\npaid; \\ö", 0, "1", "WooCommerce", "order_note", 0, 0)  # fmt: skip

    def _commentmeta(self):
        for number in range(1, self.orders * self.notes + 1):
            if number % 4 == 0:
                yield number, number, "is_customer_note", "1"

    def _woocommerce_downloadable_product_permissions(self):
        for number, order in enumerate(self.each_order(), 1):
            if order["product"] == 10:
                expires = None if number % 2 else "2035-01-01 00:00:00"
                yield (number, "f1", 10, order["id"], order["key"], "buyer+1@example.net",
                       order["customer"], "" if number % 3 else "4", None, expires, 0)  # fmt: skip

    def _woocommerce_api_keys(self):
        hashed = hmac.digest(b"wc-api", KEY.encode(), "sha256").hex()
        yield 1, 1, "ERP", "read_write", hashed, SECRET, None, KEY[-7:], None

    def _wc_webhooks(self):
        url = "https://erp.example/hook"
        for number, (status, topic, version) in enumerate(
            (("active", "order.updated", 0), ("disabled", "coupon.created", -1),
             ("active", "order.created", 3)), 1,
        ):  # fmt: skip
            if self.layout != "2.6":
                yield (number, status, f"Hook {number}", 1, url, "old secret", topic, ZERO,
                       "2021-03-01 08:00:00", ZERO, "2021-03-02 08:00:00", version, 0, 0)  # fmt: skip

    # --- order tables of WooCommerce 8 ---

    def _wc_orders(self):
        for order in self.each_order():
            created = f"{order['created']:%F %T}"
            meta = self.order_meta(order)
            yield (order["id"], f"wc-{order['status']}", "EUR", "shop_order", cents(order["tax"]),
                   cents(order["total"]), order["customer"], meta["_billing_email"], created, created,
                   0, "bacs", "Bank transfer", "", "192.0.2.7", meta["_customer_user_agent"],
                   "Ring twice" if order["id"] % 5 == 0 else "")  # fmt: skip
            if order["status"] == "refunded":
                yield (order["id"] + 10_000_000, "wc-completed", "EUR", "shop_order_refund", "0",
                       "-5.00", 0, None, created, created, order["id"], None, None, None, None, None,
                       None)  # fmt: skip

    def _wc_order_addresses(self):
        number = 0
        for order in self.each_order():
            meta = self.order_meta(order)
            for kind in ("billing", "shipping"):
                number += 1
                parts = (meta.get(f"_{kind}_{part}") for part in PARTS)
                yield number, order["id"], kind, *parts

    def _wc_order_operational_data(self):
        for number, order in enumerate(self.each_order(), 1):
            created = order["created"]
            paid = f"{created:%F %T}" if order["paid"] else None
            done = f"{created + timedelta(hours=5):%F %T}"
            counted = int(order["status"] not in {"cancelled", "failed"})
            yield (number, order["id"], "checkout", "8", 0, counted, 1, "", 1, order["key"], 1, paid,
                   done if order["status"] == "completed" else None, cents(order["shipping_tax"]),
                   cents(order["shipping"]), "0", cents(order["discount"]), 1)  # fmt: skip

    def _wc_orders_meta(self):
        number = 0
        for order in self.each_order():
            if order["status"] == "refunded":
                number += 2
                refund = order["id"] + 10_000_000
                yield number - 1, refund, "_refund_amount", "5.00"
                yield number, refund, "_refund_reason", "broken"


def cents(amount):
    return f"{amount // 100}.{amount % 100:02}"


def yes(flag):
    return "yes" if flag else "no"
