"""The rows that each write locks on PostgreSQL, in order, each table and strength once.

A missing lock shows only when two requests meet. Here, each is missing in one.
"""

import re

import pytest

from app.services.maintenance import cleanup
from app.worker.loop import CycleInput, run_cycle
from tests.auth.test_permissions import NATIVE, operations_of, request_of

__all__ = ["request_of"]  # a fixture

pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True, scope="session")

# Locks, and the operations that take them in a small shop. Other operations take none.
OPERATIONS = {
    "campaigns UPDATE": "updateCampaign deleteCampaign",
    "coupons UPDATE": "updateCoupon deleteCoupon bulkCoupons restoreCoupon undoEvent",
    "redemptions UPDATE": "deleteCouponBatch",
    "users UPDATE": "createCustomer updateCustomer bulkCustomers",
    (
        "users UPDATE, orders UPDATE, events UPDATE, idempotency_persons UPDATE, advisory, "
        "webhooks UPDATE"
    ): "deleteCustomer",
    "orders UPDATE, users UPDATE, webhooks UPDATE": "mergeCustomer",
    "orders UPDATE, users UPDATE": "claimCustomerOrders",
    (
        "orders UPDATE, users UPDATE, idempotency_persons UPDATE, events UPDATE, advisory, "
        "webhooks UPDATE"
    ): "erasePerson",
    "orders UPDATE": (
        "updateOrder deleteOrder bulkOrders emptyOrderTrash restoreOrder createOrderRefund "
        "updateOrderRefund deleteOrderRefund"
    ),
    "orders KEY SHARE, users KEY SHARE": "createOrderNote",
    "orders KEY SHARE, order_notes UPDATE, users KEY SHARE": "updateOrderNote",
    "orders KEY SHARE, order_notes UPDATE": "deleteOrderNote",
    "coupons KEY SHARE": "createRedemption",
    "coupons NO KEY UPDATE, redemptions UPDATE, coupons KEY SHARE": (
        "confirmRedemption releaseRedemption"
    ),
    "users NO KEY UPDATE": "createImport",
    "import_runs UPDATE": "startImport cancelImport",
    "api_keys UPDATE": "createApiKey updateApiKey deleteApiKey rotateApiKey",
    "advisory": "createWebhook",
    "webhooks UPDATE": "updateWebhook deleteWebhook rotateWebhookSecret pingWebhook",
    "webhooks UPDATE, advisory": "replayWebhook",
    "webhooks UPDATE, webhook_deliveries UPDATE": "redeliverWebhookDelivery",
}

# Uses of coupons lock the campaigns and coupons that have limits exclusively, and hold others.
CAMPAIGN, COUPON, HELD = "campaigns NO KEY UPDATE", "coupons NO KEY UPDATE", "coupons KEY SHARE"
USE = f"{COUPON}, redemptions UPDATE, {HELD}"
LINES = f"{CAMPAIGN}, {HELD}, {COUPON}"
REMOVAL = "events UPDATE, idempotency_persons UPDATE, advisory, webhooks UPDATE"
FEW = {"coupon_lines": [{"code": "few"}]}
CHANGES = [
    {"id": "{many}", "status": "cancelled"},
    {"coupon_lines": [{"code": "few"}, {"code": "free"}]},
]
STEPS = [
    # a request with its body, its locks, and a name for the ID of its record
    ("POST /redemptions", {"redemption": {"code": "free", "reference": "a"}}, HELD, "a"),
    ("POST /redemptions", {"redemption": {"code": "few", "reference": "b"}}, COUPON, "b"),
    (
        "POST /redemptions",
        {"redemption": {"code": "mailing", "reference": "c"}},
        f"{CAMPAIGN}, {HELD}",
        "c",
    ),
    ("POST /redemptions/{a}/confirm", None, USE, ""),
    ("POST /redemptions/{b}/confirm", None, USE, ""),
    ("POST /redemptions/{c}/confirm", None, f"{CAMPAIGN}, {USE}", ""),
    ("POST /redemptions/{b}/release", None, USE, ""),
    ("POST /redemptions/{c}/release", None, f"{CAMPAIGN}, {USE}", ""),
    ("POST /orders", {"order": {"coupon_lines": [{"code": "free"}]}}, HELD, "one"),
    (
        "POST /orders",
        {"order": {"coupon_lines": [{"code": "few"}, {"code": "mailing"}]}},
        LINES,
        "many",
    ),
    ("PUT /orders/{many}", {"order": {"status": "completed"}}, f"orders UPDATE, {LINES}", ""),
    (
        "PUT /orders/{many}",
        {"order": {"customer_id": "{ann}"}},
        f"orders UPDATE, users KEY SHARE, {LINES}, redemptions UPDATE",
        "",
    ),
    ("PUT /orders/{one}", {"order": FEW}, f"orders UPDATE, {HELD}, {COUPON}", ""),
    ("PUT /orders/{one}", {"order": {"note": "Ring."}}, "orders UPDATE", ""),
    ("DELETE /orders/{many}", None, f"orders UPDATE, {LINES}", ""),
    ("POST /orders/{many}/restore", None, f"orders UPDATE, {LINES}", ""),
    ("POST /orders/bulk", {"orders": CHANGES}, f"orders UPDATE, {LINES}", ""),
    ("POST /orders", {"order": {"parent_id": "{one}"}}, "orders KEY SHARE", ""),
    (
        "PUT /coupons/{free}",
        {"coupon": {"campaign_id": "{campaign}"}},
        "campaigns KEY SHARE, coupons UPDATE",
        "",
    ),
    (
        "POST /coupons/generate",
        {"generate": {"count": 1, "coupon": {"campaign_id": "{campaign}"}}},
        "campaigns KEY SHARE",
        "",
    ),
    ("POST /customers/{ann}/claim", {"claim": {}}, "orders UPDATE, users UPDATE", ""),
    (
        "POST /customers/{bob}/merge",
        {"merge": {"customer_id": "{ann}"}},
        f"orders UPDATE, users UPDATE, {CAMPAIGN}, webhooks UPDATE",
        "",
    ),
    (
        "DELETE /customers/{bob}",
        None,
        f"users UPDATE, users SHARE, orders UPDATE, {CAMPAIGN}, {REMOVAL}",
        "",
    ),
    ("DELETE /coupons/{few}?force=true", None, "coupons UPDATE", ""),
    ("DELETE /orders/{many}?force=true", None, f"orders UPDATE, {LINES}", ""),
]
CYCLE = "advisory, webhooks UPDATE SKIP LOCKED, webhook_deliveries UPDATE SKIP LOCKED"
SWEPT = "import_runs orders idempotency_records admin_sessions sign_in_links import_parts refused_carts oauth_nonces"

LOCK = re.compile(
    r"FROM (\w+)|FOR ((?:NO KEY )?UPDATE|(?:KEY )?SHARE)( SKIP LOCKED)?|pg_(advisory)_xact_lock"
)
OF_KEYS = "api_keys UPDATE SKIP LOCKED"
"""The lock of the time at which a key was used, which is stored now and then."""
UNORDERED = re.compile(
    r"(?!.* WHERE \w+\.id = %|.* ORDER BY \w+\.).* FOR (NO KEY UPDATE|UPDATE|SHARE|KEY SHARE)$"
)
"""Locks several rows in any order: two writes could wait for each other without an end."""


def locks_of(statements):
    """Return the locks of some statements in order, each once, and forget the statements."""
    found, table = [], ""
    for name, strength, skips, advisory in LOCK.findall(" ".join(statements)):
        table = name or table
        if strength or advisory:
            found.append(advisory or f"{table} {strength}{skips}")
    assert [each for each in statements if UNORDERED.match(" ".join(each.split()))] == []
    statements.clear()
    return ", ".join(dict.fromkeys(each for each in found if each != OF_KEYS))


def test_each_operation_locks_what_it_changes(admin, anonymous, request_of, statements):
    seen = {}
    for method, path, name in operations_of(anonymous, NATIVE):
        if method != "GET":
            target, body = request_of(path, name)
            statements.clear()
            admin.request(method, target, **body)
            seen[name] = locks_of(statements)
    wanted = {name: locks for locks, names in OPERATIONS.items() for name in names.split()}
    assert seen == dict.fromkeys(seen, "") | wanted


def filled(value, ids):
    """Put the IDs of the shop into a body."""
    if isinstance(value, dict):
        return {key: filled(each, ids) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, ids) for each in value]
    return ids[value.strip("{}")] if str(value).startswith("{") else value


def test_uses_of_coupons_lock_their_campaigns_and_coupons(
    app, admin, make_coupon, make_customer, statements
):
    body = {"campaign": {"name": "Mailing", "usage_limit": 9}}
    campaign = admin.post("/campaigns", body).get_json()["campaign"]["id"]
    ids = {name: make_customer(email=f"{name}@example.com")["id"] for name in ("ann", "bob")}
    ids |= {"campaign": campaign, "free": make_coupon(code="free")["id"]}
    ids["few"] = make_coupon(code="few", usage_limit=9, usage_limit_per_user=5)["id"]
    make_coupon(code="mailing", campaign_id=campaign)
    seen = []
    for request_line, body, _, name in STEPS:
        method, path = request_line.format(**ids).split(" ")
        statements.clear()
        response = admin.request(method, path, json=filled(body, ids))
        assert response.status_code < 300, (request_line, response.get_json())
        seen.append((request_line, body, locks_of(statements), name))
        if name:
            (record,) = response.get_json().values()
            ids[name] = record["id"]
    assert seen == STEPS
    with app.app_context():
        run_cycle("worker", CycleInput((), (), {}))
        assert locks_of(statements) == CYCLE
        cleanup.sweep()
    swept = ", ".join(f"{each} UPDATE SKIP LOCKED" for each in SWEPT.split())
    assert locks_of(statements) == f"webhooks UPDATE, {swept}, advisory, events UPDATE SKIP LOCKED"
