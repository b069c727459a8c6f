"""Examples of events."""

from typing import Any

from app.schemas.examples.campaigns import CAMPAIGN_IN_EVENT
from app.schemas.examples.coupons import BATCH, COUPON
from app.schemas.examples.customers import CUSTOMER
from app.schemas.examples.orders import ORDER, ORDER_NOTE, ORDER_REFUND
from app.schemas.examples.persons import ERASURE
from app.schemas.examples.webhooks import WEBHOOK

EVENT: dict[str, object] = {
    "id": 1,
    "type": "coupon.created",
    "resource": "coupon",
    "resource_id": 1,
    "created_at": "2026-11-20T09:38:00Z",
    "data": {"coupon": COUPON},
    "request_id": "5b1f0c9a6d7e48f2a3c4d5e6f7081920",
    "user_id": 1,
}


_RECORDS: dict[str, dict[str, object]] = {
    "campaign": CAMPAIGN_IN_EVENT,
    "coupon": COUPON,
    "customer": CUSTOMER,
    "order": ORDER,
    "order_note": ORDER_NOTE,
    "order_refund": ORDER_REFUND,
    "coupon_batch": BATCH,
    "import": {"id": 1, "source": "woocommerce", "coupons": 2, "customers": 3, "orders": 5},
    "person": {"id": 2, **ERASURE, "order_ids": [7]},
    "webhook": WEBHOOK,
    "key": {"id": 1, "user_id": 1, "permission": "read", "resources": ["all"], "expires_at": None},
    "invitation": {"id": 1, "login": "grace", "role": "shop_manager"},
}


_USE = {"redemption": {"id": 1, "status": "reserved", "reference": "order-7", "order_id": 7}}

_MORE: dict[str, dict[str, Any]] = {
    "coupon.redeemed": _USE,
    "customer.merged": {"merged": {"id": 8, "orders": 3, "redemptions": 1}},
    "coupon.released": {"redemption": {**_USE["redemption"], "status": "released"}},
    **{
        f"order_note.{what}": {"order_id": ORDER["id"]}
        for what in ("created", "updated", "deleted")
    },
}


def event_data(event_type: str) -> dict[str, object]:
    """Return an example of the ``data`` of an event type; of a plugin's type, only an ID."""
    resource, _, what = event_type.partition(".")
    record: dict[str, Any] = _RECORDS.get(resource, {"id": 1})
    more = _MORE.get(event_type, {})
    if what == "deleted":
        return {resource: {"id": record["id"]}, "permanent": True, **more}
    return {resource: record, **more}


UNDO: dict[str, object] = {
    "event_id": 481,
    "resource": "coupon",
    "resource_id": 1,
    "possible": True,
    "reasons": [],
    "changes": {"before": {"amount": "7.50"}, "after": {"amount": "5.00"}},
}
