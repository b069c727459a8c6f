"""Examples of reports."""

from app.schemas.examples.coupons import COUPON
from app.schemas.examples.customers import CUSTOMER

ORDER_FIGURES = {
    "orders": 2,
    "items": 5,
    "total": "83.90",
    "discount": "9.30",
    "shipping": "9.80",
    "tax": "11.69",
    "fees": "0.00",
    "refunds": 1,
    "refunded": "20.00",
    "net": "42.41",
    "average_order": "41.95",
}
SALES_FIGURES = {**ORDER_FIGURES, "customers": 2, "new_customers": 1, "uses": 2}
COUPON_FIGURES = {
    "uses": 2,
    "orders": 2,
    "customers": 2,
    "discount": "9.30",
    "revenue": "83.90",
    "average_order": "41.95",
    "new_customers": 1,
    "first_use": "2026-11-20T09:38:00Z",
    "last_use": "2026-11-20T17:05:00Z",
}
_NO_ORDERS = {
    name: 0 if isinstance(value, int) else "0.00" for name, value in SALES_FIGURES.items()
}
_NO_USES = {
    name: 0 if isinstance(value, int) else "0.00" for name, value in COUPON_FIGURES.items()
} | {"first_use": None, "last_use": None}
_INTERVAL = {"start": "2026-11-20T00:00:00Z", "label": "2026-11-20"}
_COUPON = {
    "id": COUPON["id"],
    "code": COUPON["code"],
    "type": COUPON["type"],
    "status": "published",
}

SALES = {
    "currency": "USD",
    "currencies": [],
    "interval": "day",
    "time_zone": "UTC",
    "from": "2026-11-20",
    "to": "2026-11-20",
    "totals": {**SALES_FIGURES, "previous": _NO_ORDERS},
    "intervals": [{**_INTERVAL, **SALES_FIGURES}],
}
COUPONS = [{"coupon": _COUPON, **COUPON_FIGURES}]
COUPON_REPORT = {
    "coupon": _COUPON,
    "totals": {**COUPON_FIGURES, "previous": _NO_USES},
    "intervals": [{**_INTERVAL, **COUPON_FIGURES}],
}
CUSTOMERS = [
    {
        "customer": {name: CUSTOMER[name] for name in ("id", "email", "first_name", "last_name")},
        **ORDER_FIGURES,
    }
]
ORDERS = [
    {"status": "processing", "label": "Processing", "orders": 1, "total": "35.40"},
    {"status": "completed", "label": "Completed", "orders": 1, "total": "48.50"},
]
REFUSALS = [
    {
        "code": COUPON["code"],
        "coupon_id": COUPON["id"],
        "reason": "minimum_amount",
        "count": 12,
        "first_at": "2026-11-20T09:38:00Z",
        "last_at": "2026-11-20T17:05:00Z",
    }
]
