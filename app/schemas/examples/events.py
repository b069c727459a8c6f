"""Examples of events."""

from __future__ import annotations

from typing import Any

from app.schemas.examples.coupons import COUPON

EVENT: dict[str, Any] = {
    "id": 1,
    "type": "coupon.created",
    "resource": "coupon",
    "resource_id": 1,
    "created_at": "2026-11-20T09:38:00Z",
    "data": {"coupon": COUPON},
    "request_id": "5b1f0c9a6d7e48f2a3c4d5e6f7081920",
    "user_id": 1,
}
