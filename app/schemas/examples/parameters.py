"""Descriptions and examples of path parameters."""

from __future__ import annotations

from typing import Any

PATH: dict[str, tuple[str, Any]] = {
    "coupon_id": ("Coupon ID.", 1),
    "code": ("Coupon code, in any letter case.", "demo-percent"),
    "customer_id": ("Customer (user) ID.", 2),
    "email": ("E-mail address of the account, in any letter case.", "grace@example.com"),
    "order_id": ("Order ID.", 1),
    "batch_id": ("Batch ID.", 1),
    "note_id": ("Note ID.", 1),
    "redemption_id": ("Redemption ID.", 1),
    "event_id": ("Event ID.", 1),
    "key_id": ("Key ID.", 1),
    "webhook_id": ("Webhook ID.", 1),
    "delivery_id": ("Delivery ID.", 1),
}
"""Description and example of each path parameter."""
