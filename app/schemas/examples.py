"""Examples for the OpenAPI document. Tests send the requests and compare what they show."""

from __future__ import annotations

from typing import Any

NEW_COUPON: dict[str, Any] = {
    "code": "Summer-2030",
    "type": "percent",
    "amount": "15",
    "usage_limit": 100,
    "expiry_date": "31 December 2030",
    "description": "Summer newsletter",
}
COUPON: dict[str, Any] = {
    "id": 1,
    "code": "summer-2030",
    "type": "percent",
    "created_at": "2026-11-20T09:38:00Z",
    "updated_at": "2026-11-20T09:38:00Z",
    "amount": "15.00",
    "individual_use": False,
    "product_ids": [],
    "exclude_product_ids": [],
    "usage_limit": 100,
    "usage_limit_per_user": None,
    "limit_usage_to_x_items": 0,
    "usage_count": 0,
    "expiry_date": "2030-12-31T00:00:00Z",
    "enable_free_shipping": False,
    "product_category_ids": [],
    "exclude_product_category_ids": [],
    "exclude_sale_items": False,
    "minimum_amount": "0.00",
    "maximum_amount": "0.00",
    "customer_emails": [],
    "description": "Summer newsletter",
}
COUPON_UPDATE: dict[str, Any] = {"amount": "20.00", "exclude_sale_items": True}
UPDATED_COUPON = COUPON | {"amount": "20.00", "exclude_sale_items": True}
TRASHED_COUPON = COUPON | {"trashed_at": "2026-11-21T10:00:00Z"}
COUPON_ITEMS: list[dict[str, Any]] = [
    NEW_COUPON,
    {"id": 1, **COUPON_UPDATE},
    {"code": "summer-2030"},
]
COUPON_RESULTS: list[dict[str, Any]] = [
    COUPON,
    UPDATED_COUPON,
    {
        "id": 0,
        "error": {
            "code": "shop_api_coupon_code_already_exists",
            "message": "Another published coupon already has this code.",
        },
    },
]

SHIPPING_ADDRESS = {
    "first_name": "Ada",
    "last_name": "Lovelace",
    "company": "Analytical Engines Ltd",
    "address_1": "12 St James's Square",
    "address_2": "",
    "city": "London",
    "state": "",
    "postcode": "SW1Y 4JH",
    "country": "GB",
}
BILLING_ADDRESS = SHIPPING_ADDRESS | {"email": "accounts@example.com", "phone": "+44 20 7946 0000"}
NEW_CUSTOMER: dict[str, Any] = {
    "email": "ada@example.com",
    "first_name": "Ada",
    "last_name": "Lovelace",
    "billing_address": BILLING_ADDRESS,
    "shipping_address": SHIPPING_ADDRESS,
}
CUSTOMER: dict[str, Any] = {
    "id": 2,
    "created_at": "2026-11-20T09:38:00Z",
    "email": "ada@example.com",
    "first_name": "Ada",
    "last_name": "Lovelace",
    "username": "ada",
    "role": "customer",
    "last_order_id": None,
    "last_order_date": None,
    "orders_count": 0,
    "total_spent": "0.00",
    "avatar_url": "https://secure.gravatar.com/avatar/"
    "3e3417d7ef77d5932a6734b916515ed5?s=96&d=mm&r=g",
    "billing_address": BILLING_ADDRESS,
    "shipping_address": SHIPPING_ADDRESS,
}
CUSTOMER_UPDATE: dict[str, Any] = {
    "first_name": "Augusta Ada",
    "billing_address": {"city": "Ockham"},
}
UPDATED_CUSTOMER = CUSTOMER | {
    "first_name": "Augusta Ada",
    "billing_address": BILLING_ADDRESS | {"city": "Ockham"},
}
CUSTOMER_ITEMS: list[dict[str, Any]] = [
    NEW_CUSTOMER,
    {"id": 2, **CUSTOMER_UPDATE},
    {"email": "ada@example.com"},
]
CUSTOMER_RESULTS: list[dict[str, Any]] = [
    CUSTOMER,
    UPDATED_CUSTOMER,
    {
        "id": 0,
        "error": {
            "code": "registration-error-email-exists",
            "message": "Another account already has this e-mail address.",
        },
    },
]

NEW_ORDER: dict[str, Any] = {
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
        }
    ],
    "shipping_lines": [
        {"id": 2, "method_id": "flat_rate", "method_title": "Flat rate", "total": "4.00"}
    ],
    "tax_lines": [],
    "fee_lines": [],
    "coupon_lines": [],
    "customer": {
        "id": 0,
        "email": "accounts@example.com",
        "first_name": "Ada",
        "last_name": "Lovelace",
        "billing_address": BILLING_ADDRESS,
        "shipping_address": SHIPPING_ADDRESS,
    },
}
ORDER_UPDATE: dict[str, Any] = {
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
    "line_items": [
        ORDER["line_items"][0]
        | {"subtotal": "4.00", "total": "4.00", "total_tax": "0.80", "quantity": 1}
    ],
}
ORDER_ITEMS: list[dict[str, Any]] = [
    NEW_ORDER,
    {"id": 1, **ORDER_UPDATE},
    {"line_items": [{"product_id": 4, "quantity": 2}]},
]
ORDER_RESULTS: list[dict[str, Any]] = [
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
DOWNLOAD: dict[str, Any] = {
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
NEW_ORDER_NOTE: dict[str, Any] = {"note": "Packed, waiting for the courier."}
ORDER_NOTE: dict[str, Any] = {
    "id": 1,
    "created_at": "2026-11-20T09:38:00Z",
    "note": "Packed, waiting for the courier.",
    "customer_note": False,
}
ORDER_NOTE_UPDATE: dict[str, Any] = {"note": "Handed to the courier."}
UPDATED_ORDER_NOTE = ORDER_NOTE | ORDER_NOTE_UPDATE
ORDER_STATUSES = {"pending": "Pending payment", "processing": "Processing"}

CART: dict[str, Any] = {
    "customer_id": 0,
    "email": "ada@example.com",
    "coupons": ["demo-percent", "demo-vip"],
    "items": [
        {
            "product_id": 7,
            "product_category_ids": [3],
            "quantity": 2,
            "price": "13.95",
            "on_sale": False,
        }
    ],
}
EVALUATION: dict[str, Any] = {
    "subtotal": "27.90",
    "discount": "2.79",
    "total": "25.11",
    "free_shipping": False,
    "coupons": [
        {
            "code": "demo-percent",
            "id": 1,
            "applicable": True,
            "discount": "2.79",
            "reasons": [],
        },
        {
            "code": "demo-vip",
            "id": 2,
            "applicable": False,
            "discount": "0.00",
            "reasons": [
                {
                    "code": "minimum_amount",
                    "message": "The subtotal of 27.90 is below the minimum amount of 100.00.",
                }
            ],
        },
    ],
    "items": [{"index": 0, "subtotal": "27.90", "discount": "2.79", "total": "25.11"}],
}
NEW_REDEMPTION: dict[str, Any] = {
    "code": "demo-percent",
    "reference": "cart-4711",
    "email": "ada@example.com",
    "amount": "2.79",
    "expires_in": 1800,
}
REDEMPTION: dict[str, Any] = {
    "id": 1,
    "coupon_id": 1,
    "code": "demo-percent",
    "reference": "cart-4711",
    "order_id": None,
    "customer_id": 0,
    "email": "ada@example.com",
    "amount": "2.79",
    "status": "reserved",
    "created_at": "2026-11-20T09:38:00Z",
    "updated_at": "2026-11-20T09:38:00Z",
    "expires_at": "2026-11-20T10:08:00Z",
}
CONFIRMED_REDEMPTION = REDEMPTION | {"status": "confirmed", "expires_at": None}
RELEASED_REDEMPTION = REDEMPTION | {"status": "released"}
