"""Examples of persons."""

PERSON: dict[str, object] = {"customer_id": 2}
_NUMBERS = {
    "customers": 1,
    "orders": 1,
    "order_notes": 2,
    "order_refunds": 0,
    "downloads": 0,
    "redemptions": 1,
    "keys": 0,
    "sessions": 0,
    "coupons": 1,
    "imports": 0,
}
PREVIEW: dict[str, object] = {
    "customer_id": 2,
    "emails": ["ann@example.com"],
    "other_emails": ["office@example.com"],
    "complete": False,
    "erased": _NUMBERS,
    "reasons": [],
}
ERASURE: dict[str, object] = {"customer_id": 2, "complete": True, "erased": _NUMBERS}
DATA: dict[str, object] = {
    "generated_at": "2026-11-20T09:38:00Z",
    "customer_ids": [2],
    "emails": ["ann@example.com"],
    "other_emails": [],
    "customers": [],
    "orders": [],
    "refunds": [],
    "redemptions": [],
    "events": [],
    "keys": [],
    "sessions": [],
    "coupons": [{"id": 1, "code": "summer"}],
    "refused_codes": [],
}
