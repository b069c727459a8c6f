"""The shop of the recording, written as the import writes the same records."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from sqlalchemy import insert, text

from app.auth.encryption import encrypt
from app.auth.hashes import keyed_hash
from app.conversions.text import comparable
from app.db.search import search_text
from app.db.session import db
from app.models import (
    API_KEYS,
    COUPON_METADATA,
    COUPONS,
    CUSTOMER_METADATA,
    ITEM_METADATA,
    ORDER_METADATA,
    ORDER_NOTES,
    ORDER_REFUNDS,
    ORDERS,
    REDEMPTIONS,
    USER_ROLES,
    USERS,
    WEBHOOKS,
)
from app.models.order import DOWNLOADS
from app.models.user import with_normalized
from app.services.common.metadata_writes import with_found_value
from app.services.orders.columns import derived_columns
from app.services.orders.items import KINDS, items_of

SEED = json.loads((Path(__file__).parent / "seed.json").read_text())
KEYS = SEED["keys"]
# The seed has only the ID of the variation; responses of the recording have the rest.
VARIATION = {
    "id": 15, "parent_id": 14, "name": "Epsilon shirt - L", "sku": "EPS-L", "price": "40.00",
    "size": "L",
}  # fmt: skip

DRAFTS = {"draft", "pending", "future"}


def moment(value):
    return value and datetime.fromisoformat(value).replace(tzinfo=UTC)


def insert_seed(connection):
    """Insert the records, keys and sequences of the recorded shop."""
    for customer in SEED["customers"]:
        _insert_customer(connection, customer)
    known = {customer["id"] for customer in SEED["customers"]}
    for number, key in enumerate(KEYS.values(), 1):
        if key["user_id"] in known:
            connection.execute(insert(API_KEYS).values(_key(number, key)))
    for coupon in SEED["coupons"]:
        _insert_coupon(connection, coupon)
    for order in SEED["orders"]:
        if order["status"] != "checkout-draft":
            _insert_order(connection, order)
    for order_id, notes in SEED["order_notes"].items():
        for note in notes:
            if order_id != "69":
                connection.execute(insert(ORDER_NOTES).values(_note(int(order_id), note)))
    for order_id, refunds in SEED["order_refunds"].items():
        for refund in refunds:
            connection.execute(insert(ORDER_REFUNDS).values(_refund(int(order_id), refund)))
            for line in refund["line_items"]:
                identity = {"order_id": int(order_id), "item_id": line["id"]}
                _metadata(connection, ITEM_METADATA, identity, line["meta_data"])
    for webhook in SEED["webhooks"]:
        connection.execute(insert(WEBHOOKS).values(_webhook(webhook)))
    _set_sequences(connection)


def _set_sequences(connection):
    ids = SEED["about"]["next_ids"]
    following = {
        **dict.fromkeys(("coupons", "orders", "order_refunds"), 76),
        "users": ids["customer"], "order_notes": ids["note"], "webhooks": ids["webhook"],
        **dict.fromkeys(("coupon_metadata", "order_metadata", "item_metadata"), 3000),
        "customer_metadata": 1000, "redemptions": 1000, "refund_metadata": 1000,
        "item_ids": ids["order line"],
    }  # fmt: skip
    for table, number in following.items():
        if connection.dialect.name == "sqlite":
            connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :n"), {"n": table})
            row = {"n": table, "s": number - 1}
            connection.execute(text("INSERT INTO sqlite_sequence VALUES (:n, :s)"), row)
        else:
            connection.execute(
                text(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {number}, false)")
            )


def _metadata(connection, table, identity, entries):
    for entry in entries:
        value = json.dumps(entry["value"], ensure_ascii=False, separators=(",", ":"))
        row = {**identity, "id": entry["id"], "key": entry["key"], "value": value}
        row["internal"] = entry["key"].startswith("_")
        connection.execute(insert(table).values(with_found_value(table, row)))


def _address(prefix, given, names):
    return {f"{prefix}{name}": given.get(name, "") for name in names}


def _addresses(record):
    names = ("first_name", "last_name", "company", "address_1", "address_2", "city", "state",
             "postcode", "country", "phone")  # fmt: skip
    found = {
        **_address("billing_", record["billing"], (*names, "email")),
        **_address("shipping_", record["shipping"], names),
    }
    return {name: value for name, value in found.items() if name in USERS.c}


def _insert_customer(connection, customer):
    account = with_normalized(
        {
            "id": customer["id"],
            "username": customer["username"],
            "email": customer["email"],
            "password_hash": None,
            "first_name": customer["first_name"],
            "last_name": customer["last_name"],
            "created_at": moment(customer["date_created_gmt"]),
            "updated_at": moment(customer["date_modified_gmt"] or customer["date_created_gmt"]),
            **_addresses(customer),
        }
    )
    connection.execute(insert(USERS).values(account))
    role = {
        "user_id": customer["id"], "role": customer["role"], "position": 0,
        "registered_at": account["created_at"],
    }  # fmt: skip
    connection.execute(insert(USER_ROLES).values(role))
    _metadata(connection, CUSTOMER_METADATA, {"customer_id": customer["id"]}, customer["meta_data"])


def _key(number, key):
    return {
        "id": number,
        "user_id": key["user_id"],
        "permission": key["permissions"],
        "description": "",
        "consumer_key_hash": keyed_hash(key["consumer_key"]),
        "consumer_secret_hash": keyed_hash(key["consumer_secret"]),
        "truncated_key": key["consumer_key"][-7:],
        "created_at": moment("2025-01-01T00:00:00"),
        "consumer_secret_encrypted": encrypt(key["consumer_secret"]),
        "resources": "all",
    }


def _insert_coupon(connection, coupon):
    is_trashed = coupon["status"] == "trash" or coupon["status"] in DRAFTS
    expires = coupon["date_expires"]
    connection.execute(
        insert(COUPONS).values(
            {
                "id": coupon["id"],
                "status": "trash" if is_trashed else "published",
                "trashed_at": moment(coupon["date_modified_gmt"]) if is_trashed else None,
                "author_id": 1,
                "code": coupon["code"],
                "type": coupon["discount_type"],
                "created_at": moment(coupon["date_created_gmt"]),
                "updated_at": moment(coupon["date_modified_gmt"]),
                "amount": Decimal(coupon["amount"]),
                "individual_use": coupon["individual_use"],
                "product_ids": coupon["product_ids"],
                "exclude_product_ids": coupon["excluded_product_ids"],
                "usage_limit": coupon["usage_limit"] or 0,
                "usage_limit_per_user": coupon["usage_limit_per_user"] or 0,
                "limit_usage_to_x_items": coupon["limit_usage_to_x_items"] or 0,
                "usage_count": coupon["usage_count"],
                "expiry_date": expires and datetime.fromisoformat(expires).date(),
                "enable_free_shipping": coupon["free_shipping"],
                "product_category_ids": coupon["product_categories"],
                "exclude_product_category_ids": coupon["excluded_product_categories"],
                "exclude_sale_items": coupon["exclude_sale_items"],
                "minimum_amount": _optional(coupon["minimum_amount"]),
                "maximum_amount": _optional(coupon["maximum_amount"]),
                "customer_emails": coupon["email_restrictions"],
                "description": coupon["description"],
                "search_text": search_text(coupon["code"], coupon["description"]),
            }
        )
    )
    kept = [each for each in coupon["meta_data"] if not each["key"].startswith("_wp_")]
    _metadata(connection, COUPON_METADATA, {"coupon_id": coupon["id"]}, kept)
    for number, used_by in enumerate(coupon["used_by"]):
        is_id = used_by.isdigit()
        time = moment(coupon["date_modified_gmt"])
        connection.execute(
            insert(REDEMPTIONS).values(
                coupon_id=coupon["id"],
                code=coupon["code"],
                reference=f"seed-{number}",
                customer_id=int(used_by) if is_id else None,
                email="" if is_id else used_by,
                email_normalized="" if is_id else comparable(used_by),
                status="confirmed",
                holds_slot=False,
                created_at=time,
                updated_at=time,
                confirmed_at=time,
            )
        )


def _optional(text):
    return None if Decimal(text) == 0 else Decimal(text)


def _taxes(item):
    return [
        {"id": tax["id"], "total": tax["total"], "subtotal": tax.get("subtotal") or "0.00"}
        for tax in item["taxes"]
    ]


def _items(order):
    lists = {name: [] for name in KINDS}
    details = {}
    for line in order["line_items"]:
        lists["line_items"].append(
            {
                "id": line["id"], "subtotal": line["subtotal"],
                "subtotal_tax": line["subtotal_tax"], "total": line["total"],
                "total_tax": line["total_tax"], "price": f"{line['price']:.2f}",
                "quantity": line["quantity"], "tax_class": line["tax_class"],
                "name": line["name"], "product_id": line["product_id"], "sku": line["sku"],
                "meta": [
                    {"key": each["key"], "label": each["display_key"], "value": each["value"]}
                    for each in _attributes(line)
                ],
                "variation_id": line["variation_id"], "taxes": _taxes(line),
            }
        )  # fmt: skip
        details[str(line["id"])] = {
            "product_category_ids": [], "on_sale": False, "own_total": True,
            "meta_ids": [each["id"] for each in _attributes(line)],
        }  # fmt: skip
    for line in order["shipping_lines"]:
        lists["shipping_lines"].append(
            {
                "id": line["id"], "method_id": line["method_id"],
                "method_title": line["method_title"], "total": line["total"],
                "total_tax": line["total_tax"], "instance_id": line["instance_id"],
                "taxes": _taxes(line),
            }
        )  # fmt: skip
    for line in order["fee_lines"]:
        lists["fee_lines"].append(
            {
                "id": line["id"], "title": line["name"], "tax_class": line["tax_class"],
                "total": line["total"], "total_tax": line["total_tax"], "taxes": _taxes(line),
            }
        )  # fmt: skip
    for line in order["tax_lines"]:
        lists["tax_lines"].append(
            {
                "id": line["id"], "rate_id": line["rate_id"], "code": line["rate_code"],
                "title": line["label"], "total": line["tax_total"], "compound": line["compound"],
            }
        )  # fmt: skip
    for line in order["coupon_lines"]:
        amount = f"{Decimal(line['discount']):.2f}"
        lists["coupon_lines"].append({"id": line["id"], "code": line["code"], "amount": amount})
        details[str(line["id"])] = {"applied": False}
    return lists, details


def _insert_order(connection, order):
    lists, details = _items(order)
    names = ("line_items", "shipping_lines", "fee_lines", "coupon_lines", "tax_lines")
    ids = [line["id"] for name in names for line in order[name]]
    is_trashed = order["status"] == "trash"
    refunded = sum((Decimal(each["total"]) for each in order["refunds"]), Decimal(0))
    values = {
        "id": order["id"],
        "customer_id": order["customer_id"] or None,
        "order_number": order["number"],
        "order_key": order["order_key"],
        "status": order["status"],
        "status_before_trash": "pending" if is_trashed else None,
        "trashed_at": moment(order["date_modified_gmt"]) if is_trashed else None,
        "currency": order["currency"],
        "created_at": moment(order["date_created_gmt"]),
        "updated_at": moment(order["date_modified_gmt"]),
        "completed_at": moment(order["date_completed_gmt"]),
        "paid_at": moment(order["date_paid_gmt"]),
        "payment_paid": bool(order["date_paid_gmt"]),
        "payment_method_id": order["payment_method"],
        "payment_method_title": order["payment_method_title"],
        "transaction_id": order["transaction_id"],
        "note": order["customer_note"],
        "customer_ip": order["customer_ip_address"],
        "customer_user_agent": order["customer_user_agent"],
        "created_via": order["created_via"],
        "parent_id": order["parent_id"] or None,
        "prices_include_tax": order["prices_include_tax"],
        "cart_hash": order["cart_hash"],
        "version": order["version"],
        "discount_tax": Decimal(order["discount_tax"]),
        "total_refunded": -refunded,
        "shipping_tax": Decimal(order["shipping_tax"]),
        "next_item_id": max(ids, default=0) + 1,
        "item_details": details,
        **lists,
        **{name: value for name, value in _addresses(order).items() if name in ORDERS.c},
    }
    values |= items_of(values).columns_with_sums(int(Decimal(order["shipping_tax"]) * 100))
    values |= {
        "total": Decimal(order["total"]),
        "cart_tax": Decimal(order["cart_tax"]),
        "total_shipping": Decimal(order["shipping_total"]),
        "total_discount": Decimal(order["discount_total"]),
        "next_item_id": values["next_item_id"],
    }
    values |= derived_columns(values)
    connection.execute(insert(ORDERS).values(values))
    _metadata(connection, ORDER_METADATA, {"order_id": order["id"]}, order["meta_data"])
    for name in names:
        for line in order[name]:
            identity = {"order_id": order["id"], "item_id": line["id"]}
            others = [each for each in line["meta_data"] if each not in _attributes(line)]
            _metadata(connection, ITEM_METADATA, identity, [*others, *_of_fee(line)])


def _attributes(line):
    """The metadata of a line that an import makes its attributes."""
    is_line = "variation_id" in line
    return [each for each in line["meta_data"] if is_line and not each["key"].startswith("_")]


def _of_fee(line):
    """The fields of a fee that are metadata at the source and in the service."""
    values = {"_fee_amount": line.get("amount"), "_tax_status": line.get("tax_status")}
    start = 2000 + line["id"] * 2
    is_fee = "amount" in line
    return [
        {"id": start + at, "key": key, "value": value}
        for at, (key, value) in enumerate(values.items())
        if is_fee and value
    ]


def _note(order_id, note):
    return {
        "id": note["id"],
        "order_id": order_id,
        "created_at": moment(note["date_created_gmt"]),
        "note": note["note"],
        "customer_note": note["customer_note"],
        "author": "" if note["author"] == "WooCommerce" else note["author"],
    }


def _refund(order_id, refund):
    lines = [
        {
            "id": int(_refunded(line)),
            "item_id": line["id"],
            "quantity": -line["quantity"],
            "total": line["total"].removeprefix("-"),
            "total_tax": line["total_tax"].removeprefix("-"),
            "list": "line_items",
            "name": line["name"],
            "product_id": line["product_id"],
            "sku": line["sku"],
            "tax_class": line["tax_class"],
        }
        for line in refund["line_items"]
    ]
    return {
        "id": refund["id"],
        "order_id": order_id,
        "created_at": moment(refund["date_created_gmt"]),
        "updated_at": moment(refund["date_created_gmt"]),
        "amount": Decimal(refund["amount"]),
        "reason": refund["reason"],
        "refunded_by": refund["refunded_by"] or None,
        "line_items": lines,
    }


def _refunded(line):
    return next(each["value"] for each in line["meta_data"] if each["key"] == "_refunded_item_id")


def _webhook(webhook):
    return {
        "id": webhook["id"],
        "name": webhook["name"],
        "format": "legacy",
        "is_bare": True,
        "status": webhook["status"],
        "disabled_reason": "user" if webhook["status"] == "disabled" else None,
        "topics": [webhook["topic"]],
        "delivery_url": webhook["delivery_url"],
        "secret_encrypted": encrypt(webhook["secret"]),
        "user_id": 1,
        "created_at": moment(webhook["date_created_gmt"]),
        "updated_at": moment(webhook["date_modified_gmt"] or webhook["date_created_gmt"]),
        "position": 0,
        "failure_count": 0,
    }


# Two permissions of customer 5, which one case of the recording adds.
_DOWNLOADS = [
    {
        "order_id": 47, "product_id": 13, "download_id": "dl-1", "download_name": "Manual.pdf",
        "download_url": "https://shop.example/?download_file=13&order=wc_order_seed00000007"
        "&email=customer01%40mail.example&key=dl-1",
        "file_name": "Manual.pdf", "file_url": "https://shop.example/files/manual.pdf",
        "downloads_remaining": remaining, "access_expires": moment(expires),
    }
    for remaining, expires in ((5, None), (None, "2030-01-01T00:00:00"))
]  # fmt: skip


_inserted = {}
"""The SQL that inserts the seed, by database, as soon as it was inserted once."""


def reset(app, *, with_downloads=False):
    """Empty the shop of an app and insert the seed."""
    from tests.databases import empty, insertions  # noqa: PLC0415  # needs the plugins of pytest

    with app.app_context(), db.engine.begin() as connection:
        empty(connection)
        statements = _inserted.get(connection.dialect.name)
        if statements is None:
            insert_seed(connection)
            _inserted[connection.dialect.name] = insertions(connection)
        else:
            for statement in statements:
                connection.exec_driver_sql(statement)
            _set_sequences(connection)
        if with_downloads:
            # A permission belongs to the customer of its order.
            connection.execute(text("UPDATE orders SET customer_id = 5 WHERE id = 47"))
            connection.execute(insert(DOWNLOADS), _DOWNLOADS)
    app.extensions.pop("shop_api_principals", None)
