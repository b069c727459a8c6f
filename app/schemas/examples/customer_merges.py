"""Examples of merging accounts and of claiming orders of guests."""

from app.schemas.examples.customers import CUSTOMER

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
