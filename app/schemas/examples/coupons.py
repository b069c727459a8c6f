"""Examples of coupons and batches of coupons."""

from datetime import UTC, datetime
from typing import Any

from app.schemas.coupons.coupon import CouponCreate, CouponSchema

NEW_COUPON: dict[str, object] = {
    "code": "Summer-2030",
    "type": "percent",
    "amount": "15",
    "usage_limit": 100,
    "expiry_date": "2030-12-31",
    "description": "Summer newsletter",
}
_AT = datetime(2026, 11, 20, 9, 38, tzinfo=UTC)
COUPON: dict[str, Any] = CouponSchema().dump(
    {**CouponCreate().load(NEW_COUPON), "id": 1, "created_at": _AT, "updated_at": _AT}
)
"""What the creation of the new coupon returns."""
COUPON_UPDATE: dict[str, object] = {"amount": "20.00", "exclude_sale_items": True}
UPDATED_COUPON = COUPON | {"amount": "20.00", "exclude_sale_items": True}
TRASHED_COUPON = COUPON | {"trashed_at": "2026-11-21T10:00:00Z"}
COUPON_ITEMS: list[dict[str, object]] = [
    NEW_COUPON,
    {"id": 1, **COUPON_UPDATE},
    {"code": "summer-2030"},
]
COUPON_RESULTS: list[dict[str, object]] = [
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
NEW_BATCH: dict[str, object] = {
    "name": "Spring mailing",
    "count": 1000,
    "prefix": "SPRING-",
    "pattern": "####-####",
    "coupon": {"type": "percent", "amount": "10", "usage_limit": 1, "expiry_date": "2030-12-31"},
}
BATCH: dict[str, object] = {
    "id": 1,
    "name": "Spring mailing",
    "created_at": "2026-11-20T09:38:00Z",
    "count": 1000,
    "prefix": "SPRING-",
    "pattern": "####-####",
    "charset": "abcdefghjklmnpqrstuvwxyz23456789",
    "unused": 1000,
    "reserved": 0,
    "used": 0,
    "trashed": 0,
}
