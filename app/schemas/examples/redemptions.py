"""Examples of carts, evaluations and redemptions."""

CART: dict[str, object] = {
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
EVALUATION: dict[str, object] = {
    "subtotal": "27.90",
    "discount": "2.79",
    "total": "25.11",
    "free_shipping": False,
    "coupons": [
        {"code": "demo-percent", "id": 1, "applicable": True, "discount": "2.79", "reasons": []},
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
NEW_REDEMPTION: dict[str, object] = {
    "code": "demo-percent",
    "reference": "cart-4711",
    "email": "ada@example.com",
    "amount": "2.79",
    "expires_in": 1800,
}
REDEMPTION: dict[str, object] = {
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
    "confirmed_at": None,
    "expires_at": "2026-11-20T10:08:00Z",
}
CONFIRMED_REDEMPTION = REDEMPTION | {
    "status": "confirmed",
    "confirmed_at": "2026-11-20T09:38:00Z",
    "expires_at": None,
}
RELEASED_REDEMPTION = REDEMPTION | {"status": "released"}
