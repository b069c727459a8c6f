"""No SQL injection, and no information from rejected credentials (decisions 2, 6)."""

import ast
import hmac
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography.fernet import Fernet
from sqlalchemy import inspect

from app.db.session import db, run_in_transaction
from app.services.webhooks.deliveries.collection import collect
from tests.api_client import Client
from tests.factories import insert_order
from tests.plugins.woocommerce.oauth_requests import sign

ROOT = Path(__file__).parents[2]
MARK = "xyzzy"
ATTACKS = [
    f"{MARK}'; DROP TABLE coupons; --",
    f"id) UNION SELECT {MARK} FROM api_keys --",
    f'created_at" DESC, (SELECT {MARK} FROM users) --',
    f"1 OR 1=1 /*{MARK}*/",
    f"%s %(q)s :{MARK} ? {{0}}",
    f"users.{MARK}",
    f"password_hash,{MARK}",
    f"{MARK}\\' OR ''='",
]
# Names in the OpenAPI document that are not names in the database.
NAMED = {"orderby", "orderby_meta_key", "q", "fields"}


@pytest.fixture
def reads(app, admin, anonymous, make_coupon, make_customer):
    """Every read of the document that takes a query: its address, and the names of its parameters."""
    customer = make_customer(email="ada@example.com")["id"]
    make_coupon(code="summer")
    order = insert_order(app, customer_id=customer)
    note = admin.post(f"/orders/{order}/notes", {"order_note": {"note": "Packed."}}).get_json()
    refund = {"order_refund": {"amount": "1.00"}}
    refund_id = admin.post(f"/orders/{order}/refunds", refund).get_json()["order_refund"]["id"]
    use = {"redemption": {"code": "summer", "reference": "cart-1"}}
    redemption = admin.post("/redemptions", use).get_json()
    batch = {"generate": {"count": 1, "pattern": "########"}}
    file = {"data": b"code,amount\nnew,1\n", "content_type": "text/csv"}
    imported = admin.request("POST", "/imports?kind=coupons", **file).get_json()
    ids = {
        "import_id": imported["import"]["id"],
        "batch_id": admin.post("/coupons/generate", batch).get_json()["batch"]["id"],
        "coupon_id": make_coupon()["id"],
        "campaign_id": admin.post("/campaigns", {"campaign": {"name": "Spring"}}).json["campaign"][
            "id"
        ],
        **make_delivery(app, admin),
        "key_id": admin.get("/keys").get_json()["keys"][0]["id"],
        "customer_id": customer,
        "order_id": order,
        "note_id": note["order_note"]["id"],
        "refund_id": refund_id,
        "redemption_id": redemption["redemption"]["id"],
        "code": "summer",
        "email": "ada@example.com",
    }
    found = {}
    for path, item in anonymous.get("/openapi.json").get_json()["paths"].items():
        parameters = item.get("get", {}).get("parameters", [])
        names = [each["name"] for each in parameters if each["in"] == "query"]
        if names:
            found[path.format(**ids)] = names
    return found


def make_delivery(app, admin):
    """Create a webhook, an event and its delivery, as a worker does, and return their IDs."""
    webhook = {"topics": ["*"], "delivery_url": "https://receiver.example/hooks"}
    webhook_id = admin.post("/webhooks", {"webhook": webhook}).get_json()["webhook"]["id"]
    admin.post("/coupons", {"coupon": {"code": "delivered"}})
    (event,) = admin.get("/events", {"filter[type]": "coupon.created"}).get_json()["events"][-1:]
    with app.app_context():
        run_in_transaction(collect)
    path = f"/webhooks/{webhook_id}/deliveries"
    (delivery,) = admin.get(path).get_json()["webhook_deliveries"]
    return {"webhook_id": webhook_id, "delivery_id": delivery["id"], "event_id": event["id"]}


@pytest.mark.slow
def test_no_statement_contains_values_of_a_query(admin, reads, statements):
    assert {name for names in reads.values() for name in names} >= NAMED
    for path, names in reads.items():
        for name in names:
            for attack in ATTACKS:
                query = {name: attack}
                if name == "orderby_meta_key":
                    query["orderby"] = "meta_value"
                response = admin.get(path, query)
                # A person whom nobody knows is not found (people 4).
                of_person = path.startswith("/persons/") and name == "email"
                expected = {200, 404} if of_person else {200, 400}
                assert response.status_code in expected, (path, query)
                assert MARK not in response.get_data(as_text=True) or response.status_code == 400
    assert len(statements) > len(reads)
    assert [statement for statement in statements if MARK in statement] == []


@pytest.mark.slow
def test_nothing_is_lost_by_attacks(app, admin, reads):
    def state():
        with app.app_context():
            tables = inspect(db.engine).get_table_names()
        # The time of the last use of a key changes with the minute.
        unchanging = {path: {"fields": "id"} if path.startswith("/keys") else {} for path in reads}
        return sorted(tables), {
            path: admin.get(path, query).get_json() for path, query in unchanging.items()
        }

    before = state()
    for path in reads:
        for attack in ATTACKS:
            admin.get(path, dict.fromkeys(NAMED, attack))
            admin.get(path, {"filter[q]": attack, "fields": attack})
    assert state() == before


@pytest.mark.sample(2)
@pytest.mark.parametrize("path", ["/coupons", "/customers", "/orders"])
def test_search_finds_its_text_and_nothing_by_sql(admin, reads, path):
    for q in ("%", "_", "' OR 1=1", "\\", "[a-z]", ATTACKS[0]):
        assert admin.get(path, {"filter[q]": q}).headers["X-Total"] == "0", q


def test_sort_by_a_column_that_is_not_offered_is_rejected(admin):
    for column in ("password_hash", "users.password_hash", "search_text", "(SELECT 1)", "id desc"):
        for path in ("/coupons", "/customers", "/orders"):
            response = admin.get(path, {"filter[orderby]": column})
            assert response.get_json()["errors"][0]["param"] == "filter[orderby]"
        query = {"filter[orderby]": "meta_value", "filter[orderby_meta_key]": column}
        response = admin.get("/customers", query)
        assert response.get_json()["errors"][0]["param"] == "filter[orderby_meta_key]"


@pytest.mark.parametrize(
    "name", ["password_hash", "password", "search_text", "username_normalized"]
)
def test_fields_select_nothing_that_is_not_shown(admin, make_customer, name):
    path = f"/customers/{make_customer(password='correct horse')['id']}"
    for fields in (name, f"customer.{name}", f"billing_address.{name}", f"*,{name}"):
        shown = admin.get(path, {"fields": fields}).get_json()["customer"]
        assert shown in ({}, {"billing_address": {}})


# --- credentials ---


@pytest.fixture(params=["basic", "signed"])
def refused(request, app, admin):
    """Return a function: send a known key with a wrong secret, or an unknown key."""

    def send(*, known):
        key = admin.key.consumer_key if known else f"ck_{'0' * 40}"
        pair = SimpleNamespace(consumer_key=key, consumer_secret=f"cs_{'0' * 40}")
        headers = {"X-Request-Id": "same"}
        if request.param == "basic":
            return Client(app, pair).get("/coupons", headers=headers)
        return Client(app).get(sign(pair, "/wc-api/v3/coupons")[0], headers=headers)

    return send


def test_unknown_key_and_wrong_secret_get_the_same_response(refused):
    wrong, unknown = refused(known=True), refused(known=False)
    assert (wrong.status_code, wrong.data) == (401, unknown.data)
    assert list(wrong.headers) == list(unknown.headers)


def test_unknown_key_and_wrong_secret_take_the_same_work(refused, statements, monkeypatch):
    work = []

    def note(function):
        def noting(*args):
            work[-1].append(
                (function.__name__, [len(arg) for arg in args if hasattr(arg, "__len__")])
            )
            return function(*args)

        return noting

    monkeypatch.setattr(hmac, "compare_digest", note(hmac.compare_digest))
    monkeypatch.setattr(Fernet, "decrypt", note(Fernet.decrypt))
    sent = []
    for known in (True, False):
        statements.clear()
        work.append([])
        assert refused(known=known).status_code == 401
        sent.append(list(statements))
    assert sent[0] == sent[1]
    assert work[0] == work[1]
    # Two texts of one length: how long it takes does not depend on what is in them.
    lengths = [lengths for name, lengths in work[0] if name == "compare_digest"]
    assert lengths
    assert all(given == expected for given, expected in lengths)


@pytest.mark.parametrize(
    "module",
    [
        "auth/principals",
        "auth/credentials",
        "auth/encryption",
        "plugins/woocommerce/credentials",
        "plugins/woocommerce/oauth1",
    ],
)
def test_secrets_are_compared_in_constant_time(module):
    secret = ("secret", "signature", "hash", "digest", "mac")
    for node in ast.walk(ast.parse((ROOT / "app" / f"{module}.py").read_text())):
        if isinstance(node, ast.Compare) and any(
            isinstance(operator, ast.Eq | ast.NotEq) for operator in node.ops
        ):
            code = ast.unparse(node)
            # A column in a condition names what is looked up: a keyed hash of what was sent.
            looked_up = "bindparam" in code
            assert looked_up or not any(word in code.lower() for word in secret), code
