"""Examples of customers."""

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
NEW_CUSTOMER: dict[str, object] = {
    "email": "ada@example.com",
    "first_name": "Ada",
    "last_name": "Lovelace",
    "billing_address": BILLING_ADDRESS,
    "shipping_address": SHIPPING_ADDRESS,
}
CUSTOMER: dict[str, object] = {
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
CUSTOMER_UPDATE: dict[str, object] = {
    "first_name": "Augusta Ada",
    "billing_address": {"city": "Ockham"},
}
UPDATED_CUSTOMER = CUSTOMER | {
    "first_name": "Augusta Ada",
    "billing_address": BILLING_ADDRESS | {"city": "Ockham"},
}
CUSTOMER_ITEMS: list[dict[str, object]] = [
    NEW_CUSTOMER,
    {"id": 2, **CUSTOMER_UPDATE},
    {"email": "ada@example.com"},
]
CUSTOMER_RESULTS: list[dict[str, object]] = [
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


NEW_MERGE = {"customer_id": 8}
MERGE = {
    "customer": CUSTOMER,
    "customer_id": 8,
    "orders": 3,
    "redemptions": 1,
    "metadata": 0,
    "guest_orders": 2,
    "reasons": [],
}
NEW_CLAIM = {"order_ids": [41, 44]}
CLAIM = {"orders": 2, "order_ids": [41, 44]}
CLAIMED = {"orders": 2, "complete": True}
