"""Examples of orders, downloads and order notes."""

from typing import Any

from app.schemas.examples.customers import BILLING_ADDRESS, SHIPPING_ADDRESS

NEW_ORDER: dict[str, object] = {
    "currency": "EUR",
    "payment_details": {"method_id": "bacs", "method_title": "Bank transfer", "paid": True},
    "billing_address": BILLING_ADDRESS,
    "shipping_address": SHIPPING_ADDRESS,
    "customer_ip": "192.0.2.1",
    "customer_user_agent": "Mozilla/5.0",
    "shipping_tax": "0.90",
    "line_items": [
        {
            "product_id": 4,
            "sku": "SKU-004",
            "name": "Mug, blue",
            "quantity": 2,
            "price": "4.00",
            "subtotal_tax": "1.60",
            "total_tax": "1.60",
        }
    ],
    "shipping_lines": [{"method_id": "flat_rate", "method_title": "Flat rate", "total": "4.00"}],
}
ORDER: dict[str, Any] = {
    "id": 1,
    "order_number": "1",
    "order_key": "order_5f3d2c1b0a998",
    "created_at": "2026-11-20T09:38:00Z",
    "updated_at": "2026-11-20T09:38:00Z",
    "completed_at": None,
    "status": "processing",
    "currency": "EUR",
    "total": "14.50",
    "subtotal": "8.00",
    "total_line_items_quantity": 2,
    "total_tax": "2.50",
    "total_shipping": "4.00",
    "cart_tax": "1.60",
    "shipping_tax": "0.90",
    "total_discount": "0.00",
    "shipping_methods": "Flat rate",
    "payment_details": {"method_id": "bacs", "method_title": "Bank transfer", "paid": True},
    "billing_address": BILLING_ADDRESS,
    "shipping_address": SHIPPING_ADDRESS,
    "note": "",
    "customer_ip": "192.0.2.1",
    "customer_user_agent": "Mozilla/5.0",
    "customer_id": 0,
    "line_items": [
        {
            "id": 1,
            "subtotal": "8.00",
            "subtotal_tax": "1.60",
            "total": "8.00",
            "total_tax": "1.60",
            "price": "4.00",
            "quantity": 2,
            "tax_class": None,
            "name": "Mug, blue",
            "product_id": 4,
            "sku": "SKU-004",
            "meta": [],
            "variation_id": 0,
            "taxes": [],
        }
    ],
    "shipping_lines": [
        {
            "id": 2,
            "method_id": "flat_rate",
            "method_title": "Flat rate",
            "total": "4.00",
            "total_tax": "0.00",
            "instance_id": "",
            "taxes": [],
        }
    ],
    "tax_lines": [],
    "fee_lines": [],
    "coupon_lines": [],
    "transaction_id": "",
    "paid_at": "2026-11-20T09:38:00Z",
    "created_via": "rest-api",
    "parent_id": 0,
    "prices_include_tax": False,
    "discount_tax": "0.00",
    "cart_hash": "",
    "version": "",
    "customer": {
        "id": 0,
        "email": "accounts@example.com",
        "first_name": "Ada",
        "last_name": "Lovelace",
        "billing_address": BILLING_ADDRESS,
        "shipping_address": SHIPPING_ADDRESS,
    },
}
ORDER_UPDATE: dict[str, object] = {
    "status": "completed",
    "line_items": [{"id": 1, "quantity": 1, "total_tax": "0.80"}],
}
UPDATED_ORDER = ORDER | {
    "status": "completed",
    "completed_at": "2026-11-20T09:38:00Z",
    "total": "9.70",
    "subtotal": "4.00",
    "total_line_items_quantity": 1,
    "total_tax": "1.70",
    "cart_tax": "0.80",
    "discount_tax": "0.80",
    "line_items": [
        ORDER["line_items"][0]
        | {"subtotal": "4.00", "total": "4.00", "total_tax": "0.80", "quantity": 1}
    ],
}
ORDER_ITEMS: list[dict[str, object]] = [
    NEW_ORDER,
    {"id": 1, **ORDER_UPDATE},
    {"line_items": [{"product_id": 4, "quantity": 2}]},
]
ORDER_RESULTS: list[dict[str, object]] = [
    ORDER,
    UPDATED_ORDER,
    {
        "id": 0,
        "error": {
            "code": "shop_api_invalid_order_item",
            "message": "order.line_items[0]: needs a price, a subtotal or a total.",
        },
    },
]
TRASHED_ORDER = {
    **{key: value for key, value in ORDER.items() if key != "customer"},
    "trashed_at": "2026-11-20T09:38:00Z",
    "customer": ORDER["customer"],
}
DOWNLOAD: dict[str, object] = {
    "download_url": "https://shop.example/?download_file=12&order=order_5f3d2c1b0a998&key=file-12",
    "download_id": "file-12",
    "product_id": 12,
    "download_name": "Recipe collection (PDF)",
    "order_id": 1,
    "order_key": "order_5f3d2c1b0a998",
    "downloads_remaining": "3",
    "access_expires": "2028-11-20T09:38:00Z",
    "file": {"name": "Recipe collection (PDF)", "file": "https://shop.example/files/12.pdf"},
}
NEW_ORDER_NOTE: dict[str, object] = {"note": "Packed, waiting for the courier."}
ORDER_NOTE: dict[str, object] = {
    "id": 1,
    "created_at": "2026-11-20T09:38:00Z",
    "note": "Packed, waiting for the courier.",
    "customer_note": False,
}
ORDER_NOTE_UPDATE: dict[str, object] = {"note": "Handed to the courier."}
UPDATED_ORDER_NOTE = ORDER_NOTE | ORDER_NOTE_UPDATE
NEW_ORDER_REFUND: dict[str, object] = {
    "reason": "One mug arrived broken.",
    "line_items": [{"id": 1, "quantity": 1, "total": "4.00", "total_tax": "0.80"}],
}
ORDER_REFUND: dict[str, object] = {
    "id": 1,
    "order_id": 1,
    "created_at": "2026-11-20T09:38:00Z",
    "updated_at": "2026-11-20T09:38:00Z",
    "amount": "4.80",
    "reason": "One mug arrived broken.",
    "refunded_by": 1,
    "line_items": [{"id": 1, "quantity": 1, "total": "4.00", "total_tax": "0.80"}],
}
ORDER_REFUND_UPDATE: dict[str, object] = {"reason": "The mug arrived broken."}
UPDATED_ORDER_REFUND = ORDER_REFUND | ORDER_REFUND_UPDATE
ORDER_STATUSES = {"pending": "Pending payment", "processing": "Processing"}
