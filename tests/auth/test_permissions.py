"""Permissions: every operation of every OpenAPI document, with every role and permission.

The OpenAPI documents contain every route (tests/openapi/test_document.py). An operation without a row in the table
below fails the test. The table is section 5 of the specification and decisions 2.
"""

import re
from itertools import count
from types import SimpleNamespace

import pytest
from sqlalchemy import func, select

from app.auth.principals import CAPABILITIES, ROLES, Permission
from app.db.read_pool import fetch
from app.db.session import now, run_in_transaction
from app.errors.codes import ERRORS
from app.models import Event, User, WebhookDelivery
from app.services.api_keys.writes import create_key, revoke_key
from app.services.coupons.refusals import refusals_of
from app.services.events.outbox import NewEvent, record
from app.services.events.sequence import number_events
from tests.api_client import Client
from tests.factories import insert_order

pytestmark = pytest.mark.one_database

ALL = frozenset(ROLES)
STAFF = frozenset({"administrator", "shop_manager"})
ASSISTED = STAFF | {"shop_assistant"}
ADMINISTRATOR = frozenset({"administrator"})

OPEN = {"getIndex", "getHealth", "getReadiness", "getStore"}
NOTHING = "an empty list"
# The permission that the key needs (None: any), the allowed roles, and the error for others.
TABLE = {
    "listCoupons":           ("read", ASSISTED, NOTHING),
    "createCoupon":          ("write", STAFF, "401 user_cannot_create_coupon"),
    "countCoupons":          ("read", ASSISTED, "401 user_cannot_read_coupons_count"),
    "getCoupon":             ("read", ASSISTED, "401 user_cannot_read_coupon"),
    "getCouponByCode":       ("read", ASSISTED, "401 user_cannot_read_coupon"),
    "updateCoupon":            ("write", STAFF, "401 user_cannot_edit_coupon"),
    "deleteCoupon":          ("write", STAFF, "401 user_cannot_delete_coupon"),
    "bulkCoupons":           ("write", STAFF, "items: user_cannot_create_coupon user_cannot_edit_coupon"),
    "listCampaigns":         ("read", ASSISTED, NOTHING),
    "createCampaign":        ("write", STAFF, "401 user_cannot_create_campaign"),
    "countCampaigns":        ("read", ASSISTED, "401 user_cannot_read_campaigns_count"),
    "getCampaign":           ("read", ASSISTED, "401 user_cannot_read_campaign"),
    "updateCampaign":        ("write", STAFF, "401 user_cannot_edit_campaign"),
    "deleteCampaign":        ("write", STAFF, "401 user_cannot_delete_campaign"),
    "listCustomers":         ("read", ASSISTED, NOTHING),
    "createCustomer":        ("write", STAFF, "401 user_cannot_create_customer"),
    "countCustomers":        ("read", ASSISTED, "401 user_cannot_read_customers_count"),
    "getCustomer":           ("read", ASSISTED, "401 user_cannot_read_customer"),
    "getCustomerByEmail":    ("read", ASSISTED, "401 user_cannot_read_customer"),
    "updateCustomer":          ("write", STAFF, "400 user_cannot_edit_customer"),  # spec 4.2, edit rule 2
    "deleteCustomer":        ("write", ADMINISTRATOR, "401 user_cannot_delete_customer"),
    "bulkCustomers":         ("write", STAFF, "items: user_cannot_create_customer user_cannot_edit_customer"),
    "listCustomerOrders":    ("read", ASSISTED, "401 user_cannot_read_customer"),
    "listCustomerDownloads": ("read", ASSISTED, "401 user_cannot_read_customer"),
    "getCustomerMerge":      ("read", ASSISTED, "401 user_cannot_edit_customer"),
    "mergeCustomer":         ("write", STAFF, "401 user_cannot_edit_customer"),
    "getCustomerClaim":      ("read", ASSISTED, "401 user_cannot_edit_customer"),
    "claimCustomerOrders":   ("write", STAFF, "401 user_cannot_edit_customer"),
    "listOrders":            ("read", ASSISTED, NOTHING),
    "countOrders":           ("read", ASSISTED, "401 user_cannot_read_orders_count"),
    "getOrder":              ("read", ASSISTED, "401 user_cannot_read_order"),
    "listOrderStatuses":     ("read", ALL, None),
    "createOrder":           ("write", STAFF, "401 user_cannot_create_order"),
    "updateOrder":           ("write", ASSISTED, "401 user_cannot_edit_order"),
    "deleteOrder":           ("write", STAFF, "401 user_cannot_delete_order"),
    "bulkOrders":            ("write", STAFF, "items: user_cannot_create_order user_cannot_edit_order"),
    "listTrashedOrders":     ("read", ASSISTED, NOTHING),
    "restoreOrder":          ("write", ASSISTED, "401 user_cannot_edit_order"),
    "emptyOrderTrash":       ("write", STAFF, "401 user_cannot_delete_order"),
    "listOrderNotes":        ("read", ASSISTED, "401 user_cannot_read_order_notes"),
    "createOrderNote":       ("write", ASSISTED, "401 user_cannot_create_order_note"),
    "getOrderNote":          ("read", ASSISTED, "401 user_cannot_read_order_notes"),
    "updateOrderNote":       ("write", ASSISTED, "401 user_cannot_edit_order_note"),
    "deleteOrderNote":       ("write", STAFF, "401 user_cannot_delete_order_note"),
    "listOrderRefunds":      ("read", ASSISTED, "401 user_cannot_read_order_refunds"),
    "createOrderRefund":     ("write", STAFF, "401 user_cannot_create_order_refund"),
    "getOrderRefund":        ("read", ASSISTED, "401 user_cannot_read_order_refunds"),
    "updateOrderRefund":     ("write", STAFF, "401 user_cannot_edit_order_refund"),
    "deleteOrderRefund":     ("write", STAFF, "401 user_cannot_delete_order_refund"),
    "listRefunds":           ("read", ASSISTED, NOTHING),
    "countRefunds":          ("read", ASSISTED, "401 user_cannot_read_order_refunds_count"),
    "listTrashedCoupons":    ("read", ASSISTED, NOTHING),
    "restoreCoupon":         ("write", STAFF, "401 user_cannot_edit_coupon"),
    "emptyCouponTrash":      ("write", STAFF, "401 user_cannot_delete_coupon"),
    "createCouponBatch":       ("write", STAFF, "401 user_cannot_create_coupon"),
    "listCouponBatches":     ("read", ASSISTED, NOTHING),
    "getCouponBatch":        ("read", ASSISTED, "401 user_cannot_read_coupons"),
    "deleteCouponBatch":     ("write", STAFF, "401 user_cannot_delete_coupon"),
    "evaluateCoupons":       (None, ASSISTED, "401 user_cannot_read_coupons"),
    "listRedemptions":       ("read", ASSISTED, NOTHING),
    "countRedemptions":      ("read", ASSISTED, "401 user_cannot_read_redemptions_count"),
    "getRedemption":         ("read", ASSISTED, "401 user_cannot_read_redemption"),
    "createRedemption":      ("write", STAFF, "401 user_cannot_create_redemption"),
    "confirmRedemption":     ("write", STAFF, "401 user_cannot_edit_redemption"),
    "releaseRedemption":     ("write", STAFF, "401 user_cannot_edit_redemption"),
    "listEvents":            ("read", ASSISTED, "401 user_cannot_read_events"),
    "getEvent":              ("read", ASSISTED, "401 user_cannot_read_event"),
    "getEventUndo":          ("read", STAFF, "401 user_cannot_read_event"),
    "undoEvent":             ("write", STAFF, "401 user_cannot_read_event"),
    "getPersonData":         ("read", ASSISTED, "401 user_cannot_read_person"),
    "getPersonErasure":      ("read", ADMINISTRATOR, "401 user_cannot_erase_person"),
    "erasePerson":           ("write", ADMINISTRATOR, "401 user_cannot_erase_person"),
    "listImports":           ("read", ASSISTED, "401 user_cannot_import"),
    "createImport":          ("write", STAFF, "401 user_cannot_import"),
    "getImport":             ("read", ASSISTED, "401 user_cannot_import"),
    "listImportErrors":      ("read", ASSISTED, "401 user_cannot_import"),
    "startImport":           ("write", frozenset(), "401 user_cannot_import"),  # only who created it
    "cancelImport":          ("write", STAFF, "401 user_cannot_import"),
    "listApiKeys":              ("read", ALL, None),
    "createApiKey":             ("write", ADMINISTRATOR, "401 user_cannot_create_key"),
    "getApiKey":                ("read", ADMINISTRATOR, "401 user_cannot_read_key"),
    "updateApiKey":             ("write", ADMINISTRATOR, "401 user_cannot_edit_key"),
    "deleteApiKey":             ("write", ADMINISTRATOR, "401 user_cannot_delete_key"),
    "rotateApiKey":             ("write", ADMINISTRATOR, "401 user_cannot_edit_key"),
    "listWebhooks":          ("read", STAFF, NOTHING),
    "createWebhook":         ("write", STAFF, "401 user_cannot_create_webhook"),
    "countWebhooks":         ("read", STAFF, "401 user_cannot_read_webhooks_count"),
    "getWebhook":            ("read", STAFF, "401 user_cannot_read_webhook"),
    "updateWebhook":         ("write", STAFF, "401 user_cannot_edit_webhook"),
    "deleteWebhook":         ("write", STAFF, "401 user_cannot_delete_webhook"),
    "rotateWebhookSecret":   ("write", STAFF, "401 user_cannot_edit_webhook"),
    "pingWebhook":           ("write", STAFF, "401 user_cannot_edit_webhook"),
    "replayWebhook":         ("write", STAFF, "401 user_cannot_edit_webhook"),
    "listWebhookDeliveries": ("read", STAFF, "401 user_cannot_read_webhook"),
    "getWebhookDelivery":    ("read", STAFF, "401 user_cannot_read_webhook"),
    "redeliverWebhookDelivery": ("write", STAFF, "401 user_cannot_edit_webhook"),
    "getSalesReport":        ("read", STAFF, "401 user_cannot_view_reports"),
    "listCouponReports":     ("read", STAFF, "401 user_cannot_view_reports"),
    "getCouponReport":       ("read", STAFF, "401 user_cannot_view_reports"),
    "listCustomerReports":   ("read", STAFF, "401 user_cannot_view_reports"),
    "listOrderReports":      ("read", STAFF, "401 user_cannot_view_reports"),
    "listRefusalReports":    ("read", STAFF, "401 user_cannot_view_reports"),
    "listReports":           ("read", STAFF, "401 user_cannot_read_report"),
    "getSales":              ("read", STAFF, "401 user_cannot_read_report"),
    "listTopSellers":        ("read", STAFF, "401 user_cannot_read_report"),
}  # fmt: skip
# A shop assistant changes the status and the note of orders, and does not create them.
PARTLY = "items: user_cannot_create_order"
OF_ASSISTANTS = {
    "bulkOrders": PARTLY,
    **dict.fromkeys(("getEventUndo", "undoEvent"), "401 user_cannot_edit_coupon"),
}
NATIVE_ONLY = {
    "listTrashedOrders", "restoreOrder", "emptyOrderTrash", "listRefunds", "countRefunds",
    "listTrashedCoupons", "restoreCoupon", "emptyCouponTrash", "evaluateCoupons",
    "createCouponBatch", "listCouponBatches", "getCouponBatch", "deleteCouponBatch",
    "listRedemptions", "countRedemptions", "getRedemption", "createRedemption",
    "confirmRedemption", "releaseRedemption", "listEvents", "getEvent",
    "getEventUndo", "undoEvent", "getCustomerMerge", "mergeCustomer", "getCustomerClaim",
    "claimCustomerOrders", "getPersonData", "getPersonErasure", "erasePerson",
    "listImports", "createImport", "getImport", "listImportErrors", "startImport", "cancelImport",
    "listApiKeys", "createApiKey", "getApiKey", "updateApiKey", "deleteApiKey", "rotateApiKey",
    "rotateWebhookSecret", "pingWebhook", "replayWebhook", "redeliverWebhookDelivery",
    "getSalesReport", "listCouponReports", "getCouponReport", "listCustomerReports",
    "listOrderReports", "listRefusalReports", "listCampaigns", "createCampaign", "countCampaigns",
    "getCampaign", "updateCampaign", "deleteCampaign",
}  # fmt: skip
LEGACY_ONLY = {"listReports", "getSales", "listTopSellers"}
# A webhook sends only what its key may read, so that a key that may only write gets this error.
WHAT_THE_KEY_READS = {"createWebhook", "updateWebhook", "rotateWebhookSecret"}
# The code of the legacy server has a plural here (its dialect).
LEGACY_CODES = {"user_cannot_create_webhooks": "user_cannot_create_webhook"}
NO_ESCALATION = {  # decisions 2: accounts with more capabilities cannot be changed
    "updateCustomer": "400 user_cannot_edit_customer",
    "deleteCustomer": "401 user_cannot_delete_customer",
    "bulkCustomers": "items: user_cannot_edit_customer",
}
DONE = "done"
FILE = "code\nimported\n"
NOT_IN = "401 authentication_error"
NATIVE = "/openapi.json"
DOCUMENTS = [
    NATIVE,
    pytest.param("/wc-api/v2/openapi.json", marks=pytest.mark.slow),
    pytest.param("/wc-api/v3/openapi.json", marks=pytest.mark.slow),
]
FEW_CALLERS = [
    "no key",
    ("customer", "read"),
    ("shop_assistant", "read_write"),
    ("shop_manager", "read"),
    ("shop_manager", "write"),
]
STRANGERS = ["no key", "unknown key", "wrong secret", "revoked key", "key of a deleted user"]


def expected(operation, caller):
    """The expected result from the table."""
    if operation in OPEN:
        return DONE
    needed, roles, otherwise = TABLE[operation]
    if caller in STRANGERS:
        return NOT_IN
    role, permission = caller
    if needed and permission not in {needed, "read_write"}:
        return NOT_IN
    if role not in roles:
        return OF_ASSISTANTS.get(operation, otherwise) if role == "shop_assistant" else otherwise
    if operation in WHAT_THE_KEY_READS and permission == "write":
        return "401 insufficient_key_rights"
    return DONE


def outcome(response):
    """The actual result, in the form of the table."""
    body = response.get_json()
    codes = [re.sub("^(shop|woocommerce)_api_", "", code) for code in codes_in(body)]
    codes = [LEGACY_CODES.get(code, code) for code in codes]
    if response.status_code >= 400:
        return " ".join([str(response.status_code), *codes])
    if codes:
        return " ".join(["items:", *sorted(codes)])
    totals = {response.headers.get("X-Total"), response.headers.get("X-WC-Total")} - {None}
    assert not totals or bool(*map(int, totals)) == any(body.values())
    return NOTHING if totals == {"0"} else DONE


def codes_in(body):
    errors = body.get("errors", [])
    results = [result for value in body.values() if isinstance(value, list) for result in value]
    return [error["code"] for error in errors] + [
        result["error"]["code"] for result in results if "error" in result
    ]


@pytest.fixture
def callers(app, admin, client_for, anonymous):
    """A client for each role and permission, and for each way of having no key."""

    def wrong(of, **over):
        return Client(app, SimpleNamespace(**{**vars_of(of.key), **over}))

    found = {
        (role, permission.value): client_for(role, permission.value)
        for role in ROLES
        for permission in Permission
    }
    some = found["administrator", "read_write"]
    revoked, deleted = client_for(), client_for(login="deleted")
    found |= {
        "no key": anonymous,
        "unknown key": wrong(some, consumer_key=f"ck_{'0' * 40}"),
        "wrong secret": wrong(some, consumer_secret=f"cs_{'0' * 40}"),
        "revoked key": revoked,
        "key of a deleted user": deleted,
    }
    with app.app_context():
        revoke_key(revoked.key.key_id)
        run_in_transaction(lambda session: session.delete(session.get(User, deleted.key.user_id)))
    return found


def vars_of(key):
    return {"consumer_key": key.consumer_key, "consumer_secret": key.consumer_secret}


@pytest.fixture
def request_of(app, admin, client_for, make_coupon, make_customer):
    """Return a function: the path and the body of a successful request for an operation."""
    numbers = count()
    lasting = make_coupon(code="target"), make_customer(email="target@example.com")
    order_id = insert_order(app, customer_id=lasting[1]["id"])
    admin.post(
        "/orders",
        {"order": {"status": "completed", "coupon_lines": [{"code": "target", "amount": "0.00"}]}},
    )
    admin.post("/coupons/evaluate", {"cart": {"coupons": ["refused"], "items": []}})
    refusals_of(app).flush()
    trashed = {"status": "trash", "status_before_trash": "pending", "trashed_at": now()}
    insert_order(app, **trashed)

    def make_note():
        response = admin.post(f"/orders/{order_id}/notes", {"order_note": {"note": "Packed."}})
        return response.get_json()["order_note"]["id"]

    def make_redemption():
        use = {"code": "target", "reference": f"cart-{next(numbers)}"}
        response = admin.post("/redemptions", {"redemption": use})
        return response.get_json()["redemption"]["id"]

    def make_batch():
        response = admin.post("/coupons/generate", {"generate": {"count": 1}})
        return response.get_json()["batch"]["id"]

    importer = client_for(login="importer")

    def make_import():
        path = "/imports?kind=coupons"
        response = importer.request("POST", path, data=FILE, content_type="text/csv")
        return response.get_json()["import"]["id"]

    def make_campaign():
        response = admin.post("/campaigns", {"campaign": {"name": "Spring"}})
        return response.get_json()["campaign"]["id"]

    batch, campaign, import_id = make_batch(), make_campaign(), make_import()
    with app.app_context():
        run_in_transaction(
            lambda session: record(session, None, [NewEvent("coupon.created", 1, {})])
        )
        number_events()
        event_id = fetch(select(func.max(Event.id)))[0][0]

    def make_key():
        # The key of a write-only administrator has no more rights.
        with app.app_context():
            return create_key(f"user-{next(numbers)}", "customer", Permission.WRITE, "").key_id

    note, redemption, key = make_note(), make_redemption(), make_key()

    def make_refund():
        body = {"order_refund": {"amount": "0.01"}}
        response = admin.post(f"/orders/{order_id}/refunds", body)
        return response.get_json()["order_refund"]["id"]

    refund = make_refund()

    def make_webhook():
        new = {"topic": "coupon.created", "delivery_url": "http://receiver.invalid/"}
        response = admin.post("/wc-api/v3/webhooks", {"webhook": new})
        return response.get_json()["webhook"]["id"]

    webhook = make_webhook()  # whose first ping is a delivery
    with app.app_context():
        delivery_id = fetch(select(func.max(WebhookDelivery.id)))[0][0]
    admin.delete(f"/coupons/{make_coupon()['id']}")

    def make_change(coupon):
        """Change a coupon, and return the event."""
        admin.put(f"/coupons/{coupon['id']}", {"coupon": {"description": f"{next(numbers)}"}})
        with app.app_context():
            number_events()
            return fetch(select(func.max(Event.id)))[0][0]

    def make(path, operation):
        number = next(numbers)
        coupon, customer = lasting
        of_order = order_id
        if operation == "deleteCoupon":
            coupon = make_coupon()
        if operation in {"deleteCustomer", "erasePerson"}:
            customer = make_customer()
        if operation == "deleteOrder":
            of_order = insert_order(app)
        if operation == "restoreOrder":
            of_order = insert_order(app, **trashed)
        if operation == "restoreCoupon":
            coupon = make_coupon()
            admin.delete(f"/coupons/{coupon['id']}")
        removed = make_customer()["id"] if operation.endswith(("Merge", "mergeCustomer")) else 0
        note_id = make_note() if operation == "deleteOrderNote" else note
        refund_id = make_refund() if operation == "deleteOrderRefund" else refund
        key_id = make_key() if operation in {"deleteApiKey", "rotateApiKey"} else key
        settles = operation in {"confirmRedemption", "releaseRedemption"}
        redemption_id = make_redemption() if settles else redemption
        bodies = {
            "createCoupon": {"coupon": {"code": f"new-{number}"}},
            "createCampaign": {"campaign": {"name": "Spring"}},
            "updateCampaign": {"campaign": {"name": f"edit {number}"}},
            "updateCoupon": {"coupon": {"description": f"edit {number}"}},
            "bulkCoupons": {
                "coupons": [{"code": f"new-{number}"}, {"id": coupon["id"], "amount": 1}]
            },
            "createCustomer": {"customer": {"email": f"new-{number}@example.com"}},
            "updateCustomer": {"customer": {"first_name": f"edit {number}"}},
            "bulkCustomers": {
                "customers": [
                    {"email": f"new-{number}@example.com"},
                    {"id": customer["id"], "last_name": "x"},
                ]
            },
            "mergeCustomer": {"merge": {"customer_id": removed}},
            "claimCustomerOrders": {"claim": {}},
            "createOrder": {"order": {"note": f"new {number}"}},
            "createOrderNote": {"order_note": {"note": f"new {number}"}},
            "updateOrderNote": {"order_note": {"note": f"edit {number}"}},
            "createOrderRefund": {"order_refund": {"amount": "0.01"}},
            "updateOrderRefund": {"order_refund": {"reason": f"edit {number}"}},
            "updateOrder": {"order": {"note": f"edit {number}"}},
            "evaluateCoupons": {"cart": {"coupons": ["target"], "items": []}},
            "createCouponBatch": {"generate": {"count": 2}},
            "createRedemption": {
                "redemption": {"code": "target", "reference": f"reference-{number}"}
            },
            "createApiKey": {"key": {"permission": "write"}},
            "updateApiKey": {"key": {"description": f"edit {number}"}},
            "createWebhook": {
                "webhook": {
                    "topics": ["*"],
                    "topic": "coupon.created",
                    "delivery_url": "http://receiver.invalid/",
                }
            },
            "updateWebhook": {"webhook": {"name": f"edit {number}"}},
            "replayWebhook": {"after": 0},
            "erasePerson": {"person": {"customer_id": customer["id"]}},
            "bulkOrders": {"orders": [{}, {"id": order_id, "note": f"edit {number}"}]},
        }
        filled = path.format(
            coupon_id=coupon["id"],
            code=coupon["code"],
            customer_id=customer["id"],
            email=customer["email"],
            order_id=of_order,
            note_id=note_id,
            refund_id=refund_id,
            redemption_id=redemption_id,
            event_id=make_change(coupon) if operation.endswith(("Undo", "undoEvent")) else event_id,
            key_id=key_id,
            webhook_id=make_webhook() if operation == "deleteWebhook" else webhook,
            delivery_id=delivery_id,
            batch_id=make_batch() if operation == "deleteCouponBatch" else batch,
            campaign_id=make_campaign() if operation == "deleteCampaign" else campaign,
            import_id=make_import() if operation == "cancelImport" else import_id,
        )
        if operation == "createImport":
            return f"{filled}?kind=coupons", {"data": FILE, "content_type": "text/csv"}
        query = f"?customer_id={removed}" if operation == "getCustomerMerge" else ""
        if path.startswith("/persons/") and operation.startswith("get"):
            query = f"?customer_id={customer['id']}"
        return filled + query, {"json": bodies.get(operation)}

    return make


def operations_of(client, document):
    """The operations of a document, also with aliases: method, path, and the operation ID."""
    of_put = ("PUT",) if document == NATIVE else ("PUT", "POST", "PATCH")
    for path, item in client.get(document).get_json()["paths"].items():
        for method, operation in item.items():
            aliases = of_put if method == "put" or path.endswith("/bulk") else ()
            for each in dict.fromkeys((method.upper(), *aliases)):
                yield each, path, operation["operationId"]


@pytest.mark.parametrize("some", [FEW_CALLERS, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_operation_for_every_caller(
    anonymous, callers, everything, request_of, document, some
):
    callers = {name: callers[name] for name in some or callers}
    operations = list(operations_of(anonymous, document))
    missing = LEGACY_ONLY if document == NATIVE else NATIVE_ONLY
    assert {name for _, _, name in operations} - OPEN == TABLE.keys() - missing
    seen = {}
    wanted = {
        (method, path, caller): expected(name, caller)
        for method, path, name in operations
        for caller in callers
    }
    sent = {(method, path): request_of(path, name) for method, path, name in operations}
    before = everything()
    for method, path, caller in (at for at in wanted if wanted[at] not in {DONE, PARTLY}):
        target, body = sent[method, path]
        response = callers[caller].request(method, target, **body)
        seen[method, path, caller] = outcome(response)
    assert everything() == before
    for method, path, name in operations:
        for caller in (each for each in callers if wanted[method, path, each] in {DONE, PARTLY}):
            target, body = request_of(path, name)
            response = callers[caller].request(method, target, **body)
            seen[method, path, caller] = outcome(response)
    different = {at: (seen[at], wanted[at]) for at in wanted if seen[at] != wanted[at]}
    assert different == {}


@pytest.mark.parametrize("some", [FEW_CALLERS, pytest.param(None, marks=pytest.mark.slow)])
def test_head_is_rejected_like_the_read(anonymous, callers, request_of, some):
    for method, path, name in operations_of(anonymous, NATIVE):
        if method != "GET":
            continue
        sent, _ = request_of(path, name)
        for caller in some or callers:
            client = callers[caller]
            statuses = [client.request(verb, sent).status_code for verb in ("GET", "HEAD")]
            assert len(set(statuses)) == 1, (path, caller, statuses)


def test_account_with_more_capabilities_cannot_be_changed(callers, everything):
    above = callers["administrator", "read_write"].key.user_id
    manager = callers["shop_manager", "read_write"]
    before = everything()
    seen = {
        "updateCustomer": manager.put(f"/customers/{above}", {"customer": {"password": "mine"}}),
        "deleteCustomer": manager.delete(f"/customers/{above}"),
        "bulkCustomers": manager.post(
            "/customers/bulk", {"customers": [{"id": above, "password": "mine"}]}
        ),
    }
    assert {name: outcome(response) for name, response in seen.items()} == NO_ESCALATION
    assert everything() == before


def test_each_error_of_a_missing_right_has_its_capabilities():
    assert CAPABILITIES.keys() == {code for code in ERRORS if "_user_cannot_" in code}
    assert all(CAPABILITIES.values())
