"""The recorded shop as the tables of WooCommerce, from which a dump is written.

Orders are in the order tables (layout ``8``) or in the posts (``3.5``), as they were recorded.
"""

import hmac
import json
from datetime import UTC, datetime
from pathlib import Path

from tests.dumps.schemas import LAYOUTS
from tests.dumps.shop import PARTS, php

SEED = json.loads((Path(__file__).parent / "seed.json").read_text())
KEYS = SEED["keys"]
# The seed has only the ID of the variation; responses of the recording have the rest.
VARIATION = {
    "id": 15, "parent_id": 14, "name": "Epsilon shirt - L", "sku": "EPS-L", "price": "40.00",
    "size": "L",
}  # fmt: skip

_COUPON_KEYS = {
    "discount_type": "discount_type", "amount": "coupon_amount", "usage_count": "usage_count",
    "minimum_amount": "minimum_amount", "maximum_amount": "maximum_amount",
    "usage_limit": "usage_limit", "usage_limit_per_user": "usage_limit_per_user",
    "limit_usage_to_x_items": "limit_usage_to_x_items",
}  # fmt: skip
_FLAGS = ("individual_use", "free_shipping", "exclude_sale_items")
_SUMS = {
    "_cart_discount": "discount_total", "_cart_discount_tax": "discount_tax",
    "_order_shipping": "shipping_total", "_order_shipping_tax": "shipping_tax",
    "_order_tax": "cart_tax", "_order_total": "total",
}  # fmt: skip
_TEXTS = {
    "_order_key": "order_key", "_customer_user": "customer_id", "_cart_hash": "cart_hash",
    "_payment_method": "payment_method", "_payment_method_title": "payment_method_title",
    "_transaction_id": "transaction_id", "_customer_ip_address": "customer_ip_address",
    "_customer_user_agent": "customer_user_agent", "_created_via": "created_via",
    "_order_currency": "currency", "_order_version": "version",
}  # fmt: skip

_USER = {
    "nickname": "shopper", "description": "", "rich_editing": "true", "comment_shortcuts": "false",
    "syntax_highlighting": "true", "admin_color": "fresh", "use_ssl": "0", "locale": "",
    "show_admin_bar_front": "true", "dismissed_wp_pointers": "", "wp_user_level": "0",
    "paying_customer": "1", "wc_last_active": "1764547200", "session_tokens": "a:0:{}",
    "_woocommerce_persistent_cart_1": "a:0:{}", "wp_dashboard_quick_press_last_post_id": "4",
}  # fmt: skip
_INTERNAL = {
    "_recorded_sales": "yes", "_recorded_coupon_usage_counts": "yes", "_edit_lock": "1764547200:1",
    "_download_permissions_granted": "yes", "_order_stock_reduced": "yes",
    "_new_order_email_sent": "true", "_billing_address_index": "Ada", "_edit_last": "1",
    "_shipping_address_index": "Ada",
}  # fmt: skip
"""Rows that every real shop has, and that the recorded server did not show."""

_FIRST_OTHER = 10_000
"""First ID of the rows of metadata whose IDs were not recorded."""


def _time(text):
    return text.replace("T", " ") if text else None


def _stamp(text):
    return str(int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()))


def _yes(flag):
    return "yes" if flag else "no"


def _stored(value):
    return php(value) if isinstance(value, list | dict) else str(value)


class RecordedShop:
    """The tables of the recorded shop, with the methods that ``write_dump`` needs."""

    def __init__(self, layout, *, with_downloads=False):
        self.layout, self.tables = layout, LAYOUTS[layout]
        self._rows = {name: [] for name in self.tables}
        self._options()
        for product in [*SEED["products"], VARIATION]:
            kind = "product_variation" if "parent_id" in product else "product"
            parent = product.get("parent_id", 0)
            self._post(product["id"], kind, "publish", product["name"], parent=parent)
            self._meta("postmeta", product["id"], {"_sku": product["sku"]})
        size = {"size": {"name": "Size", "value": "S | L", "is_variation": 1}}
        self._meta("postmeta", VARIATION["parent_id"], {"_product_attributes": php(size)})
        if with_downloads:
            self._downloads()
        for customer in SEED["customers"]:
            self._customer(customer)
        for coupon in SEED["coupons"]:
            self._coupon(coupon)
        for order in SEED["orders"]:
            # A permission belongs to the customer of its order.
            is_downloaded = with_downloads and order["id"] == 47
            self._order(order | {"customer_id": 5} if is_downloaded else order)
        for number, key in enumerate(SEED["keys"].values(), 1):
            digest = hmac.digest(b"wc-api", key["consumer_key"].encode(), "sha256").hex()
            self._add("woocommerce_api_keys", number, key["user_id"], "", key["permissions"], digest,
                      key["consumer_secret"], None, key["consumer_key"][-7:], None)  # fmt: skip
        for hook in SEED["webhooks"]:
            times = (_time(hook[name]) for name in ("date_created", "date_created_gmt"))
            changed = _time(hook["date_modified_gmt"] or hook["date_created_gmt"])
            self._add("wc_webhooks", hook["id"], hook["status"], hook["name"], 1,
                      hook["delivery_url"], hook["secret"], hook["topic"], *times, changed, changed,
                      3, 0, 0)  # fmt: skip

    def rows(self, name):
        """Return the rows of a table."""
        return self._rows[name]

    def _add(self, table, *row):
        self._rows[table].append(row)

    def _meta(self, table, owner, values):
        for key, value in values.items() if isinstance(values, dict) else values:
            self._add(table, _FIRST_OTHER + len(self._rows[table]), owner, key, value)

    def _recorded(self, table, owner, entries):
        """Add rows of metadata with the recorded IDs."""
        taken = {row[0] for row in self._rows[table]}
        for each in entries:
            is_taken = each["id"] in taken  # orders and coupons share a table in older shops
            number = _FIRST_OTHER + len(self._rows[table]) if is_taken else each["id"]
            self._add(table, number, owner, each["key"], _stored(each["value"]))

    def _options(self):
        values = {
            "siteurl": "https://shop.example", "home": "https://shop.example",
            "timezone_string": "UTC", "gmt_offset": "0", "woocommerce_currency": "USD",
            "woocommerce_version": "10.5.0",
            "woocommerce_custom_orders_table_enabled": _yes(self.layout == "8"),
        }  # fmt: skip
        for number, (name, value) in enumerate(values.items(), 1):
            self._add("options", number, name, value, "yes")

    def _downloads(self):
        file = {"id": "dl-1", "name": "Manual.pdf", "file": "https://shop.example/files/manual.pdf"}
        self._meta("postmeta", 13, {"_downloadable_files": php({"dl-1": file})})
        rows = (("5", None), ("", "2030-01-01 00:00:00"), ("0", None), ("5", "2020-01-01 00:00:00"))
        for number, (remaining, expires) in enumerate(rows, 1):
            self._add("woocommerce_downloadable_product_permissions", number, "dl-1", 13, 47,
                      "wc_order_seed00000007", "customer01@mail.example", 5, remaining,
                      "2025-05-01 00:00:00", expires, 0)  # fmt: skip

    def _post(self, post_id, kind, status, title, *, excerpt="", created="2025-01-01T00:00:00",
              changed=None, parent=0):  # fmt: skip
        created, changed = _time(created), _time(changed or created)
        self._add("posts", post_id, 1, created, created, "", title, excerpt, status, "open",
                  "closed", "", "slug", "", "", changed, changed, "", parent, "", 0, kind, "", 0)  # fmt: skip

    def _customer(self, customer):
        user_id, name = customer["id"], customer["username"]
        self._add("users", user_id, name, "", name, customer["email"], "",
                  _time(customer["date_created_gmt"]), "", 0, name)  # fmt: skip
        values = {
            "first_name": customer["first_name"],
            "last_name": customer["last_name"],
            "wp_capabilities": php({customer["role"]: True}),
            **{f"billing_{part}": text for part, text in customer["billing"].items()},
            **{f"shipping_{part}": text for part, text in customer["shipping"].items()},
        }
        if customer["date_modified_gmt"]:
            values["last_update"] = _stamp(customer["date_modified_gmt"])
        self._meta("usermeta", user_id, {**_USER, **values})
        self._recorded("usermeta", user_id, customer["meta_data"])

    def _coupon(self, coupon):
        self._post(coupon["id"], "shop_coupon", coupon["status"], coupon["code"],
                   excerpt=coupon["description"], created=coupon["date_created_gmt"],
                   changed=coupon["date_modified_gmt"])  # fmt: skip
        values = [(key, str(coupon[name] or "0")) for name, key in _COUPON_KEYS.items()]
        values += [(name, _yes(coupon[name])) for name in _FLAGS]
        values += [
            ("product_ids", ",".join(map(str, coupon["product_ids"]))),
            ("exclude_product_ids", ",".join(map(str, coupon["excluded_product_ids"]))),
            ("product_categories", php(coupon["product_categories"])),
            ("exclude_product_categories", php(coupon["excluded_product_categories"])),
            ("customer_email", php(coupon["email_restrictions"])),
            *(("_used_by", user) for user in coupon["used_by"]),
        ]
        if coupon["date_expires_gmt"]:
            values.append(("date_expires", _stamp(coupon["date_expires_gmt"])))
        self._meta("postmeta", coupon["id"], values)
        self._recorded("postmeta", coupon["id"], coupon["meta_data"])

    # --- orders ---

    def _order(self, order):
        status = order["status"] if order["status"] == "trash" else f"wc-{order['status']}"
        own = {"_wp_trash_meta_status": "wc-pending"} if status == "trash" else {}
        table = "wc_orders_meta" if self.layout == "8" else "postmeta"
        if self.layout == "8":
            self._post(order["id"], "shop_order_placehold", "draft", "")
            self._in_tables(order, status)
        else:
            own = _INTERNAL | self._in_metadata(order) | own
            self._post(order["id"], "shop_order", status, "Order", excerpt=order["customer_note"],
                       created=order["date_created_gmt"], changed=order["date_modified_gmt"])  # fmt: skip
        self._meta(table, order["id"], own)
        self._recorded(table, order["id"], order["meta_data"])
        for line in order["line_items"]:
            self._item(order["id"], line, line["name"], "line_item", _line(line))
        for line in order["shipping_lines"]:
            values = {"method_id": line["method_id"], "instance_id": line["instance_id"],
                      "cost": line["total"], "total_tax": line["total_tax"],
                      "taxes": php(_taxes(line)), "tax_status": line["tax_status"]}  # fmt: skip
            self._item(order["id"], line, line["method_title"], "shipping", values)
        for line in order["fee_lines"]:
            values = {"_fee_amount": line["amount"], "_tax_class": line["tax_class"],
                      "_tax_status": line["tax_status"], "_line_total": line["total"],
                      "_line_tax": line["total_tax"], "_line_tax_data": php(_taxes(line))}  # fmt: skip
            self._item(order["id"], line, line["name"], "fee", values)
        for line in order["tax_lines"]:
            values = {"rate_id": str(line["rate_id"]), "label": line["label"],
                      "compound": "1" if line["compound"] else "", "tax_amount": line["tax_total"],
                      "shipping_tax_amount": line["shipping_tax_total"],
                      "rate_percent": str(line["rate_percent"])}  # fmt: skip
            self._item(order["id"], line, line["rate_code"], "tax", values)
        for line in order["coupon_lines"]:
            values = {"discount_amount": line["discount"],
                      "discount_amount_tax": line["discount_tax"]}  # fmt: skip
            self._item(order["id"], line, line["code"], "coupon", values)
        for note in SEED["order_notes"].get(str(order["id"]), ()):
            created = _time(note["date_created_gmt"])
            self._add("comments", note["id"], order["id"], note["author"], "", "", "", created,
                      created, note["note"], 0, "1", "WooCommerce", "order_note", 0, 0)  # fmt: skip
            if note["customer_note"]:
                self._meta("commentmeta", note["id"], {"is_customer_note": "1"})
        for refund in SEED["order_refunds"].get(str(order["id"]), ()):
            self._refund(order, refund)

    def _in_metadata(self, order):
        values = {key: order[name] for key, name in _SUMS.items()}
        values |= {key: str(order[name]) for key, name in _TEXTS.items()}
        values["_prices_include_tax"] = _yes(order["prices_include_tax"])
        for kind in ("billing", "shipping"):
            values |= {f"_{kind}_{part}": text for part, text in order[kind].items()}
        for key, name in (
            ("_date_paid", "date_paid_gmt"),
            ("_date_completed", "date_completed_gmt"),
        ):
            if order[name]:
                values[key] = _stamp(order[name])
        return values

    def _in_tables(self, order, status):
        created, changed = _time(order["date_created_gmt"]), _time(order["date_modified_gmt"])
        self._add("wc_orders", order["id"], status, order["currency"], "shop_order",
                  order["cart_tax"], order["total"], order["customer_id"], order["billing"]["email"],
                  created, changed, order["parent_id"], order["payment_method"],
                  order["payment_method_title"], order["transaction_id"],
                  order["customer_ip_address"], order["customer_user_agent"],
                  order["customer_note"])  # fmt: skip
        for kind in ("billing", "shipping"):
            parts = (order[kind].get(part, "") for part in PARTS)
            number = len(self._rows["wc_order_addresses"]) + 1
            self._add("wc_order_addresses", number, order["id"], kind, *parts)
        number = len(self._rows["wc_order_operational_data"]) + 1
        self._add("wc_order_operational_data", number, order["id"], order["created_via"],
                  order["version"], int(order["prices_include_tax"]), 1, 1, order["cart_hash"], 1,
                  order["order_key"], 1, _time(order["date_paid_gmt"]),
                  _time(order["date_completed_gmt"]), order["shipping_tax"],
                  order["shipping_total"], order["discount_tax"], order["discount_total"], 1)  # fmt: skip

    def _item(self, order_id, line, name, kind, values):
        self._add("woocommerce_order_items", line["id"], name, kind, order_id)
        self._meta("woocommerce_order_itemmeta", line["id"], values)
        self._recorded("woocommerce_order_itemmeta", line["id"], line["meta_data"])

    def _refund(self, order, refund):
        created, total = refund["date_created_gmt"], f"-{refund['amount']}"
        values = {"_refund_amount": refund["amount"], "_refund_reason": refund["reason"],
                  "_refunded_by": str(refund["refunded_by"]), "_refunded_payment": ""}  # fmt: skip
        if self.layout == "8":
            self._add("wc_orders", refund["id"], "wc-completed", order["currency"],
                      "shop_order_refund", "0", total, 0, None, _time(created), _time(created),
                      order["id"], None, None, None, None, None, None)  # fmt: skip
            self._meta("wc_orders_meta", refund["id"], values)
        else:
            self._post(refund["id"], "shop_order_refund", "wc-completed", "Refund", created=created,
                       parent=order["id"])  # fmt: skip
            more = {"_order_total": total, "_order_currency": order["currency"]}
            self._meta("postmeta", refund["id"], values | more)
        for line in refund["line_items"]:
            self._item(refund["id"], line, line["name"], "line_item", _line(line))


def _line(line):
    return {
        "_qty": str(line["quantity"]), "_tax_class": line["tax_class"],
        "_product_id": str(line["product_id"]), "_variation_id": str(line["variation_id"]),
        "_line_subtotal": line["subtotal"], "_line_subtotal_tax": line["subtotal_tax"],
        "_line_total": line["total"], "_line_tax": line["total_tax"],
        "_line_tax_data": php(_taxes(line)),
    }  # fmt: skip


def _taxes(line):
    return {
        name: {tax["id"]: tax[name] or "0" for tax in line["taxes"]}
        for name in ("total", "subtotal")
    }
