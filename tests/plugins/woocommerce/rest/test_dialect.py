"""What the recording does not show: rules of this service that hold in this dialect, too."""

import json
import re
from collections import Counter
from urllib.parse import quote

import pytest
from sqlalchemy import insert, select, update

from app.auth.api_keys import ApiKeyCredentials, forget_principals
from app.catalog import current_catalog
from app.db import session, sqlite
from app.db.read_pool import fetch
from app.db.session import db
from app.models import API_KEYS, ORDERS, USER_ROLES, USERS
from app.plugins.woocommerce.reports import STAFF
from tests.api_client import Client
from tests.customers.test_erasure import stored_words
from tests.plugins.woocommerce.rest.recorded_shop import KEYS
from tests.plugins.woocommerce.rest.seed import reset

pytestmark = pytest.mark.one_database

__all__ = ["stored_words"]  # a fixture

V3 = "/wp-json/wc/v3"


class Shop:
    """The recorded shop, as one of its keys."""

    def __init__(self, app, key="admin_rw"):
        self.http = app.test_client()
        pair = (KEYS[key]["consumer_key"], KEYS[key]["consumer_secret"])
        self.options = {"auth": pair, "base_url": "https://shop.example"}

    def send(self, method, path, body=None, **headers):
        options = self.options | ({} if body is None else {"json": body})
        return self.http.open(f"{V3}{path}", method=method, headers=headers, **options)

    def ok(self, method, path, body=None, **headers):
        response = self.send(method, path, body, **headers)
        assert response.status_code < 300, response.get_json()
        return response.get_json()


@pytest.fixture
def shop(app):
    reset(app)
    return Shop(app)


LINE = {"name": "Mug", "product_id": 10, "quantity": 2, "total": "20.00"}


@pytest.fixture
def admin_client(app, shop):
    """A client of the native API with a key of the recorded shop."""
    pair = KEYS["admin_rw"]
    return Client(app, ApiKeyCredentials(pair["consumer_key"], pair["consumer_secret"]))


@pytest.mark.both_databases
def test_orders_have_their_customer_last(shop, app_with):
    order = shop.ok("GET", "/orders/41")
    assert list(order)[-2:] == ["customer", "_links"]
    customer = shop.ok("GET", f"/customers/{order['customer_id']}")
    del customer["_links"]
    assert order["customer"] == customer
    (listed,) = shop.ok("GET", "/orders?include=41")
    listed["meta_data"].sort(key=lambda entry: entry["key"])
    assert listed == order
    guest = shop.ok("POST", "/orders", {"billing": {"first_name": "Ada", "email": "a@b.example"}})
    assert (guest["customer"]["id"], guest["customer"]["email"]) == (0, "a@b.example")
    assert "customer" not in shop.ok("GET", "/orders/41?_fields=id,total")
    assert shop.ok("GET", "/orders/41?_fields=customer.email")["customer"] == {
        "email": customer["email"]
    }
    without = Shop(app_with(SHOP_WC_V3_CUSTOMER=False))
    assert "customer" not in without.ok("GET", "/orders/41")


def test_answers_equal_reads(shop):
    created = shop.ok(
        "POST", "/orders", {"line_items": [LINE], "meta_data": [{"key": "a", "value": 1}]}
    )
    assert created == shop.ok("GET", f"/orders/{created['id']}")
    changed = shop.ok("PUT", f"/orders/{created['id']}", {"status": "processing"})
    assert changed == shop.ok("GET", f"/orders/{created['id']}")
    batch = shop.ok(
        "POST", "/orders/batch", {"update": [{"id": created["id"], "customer_note": "n"}]}
    )
    assert batch["update"] == [shop.ok("GET", f"/orders/{created['id']}")]


@pytest.mark.both_databases
def test_a_field_alone_is_that_of_the_complete_objects_of_a_list(shop):
    hook = {"topic": "order.created", "delivery_url": "https://hooks.example.com"}
    shop.ok("POST", "/webhooks", hook)
    for path in ("/orders", "/coupons", "/customers", "/webhooks", "/refunds", "/orders/41/notes"):
        complete = shop.ok("GET", f"{path}?per_page=5")
        assert complete, path
        for name in {name for each in complete for name in each}:
            alone = shop.ok("GET", f"{path}?per_page=5&_fields={name}")
            wanted = [{name: each[name]} if name in each else [] for each in complete]
            assert alone == wanted, (path, name)


@pytest.mark.parametrize("name", [".", ".id", "line_items .id", "id .x", "nothing"])
def test_a_name_of_no_field_selects_nothing_of_a_list(shop, name):
    orders = shop.ok("GET", "/orders?per_page=2")
    assert orders
    assert shop.ok("GET", f"/orders?per_page=2&_fields={quote(name)}") == [[]] * len(orders)
    assert shop.ok("GET", f"/orders?per_page=2&_fields=id,{quote(name)}") == [
        {"id": each["id"]} for each in orders
    ]


@pytest.mark.both_databases
def test_coupon_lines_replace_the_whole_set(shop):
    body = {"line_items": [LINE], "coupon_lines": [{"code": "welcome10"}]}
    order = shop.ok("POST", "/orders", body)
    assert (order["total"], order["discount_total"]) == ("18.00", "2.00")
    path = f"/orders/{order['id']}"
    order = shop.ok("PUT", path, {"coupon_lines": [{"code": "five-off"}]})
    assert [line["code"] for line in order["coupon_lines"]] == ["five-off"]
    assert order["total"] == "15.00"
    assert shop.ok("PUT", path, {"coupon_lines": []})["total"] == "20.00"
    refused = shop.send("PUT", path, {"coupon_lines": [{"code": "exhausted"}]})
    assert refused.status_code == 400
    assert refused.get_json() == {
        "code": "woocommerce_rest_invalid_coupon",
        "message": 'Usage limit for coupon "exhausted" has been reached.',
        "data": {
            "status": 400,
            "reasons": [
                {"code": "usage_limit", "message": "The coupon has reached its usage limit of 1."}
            ],
        },
    }
    assert shop.ok("GET", path)["coupon_lines"] == []


def test_coupons_discount_lines_whose_total_was_given(shop):
    path = "/orders/41"  # imported, with a total of its own
    body = {"coupon_lines": [{"code": "welcome10"}]}
    order = shop.ok("PUT", path, body)
    assert (order["total"], order["discount_total"]) == ("45.90", "5.10")
    assert order["line_items"][0]["total"] == "45.90"
    assert shop.ok("PUT", path, body)["line_items"] == order["line_items"]
    both = {"coupon_lines": [{"code": "welcome10"}, {"code": "five-off"}]}
    assert shop.ok("PUT", path, both)["total"] == "40.90"
    assert shop.ok("PUT", path, {"coupon_lines": []})["total"] == "51.00"
    line = LINE | {"subtotal": "40", "total": "30"}
    created = shop.ok("POST", "/orders", {"line_items": [line], **body})
    assert (created["total"], created["discount_total"]) == ("36.00", "4.00")
    path = "/orders/50"  # with a recorded coupon, whose discount is part of the totals
    assert shop.ok("GET", path)["total"] == "58.50"
    again = {"line_items": [{"id": 18, "total": "1"}], "coupon_lines": [{"code": "welcome10"}]}
    assert shop.ok("PUT", path, again)["total"] == "5.50"
    assert shop.ok("PUT", path, {"coupon_lines": []})["total"] == "64.50"


def test_coupons_discount_a_line_of_which_only_the_name_changes(shop):
    (line,) = shop.ok("GET", "/orders/41")["line_items"]
    renamed = {"line_items": [{"id": line["id"], "name": "Bowl"}]}
    order = shop.ok("PUT", "/orders/41", renamed | {"coupon_lines": [{"code": "welcome10"}]})
    assert (order["total"], order["discount_total"]) == ("45.90", "5.10")


@pytest.mark.both_databases
def test_trash(shop):
    assert shop.ok("DELETE", "/orders/41")["status"] == "processing"
    assert shop.ok("GET", "/orders/41")["status"] == "trash"
    kept = shop.ok("PUT", "/orders/41", {"customer_note": "kept"})
    assert (kept["status"], kept["customer_note"]) == ("trash", "kept")
    assert 41 in [each["id"] for each in shop.ok("GET", "/orders?status=trash")]
    assert shop.send("DELETE", "/orders/41").status_code == 410
    assert shop.ok("PUT", "/orders/41", {"status": "completed"})["status"] == "completed"
    assert shop.ok("PUT", "/orders/41", {"status": "trash"})["status"] == "trash"
    shop.ok("DELETE", "/orders/41?force=true")
    assert shop.send("GET", "/orders/41").status_code == 404
    coupon = shop.ok("POST", "/coupons", {"code": "spring", "status": "trash"})
    assert coupon["status"] == "trash"
    shop.ok("POST", "/coupons", {"code": "spring"})
    taken = shop.send("PUT", f"/coupons/{coupon['id']}", {"status": "publish"})
    assert taken.get_json()["code"] == "woocommerce_rest_coupon_code_already_exists"


def test_entity_tags(shop):
    tag = shop.send("GET", "/coupons/16").headers["ETag"]
    assert shop.send("GET", "/coupons/16", **{"If-None-Match": tag}).status_code == 304
    changed = shop.send("PUT", "/coupons/16", {"amount": "9"}, **{"If-Match": tag})
    assert changed.status_code == 200
    stale = shop.send("PUT", "/coupons/16", {"amount": "8"}, **{"If-Match": tag})
    assert (stale.status_code, stale.get_json()["code"]) == (
        412,
        "woocommerce_rest_precondition_failed",
    )


def test_coupons_discount_in_the_order_in_which_a_change_lists_them(shop):
    for code, amount in (("all", "20"), ("half", "10"), ("part", "4")):
        shop.ok("POST", "/coupons", {"code": code, "amount": amount})
    order = shop.ok("POST", "/orders", {"line_items": [LINE], "coupon_lines": [{"code": "half"}]})
    path = f"/orders/{order['id']}"
    for codes, discounts in (
        (["all", "half"], ["20", "0"]),
        (["half", "all"], ["10", "10"]),
        (["part", "half"], ["4", "10"]),
        (["half"], ["10"]),
    ):
        changed = shop.ok("PUT", path, {"coupon_lines": [{"code": code} for code in codes]})
        lines = changed["coupon_lines"]
        assert [line["code"] for line in lines] == codes
        assert [line["discount"] for line in lines] == discounts
        assert shop.ok("GET", path)["coupon_lines"] == lines


@pytest.mark.parametrize(
    ("path", "status"), [("/coupons/16", "publish"), ("/orders/41", "processing")]
)
def test_a_status_that_only_moves_a_record_writes_one_event(shop, admin_client, path, status):
    expected = []
    for given, event in (("trash", "deleted"), ("trash", "updated"), (status, "restored")):
        assert shop.ok("PUT", path, {"status": given})["status"] == given
        expected.append(f"{path[1:].split('s/')[0]}.{event}")
    events = admin_client.get("/events").get_json()["events"]
    assert [each["type"] for each in events] == expected


@pytest.mark.parametrize(("path", "status"), [("/coupons/16", "publish"), ("/orders/41", "failed")])
def test_if_match_of_a_restore_is_the_tag_of_the_trash(shop, path, status):
    shop.ok("DELETE", path)
    tag = shop.send("GET", path).headers["ETag"]
    stale = shop.send("PUT", path, {"status": status}, **{"If-Match": '"other"'})
    assert (stale.status_code, shop.ok("GET", path)["status"]) == (412, "trash")
    assert shop.ok("PUT", path, {"status": status}, **{"If-Match": tag})["status"] == status
    back = shop.send("PUT", path, {"status": "trash"}, **{"If-Match": tag})
    assert (back.status_code, shop.ok("GET", path)["status"]) == (412, status)


def test_idempotency_key(shop):
    key = {"Idempotency-Key": "one"}
    first, again = (shop.send("POST", "/coupons", {"code": "once"}, **key) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.get_json() == again.get_json()
    assert first.headers["Location"] == again.headers["Location"]
    other = shop.send("POST", "/coupons", {"code": "twice"}, **key)
    assert other.status_code == 422


def test_strict_requests_reject_unknown_names(shop):
    strict = {"Prefer": "handling=strict"}
    assert shop.send("GET", "/coupons?colour=red").status_code == 200
    response = shop.send("GET", "/coupons?colour=red", **strict)
    assert response.get_json()["data"]["params"].keys() == {"colour"}
    response = shop.send("POST", "/coupons", {"code": "a", "colour": 1}, **strict)
    assert (response.status_code, response.get_json()["code"]) == (400, "rest_invalid_param")


def test_strict_requests_reject_unknown_names_at_every_level(shop):
    body = {
        "curency": "EUR",
        "status": "nonsense",
        "billing": {"zip": "12345"},
        "line_items": [LINE, {**LINE, "prise": "1", "meta_data": [{"key": "a", "valeu": "b"}]}],
        "_ignored": 1,
    }
    params = shop.send("POST", "/orders", body, Prefer="handling=strict").get_json()["data"][
        "params"
    ]
    unknown = "{} is not a parameter of this operation{}.".format
    assert params == {
        "curency": unknown("curency", " (did you mean currency?)"),
        "status": params["status"],
        "billing": unknown("billing[zip]", ""),
        "line_items": unknown("line_items[1][prise]", ""),
    }
    assert shop.send("POST", "/orders", body | {"status": "pending"}).status_code == 201
    batch = {"create": [{"code": "a", "ammount": "5"}, {"code": "b"}], "update": [{"id": 17}]}
    done = shop.ok("POST", "/coupons/batch", batch, Prefer="handling=strict")
    assert list(done["create"][0]["error"]["data"]["params"]) == ["ammount"]
    assert [done["create"][1]["code"], done["update"][0]["id"]] == ["b", 17]


@pytest.mark.parametrize(
    ("number", "stored"), [("²", 0), ("--5", 0), ("9" * 5000, 2**63 - 1), ("1e9999", 2**63 - 1)]
)
def test_text_that_looks_like_a_number(shop, number, stored):
    line = {"product_id": number, "name": "Mug", "quantity": 1, "total": "5.00"}
    order = shop.ok("POST", "/orders", {"line_items": [line]})
    assert order["line_items"][0]["product_id"] == stored
    result = shop.ok("POST", "/orders/batch", {"update": [{"id": number}], "delete": [number]})
    failed = result["update"] + result.get("delete", [])  # an ID of 0 is left out
    assert [each["error"]["data"]["status"] for each in failed]


def test_a_failed_item_of_a_batch_changes_nothing(shop):
    items = {
        "create": [{"code": "a"}, {"code": "A"}, {"amount": "1"}],
        "update": [{"id": 16, "amount": "3"}, {"id": 999, "amount": "3"}],
        "delete": [17, 999],
    }
    result = shop.ok("POST", "/coupons/batch", items)
    codes = {
        name: [each.get("error", {}).get("code") for each in each_list]
        for name, each_list in result.items()
    }
    assert codes == {
        "create": [
            None,
            "woocommerce_rest_coupon_code_already_exists",
            "rest_missing_callback_param",
        ],
        "update": [None, "woocommerce_rest_shop_coupon_invalid_id"],
        "delete": [None, "woocommerce_rest_shop_coupon_invalid_id"],
    }
    too_many = shop.send("POST", "/coupons/batch", {"delete": list(range(101))})
    assert too_many.status_code == 413


ANN = {
    "first_name": "Gwendolyn",
    "last_name": "Ap",
    "address_1": "Gwendolyn Street 1",
    "phone": "1",
}
BILLING = ANN | {"email": "Gwendolyn@Example.com"}


def test_stored_responses_forget_a_deleted_customer(shop, stored_words):
    """Objects of this dialect have no wrapper, and _fields can omit the ID."""
    customer = {
        "email": "gwendolyn@example.com", "username": "gwendolyn", "first_name": "Gwendolyn",
        "billing": BILLING, "shipping": ANN, "meta_data": [{"key": "a", "value": "Gwendolyn"}],
    }  # fmt: skip
    ann = shop.ok("POST", "/customers", customer, **{"Idempotency-Key": "1"})
    order = {
        "customer_id": ann["id"], "billing": BILLING, "shipping": ANN, "line_items": [LINE],
        "customer_note": "For Gwendolyn", "meta_data": [{"key": "a", "value": "Gwendolyn"}],
    }  # fmt: skip
    paid = shop.ok("POST", "/orders", order)
    other = {"first_name": "Bob", "email": "bob@example.com"}
    note = {"note": "Call Gwendolyn"}
    refund = {"amount": "1.00", "reason": "Gwendolyn moved"}
    renamed = {"email": "gwendolyn.ap@example.com"}
    requests = [
        ("POST", "/orders", order),
        ("POST", "/orders?_fields=shipping", order),
        ("POST", "/orders/batch", {"create": [order, {"billing": other}]}),
        ("POST", "/customers/batch", {"update": [{"id": ann["id"], "last_name": "Gwendolyn"}]}),
        ("POST", f"/orders/{paid['id']}/notes", note),
        ("POST", f"/orders/{paid['id']}/refunds", refund),
        ("PUT", f"/customers/{ann['id']}?_fields=shipping", renamed),
        ("POST", "/orders/batch", {}),
    ]
    headers = [{"Idempotency-Key": str(number)} for number in range(2, 2 + len(requests))]
    first = [shop.ok(*each, **key) for each, key in zip(requests, headers, strict=True)]
    again = [shop.ok(*each, **key) for each, key in zip(requests, headers, strict=True)]
    assert again == first
    assert "idempotency_records" in stored_words()
    deleted = shop.ok("DELETE", f"/customers/{ann['id']}?force=true")
    assert deleted["id"] == ann["id"]
    assert "idempotency_records" not in stored_words()
    assert "events" not in stored_words()
    again = [shop.ok(*each, **key) for each, key in zip(requests, headers, strict=True)]
    assert "gwendolyn" not in str(again).lower()
    assert again[2]["create"][1] == first[2]["create"][1]
    assert again[0]["id"] == first[0]["id"]
    assert again[-1] == []


def test_resources_of_a_key_hold_for_what_a_response_contains(shop, app):
    """As in the native API: downloads name orders, and reports count other records."""
    downloads = "/customers/7/downloads"
    customers, coupons = "/reports/customers/totals", "/reports/coupons/totals"
    allowed = {
        "customers": set(),
        "customers,orders": {downloads},
        "reports": set(),
        "reports,customers": {customers},
        "reports,coupons": {coupons},
        "all": {downloads, customers, coupons},
    }
    for resources, paths in allowed.items():
        limit_key(app, resources)
        every = {downloads, customers, coupons}
        opened = {path for path in every if shop.send("GET", path).status_code == 200}
        assert opened == paths, resources


@pytest.mark.both_databases
def test_totals_are_those_of_the_records(shop, app, statements):
    for customer_id, status in (
        (1, "completed"),
        (5, "completed"),
        (5, "on-hold"),
        (0, "completed"),
    ):
        made = shop.ok("POST", "/orders", {"customer_id": customer_id, "status": status})
    shop.ok("DELETE", f"/orders/{made['id']}")  # to the trash
    shop.ok("PUT", f"/orders/{made['id'] - 2}", {"status": "refunded"})
    with app.app_context():
        staff = {row.user_id for row in fetch(select(USER_ROLES)) if row.role in STAFF}
        orders = fetch(select(ORDERS.c.customer_id, ORDERS.c.status, ORDERS.c.completed_at))
        users = {row[0] for row in fetch(select(USERS.c.id))}
    assert staff & {row.customer_id for row in orders if row.completed_at}
    paying = {row.customer_id for row in orders if row.completed_at} - staff - {None}
    statuses = Counter(row.status for row in orders)
    statements.clear()
    found = {each["slug"]: each["total"] for each in shop.ok("GET", "/reports/customers/totals")}
    assert found == {"paying": len(paying), "non_paying": len(users - staff - paying)}
    found = {each["slug"]: each["total"] for each in shop.ok("GET", "/reports/orders/totals")}
    assert found == {slug: statuses[slug] for slug in found}
    counts = [text for text in statements if "count(" in text]
    assert not [text for text in counts if "FROM users" in text or "GROUP BY orders" in text]


def limit_key(app, resources, **columns):
    changed = {"resources": resources, **columns}
    with app.app_context(), db.engine.begin() as connection:
        connection.execute(update(API_KEYS).where(API_KEYS.c.id == 1).values(changed))
        forget_principals()


def test_resources_of_a_key(shop, app):
    limit_key(app, "coupons")
    assert shop.send("GET", "/coupons").status_code == 200
    assert shop.send("GET", "/orders").status_code == 401
    for path in ("", "/openapi.json", "/system_status", "/nothing"):  # for every key
        assert shop.send("GET", path).status_code == (404 if path == "/nothing" else 200)


@pytest.mark.slow
def test_switched_off_and_prefix(shop, make_app):
    off = make_app(SHOP_WC_V3=False)
    assert off.test_client().get(f"{V3}/coupons").status_code == 404
    prefixed = make_app(SHOP_URL_PREFIX="/shop")
    http = prefixed.test_client()
    index = http.get("/shop/wp-json/").get_json()
    assert index["namespaces"] == ["wc/v3"]
    response = http.get(f"/shop{V3}/coupons?per_page=1", auth=shop.options["auth"])
    assert response.get_json()[0]["_links"]["self"][0]["href"].startswith(
        "http://localhost/shop/wp-json/wc/v3/coupons/"
    )
    assert 'rel="next"' in response.headers["Link"]


def test_currencies_are_those_that_exist(shop):
    assert shop.ok("POST", "/orders", {"currency": "EUR"})["currency"] == "EUR"
    for wrong in ("eur", "ZZZ", "EURO"):
        response = shop.send("POST", "/orders", {"currency": wrong}).get_json()
        assert response["data"]["details"]["currency"]["code"] == "rest_not_in_enum"
        reason = response["data"]["params"]["currency"]
        assert reason.startswith("currency is not one of AED, AFN, ")
        assert reason.endswith(", and ZWG.")


def test_options_describe_a_route(shop):
    described = shop.ok("OPTIONS", "/orders")["endpoints"]
    assert described[0]["args"]["status"]["items"]["enum"][:3] == ["any", "trash", "pending"]
    described = shop.ok("OPTIONS", "/coupons")
    assert described["methods"] == ["GET", "POST"]
    assert described["endpoints"][1]["args"]["code"] == {"required": True, "type": "string"}
    assert shop.ok("OPTIONS", "/nothing") == []


@pytest.mark.both_databases
def test_search_finds_lines_and_payments(shop):
    created = shop.ok(
        "POST",
        "/orders",
        {"line_items": [{**LINE, "name": "Blue kettle"}], "transaction_id": "TX-new"},
    )
    assert len(shop.ok("GET", "/orders?search=kettle")) == 1
    assert len(shop.ok("GET", "/orders?search=tx-NEW")) == 1
    assert [each["id"] for each in shop.ok("GET", "/orders?product=14&order=asc")] == [48, 56, 64]
    refund = shop.ok("POST", f"/orders/{created['id']}/refunds", {"amount": "1"})
    assert [each["id"] for each in shop.ok("GET", "/refunds?search=kettle")] == [refund["id"]]
    assert shop.ok("GET", "/refunds?search=zzzz") == []


def test_methods_depend_on_the_rights_on_an_account(shop, app):
    def methods(who, path):
        response = who.send("GET", path)
        hints = response.get_json()["_links"]["self"][0]["targetHints"]["allow"]
        assert response.headers["Allow"].split(", ") == hints
        return hints

    everything = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    assert methods(shop, "/customers/5") == everything
    assert methods(shop, "/customers/1") == everything[:-1]  # the own account
    manager = Shop(app, "manager_rw")
    assert methods(manager, "/customers/5") == everything[:-1]
    for account in (1, 3, 4):  # an administrator, a subscriber and an editor
        assert methods(manager, f"/customers/{account}") == ["GET"]
        refused = manager.send("PUT", f"/customers/{account}", {"first_name": "P"})
        assert (refused.status_code, refused.get_json()["code"]) == (
            403,
            "woocommerce_rest_cannot_edit",
        )
    assert methods(manager, "/orders/41") == everything
    with app.app_context():
        roles = [(3, "customer"), (5, "administrator"), (6, "wholesale")]
        times = dict(db.session.execute(select(USERS.c.id, USERS.c.created_at)).all())
        rows = [
            {"user_id": each, "role": role, "position": 1, "registered_at": times[each]}
            for each, role in roles
        ]
        db.session.execute(insert(USER_ROLES), rows)
        db.session.commit()
    assert methods(manager, "/customers/3") == everything[:-1]  # a subscriber who is a customer
    assert methods(manager, "/customers/5") == ["GET"]  # a customer who is an administrator
    assert methods(manager, "/customers/6") == everything[:-1]
    (listed,) = manager.ok("GET", "/customers?include=5")
    assert listed["_links"]["self"][0]["targetHints"]["allow"] == ["GET"]
    manager.ok("PUT", "/customers/3", {"first_name": "P"})
    assert manager.send("PUT", "/customers/5", {"first_name": "P"}).status_code == 403
    deleted = shop.send("DELETE", "/customers/5?force=true")
    assert "Allow" not in deleted.headers
    assert "targetHints" not in deleted.get_json()["_links"]["self"][0]


def test_batches_are_allowed_to_callers_with_one_of_their_rights(shop, app):
    manager = Shop(app, "manager_rw")  # may create and change customers, but not delete them
    for name in ("coupons", "customers", "orders"):
        response = manager.send("POST", f"/{name}/batch", {})
        assert (response.status_code, response.headers["Allow"]) == (200, "POST, PUT, PATCH")


def test_quantity_alone_keeps_the_amounts_of_a_line(shop):
    order = shop.ok("POST", "/orders", {"line_items": [LINE]})
    line = {"id": order["line_items"][0]["id"], "quantity": 5}
    (changed,) = shop.ok("PUT", f"/orders/{order['id']}", {"line_items": [line]})["line_items"]
    assert (changed["quantity"], changed["subtotal"], changed["total"]) == (5, "20.00", "20.00")
    discounted = {**LINE, "total": "15.00", "subtotal": "20.00"}
    order = shop.ok("POST", "/orders", {"line_items": [discounted]})
    line["id"] = order["line_items"][0]["id"]
    (changed,) = shop.ok("PUT", f"/orders/{order['id']}", {"line_items": [line]})["line_items"]
    assert (changed["subtotal"], changed["total"]) == ("20.00", "15.00")


@pytest.mark.parametrize("total", ["15.00", "20.00"])
def test_subtotal_alone_keeps_the_total_of_a_line(shop, total):
    line = {**LINE, "total": total, "subtotal": "20.00"}
    order = shop.ok("POST", "/orders", {"line_items": [line]})
    path, line = f"/orders/{order['id']}", {"id": order["line_items"][0]["id"], "subtotal": "30"}
    (changed,) = shop.ok("PUT", path, {"line_items": [line]})["line_items"]
    assert (changed["subtotal"], changed["total"]) == ("30.00", total)
    order = shop.ok(
        "POST", "/orders", {"line_items": [LINE], "coupon_lines": [{"code": "welcome10"}]}
    )
    line["id"] = order["line_items"][0]["id"]
    (changed,) = shop.ok("PUT", f"/orders/{order['id']}", {"line_items": [line]})["line_items"]
    assert (changed["subtotal"], changed["total"]) == ("30.00", "27.00")


def test_coupons_that_are_sent_again_discount_given_totals(shop):
    """The service keeps a total that was given, until a request lists the coupons."""
    lines = {"line_items": [LINE], "coupon_lines": [{"code": "five-off"}]}
    order = shop.ok("POST", "/orders", lines)
    path, line = f"/orders/{order['id']}", {"id": order["line_items"][0]["id"], "total": "20.00"}
    assert shop.ok("PUT", path, {"line_items": [line]})["total"] == "20.00"
    again = {"coupon_lines": [{"code": "five-off"}]}
    assert shop.ok("PUT", path, again)["total"] == "15.00"
    changed = shop.ok("PUT", path, {**again, "line_items": [line]})
    assert (changed["discount_total"], changed["total"]) == ("5.00", "15.00")


def test_attributes_of_lines_are_changed_as_metadata(shop):
    """A line of an import or of a native request has attributes with labels."""

    def sent(*entries):
        body = {"line_items": [{"id": 14, "meta_data": entries}]}
        return shop.ok("PUT", "/orders/48", body)["line_items"][1]["meta_data"]

    lines = shop.ok("GET", "/orders/48")["line_items"]
    (size,) = lines[1]["meta_data"]
    assert (size["display_key"], size["value"]) == ("Size", "L")
    assert shop.ok("PUT", "/orders/48", {"line_items": lines})["line_items"] == lines
    larger = size | {"value": "XL", "display_value": "XL"}
    assert sent({"id": size["id"], "key": "size", "value": "XL"}) == [larger]
    assert sent({"id": size["id"], "value": "without a key"}) == [larger]
    assert sent({"key": "size", "value": "S"}, {"key": "size", "value": "L"}) == [size]
    native = shop.http.get("/orders/48", **shop.options).get_json()["order"]["line_items"][1]
    assert native["meta"] == [{"key": "size", "label": "Size", "value": "L"}]
    (listed,) = sent({"key": "size", "value": ["S", "L"]})
    assert listed["value"] == ["S", "L"]
    assert sent({"key": "size", "value": None}) == []
    (engraving,) = shop.ok("GET", "/orders/68")["line_items"][0]["meta_data"]
    line = {"id": 57, "meta_data": [{"id": engraving["id"], "value": ["a list without a key"]}]}
    (changed,) = shop.ok("PUT", "/orders/68", {"line_items": [line]})["line_items"][0]["meta_data"]
    assert (changed["key"], changed["value"]) == (engraving["key"], ["a list without a key"])
    (engraving,) = shop.ok("GET", "/orders/47")["line_items"][0]["meta_data"]
    line = {"id": 12, "meta_data": [{"id": engraving["id"], "value": None}]}
    assert shop.ok("PUT", "/orders/47", {"line_items": [line]})["line_items"][0]["meta_data"] == []


@pytest.mark.both_databases
def test_amounts_with_eight_decimals(shop):
    order = shop.ok("GET", "/orders/41?dp=8")
    assert re.fullmatch(r"\d+\.\d{8}", order["total"])
    assert order["discount_tax"] == "0.00000000"


@pytest.mark.parametrize(
    ("path", "body"),
    [("/orders/41/notes", {"note": "a"}), ("/orders/47/refunds", {"amount": "1.00"})],
)
def test_deletions_of_notes_and_refunds_check_if_match(shop, path, body):
    path = f"{path}/{shop.ok('POST', path, body)['id']}"
    tag = shop.send("GET", path).headers["ETag"]
    changed = shop.send("DELETE", f"{path}?force=true", **{"If-Match": '"other"'})
    assert changed.get_json()["code"] == "woocommerce_rest_precondition_failed"
    assert shop.send("GET", path).headers["ETag"] == tag
    shop.ok("DELETE", f"{path}?force=true", **{"If-Match": tag})


def test_a_change_of_webhook_0(shop):
    (failed,) = shop.ok("POST", "/webhooks/batch", {"update": [{"name": "a"}]})["update"]
    assert failed["error"] == shop.send("PUT", "/webhooks/0", {"name": "a"}).get_json()
    assert failed["error"]["message"] == "ID is invalid."


def test_used_by_has_only_known_customers(shop):
    coupon = [{"code": "welcome10"}]
    for buyer in ({}, {"customer_id": 5}, {"billing": {"email": "Ann@mail.example"}}):
        order = {"status": "completed", "line_items": [LINE], "coupon_lines": coupon, **buyer}
        shop.ok("POST", "/orders", order)
    uses = shop.ok("GET", "/coupons/16?_fields=usage_count,used_by")
    assert (uses["usage_count"], uses["used_by"]) == (3, ["5", "ann@mail.example"])


@pytest.mark.parametrize("fields", ["id, code", ["id", "code"]])
def test_fields_in_a_body(shop, fields):
    """A body has parameters, too: the app for Android sends the names of fields there."""
    created = shop.ok("POST", "/coupons", {"code": "few", "_fields": fields})
    assert list(created) == ["id", "code", "_links"]
    form = f"amount=3&_fields={','.join(fields)}" if isinstance(fields, list) else "_fields=id,code"
    kind = {"content_type": "application/x-www-form-urlencoded"}
    changed = shop.http.put(f"{V3}/coupons/{created['id']}", data=form, **kind, **shop.options)
    assert changed.get_json() == created
    batch = {"create": [{"code": "batch"}], "delete": [created["id"]], "_fields": "delete"}
    assert list(shop.ok("POST", "/coupons/batch", batch)) == ["delete"]


def test_taxes_of_a_refunded_line_by_rate(shop):
    order = shop.ok("GET", "/orders/46")
    line, shipping = order["line_items"][0], order["shipping_lines"][0]
    taxes = [{"id": 1, "refund_total": "1.50"}, {"id": "2", "refund_total": 0}]
    item = {"id": line["id"], "quantity": 1, "refund_total": "15", "refund_tax": taxes}
    refund = shop.ok("POST", "/orders/46/refunds", {"line_items": [item]})
    assert refund["amount"] == "16.50"
    (refunded,) = refund["line_items"]
    assert refunded["taxes"] == [{"id": 1, "total": "-1.50", "subtotal": "-1.50"}]
    assert [entry["key"] for entry in refunded["meta_data"]] == ["_refunded_item_id"]
    assert shop.ok("GET", f"/orders/46/refunds/{refund['id']}") == refund
    (of_order,) = order["tax_lines"]
    amounts = {"tax_total": "-1.50", "shipping_tax_total": "0.00"}
    assert refund["tax_lines"] == [of_order | amounts]
    assert shop.ok("GET", "/refunds?per_page=1")[0]["tax_lines"] == refund["tax_lines"]
    item = {"id": shipping["id"], "refund_total": "1"}
    refund = shop.ok("POST", "/orders/46/refunds", {"line_items": [item]})
    described = ("method_id", "method_title", "instance_id")
    (shipped,) = refund["shipping_lines"]
    assert [shipped[name] for name in described] == [shipping[name] for name in described]
    assert refund["tax_lines"] == []


def test_refunded_items_by_their_id(shop):
    """The app for Android sends items as they are inside WooCommerce."""
    (line,) = shop.ok("GET", "/orders/46")["line_items"]
    for taxes, shown in ((1.5, 0), ({"1": "0.25"}, 1)):
        item = {"itemId": line["id"], "qty": 1, "refund_total": 15.0, "refund_tax": taxes}
        body = {"api_refund": "false", "line_items": {line["id"]: item}}
        (refunded,) = shop.ok("POST", "/orders/46/refunds", body)["line_items"]
        assert (refunded["quantity"], refunded["total"]) == (-1, "-15.00")
        assert [each["id"] for each in refunded["taxes"]] == [shown]
    named = shop.send("POST", "/orders/46/refunds", {"line_items": {"first": item}})
    assert named.get_json()["data"]["params"] == {"line_items": "line_items is not of type array."}


def test_tax_status_of_fees(shop):
    fees = [{"name": "Gift wrap", "total": "3", "tax_status": "none"}, {"name": "B", "total": "1"}]
    order = shop.ok("POST", "/orders", {"fee_lines": fees})
    assert [fee["tax_status"] for fee in order["fee_lines"]] == ["none", "taxable"]
    assert [fee["meta_data"] for fee in order["fee_lines"]] == [[], []]
    change = {"id": order["fee_lines"][0]["id"], "tax_status": "taxable"}
    order = shop.ok("PUT", f"/orders/{order['id']}", {"fee_lines": [change]})
    assert [fee["tax_status"] for fee in order["fee_lines"]] == ["taxable", "taxable"]
    wrong = shop.send("POST", "/orders", {"fee_lines": [{**fees[0], "tax_status": "bad"}]})
    message = "fee_lines[0][tax_status] is not one of taxable and none."
    assert wrong.get_json()["data"]["params"] == {"fee_lines": message}


def test_notes_of_status_changes(shop):
    def newest(order_id):
        note = shop.ok("GET", f"/orders/{order_id}/notes")[0]
        return note["note"], note["author"]

    shop.ok("PUT", "/orders/41", {"status": "completed", "manual_update": True})
    assert newest(41) == ("Order status changed from Processing to Completed.", "admin")
    paid = {"set_paid": True, "payment_method_title": "Card", "transaction_id": "T1"}
    order = shop.ok("POST", "/orders", {"line_items": [LINE]})
    shop.ok("PUT", f"/orders/{order['id']}", paid)
    assert newest(order["id"]) == ("Payment via Card (T1).", "WooCommerce")
    assert len(shop.ok("GET", f"/orders/{order['id']}/notes")) == 1


@pytest.mark.parametrize(
    ("body", "status", "is_paid", "note"),
    [
        ({}, "processing", True, "Payment via Card."),
        ({"payment_method": "cod"}, "completed", True, "Payment via Card."),
        ({"line_items": []}, "completed", True, "Payment via Card."),
        ({"status": "completed"}, "completed", True, "from Pending payment to Completed."),
        ({"status": "refunded"}, "refunded", False, "from Pending payment to Refunded."),
        ({"set_paid": False, "status": "processing"}, "processing", True, "to Processing."),
        ({"set_paid": False, "status": "processing", "payment_method": "cod"},
         "processing", False, "to Processing."),
    ],
)  # fmt: skip
def test_payments_of_new_orders(shop, body, status, is_paid, note):
    paid = {"set_paid": True, "payment_method_title": "Card", "line_items": [LINE]}
    order = shop.ok("POST", "/orders", paid | body)
    assert (order["status"], order["date_paid"] is not None) == (status, is_paid)
    assert order["refunds"] == []
    (found,) = shop.ok("GET", f"/orders/{order['id']}/notes")
    assert found["note"].endswith(note)


def test_usernames_are_cleaned(shop):
    body = {"email": "lead@mail.example", "username": " <b>lead</b>  name "}
    created = shop.ok("POST", "/customers", body)
    assert created["username"] == "lead name"
    for same in ("", "lead name", None):
        shop.ok("PUT", f"/customers/{created['id']}", {"username": same})


def test_an_order_on_delivery_is_paid_when_it_is_completed(shop):
    assert shop.ok("PUT", "/orders/42", {"status": "processing"})["date_paid"] is None
    assert shop.ok("PUT", "/orders/42", {"status": "completed"})["date_paid"]
    assert shop.ok("PUT", "/orders/60", {"set_paid": True})["status"] == "completed"
    waiting = shop.ok("PUT", "/orders/45", {"set_paid": True, "status": "on-hold"})
    assert (waiting["status"], waiting["date_paid"]) == ("on-hold", None)


def test_ids_of_products_and_categories_are_kept_once(shop):
    body = {"product_ids": [10, "10", -11], "excluded_product_categories": "0,15,15"}
    created = shop.ok("POST", "/coupons", {"code": "ids", **body, "product_categories": {}})
    assert (created["product_ids"], created["product_categories"]) == ([10, 11], [])
    assert created["excluded_product_categories"] == [15]


def test_percentages_have_a_limit(shop):
    assert shop.ok("GET", "/coupons/16")["discount_type"] == "percent"
    refused = shop.send("PUT", "/coupons/16", {"amount": "100.01"})
    assert (refused.status_code, refused.get_json()["code"]) == (400, "coupon_invalid_amount")
    shop.ok("PUT", "/coupons/17", {"amount": "150"})
    assert shop.ok("PUT", "/coupons/17", {"discount_type": "percent"})["amount"] == "0.00"


@pytest.mark.parametrize(
    ("path", "field", "value", "fault"),
    [
        ("/coupons", "date_expires", "2030-02-30", {"individual_use": "yes"}),
        ("/coupons", "date_expires_gmt", "soon", {"individual_use": "yes"}),
        ("/coupons", "amount", "1" * 17, {"individual_use": "yes"}),
        ("/coupons", "minimum_amount", 10**16, {"individual_use": "yes"}),
        ("/coupons", "usage_limit", 10**15, {"individual_use": "yes"}),
        ("/customers", "first_name", "a" * 1001, {"last_name": 5}),
        ("/customers", "shipping", {"phone": "1" * 1001}, {"last_name": 5}),
        ("/orders", "billing", {"city": "a" * 1001}, {"set_paid": "yes"}),
        ("/orders", "payment_method", "a" * 1001, {"set_paid": "yes"}),
        ("/orders", "line_items", [{"name": "a", "total": "1" * 17}], {"set_paid": "yes"}),
        ("/orders", "shipping_lines", [{"method_id": "a" * 1001}], {"set_paid": "yes"}),
        ("/orders/41/refunds", "amount", "1" * 17, {"reason": 5}),
    ],
)
def test_values_out_of_bounds_are_reported_with_others(shop, app, path, field, value, fault):
    body = {"code": "z", "email": "q@x.example", field: value} | fault
    error = shop.send("POST", path, body).get_json()
    assert error["data"]["params"].keys() == {field, *fault}
    # Before the capability, and in a batch, too.
    response = Shop(app, "customer_rw").send("POST", path, body)
    assert (response.status_code, response.get_json()["code"]) == (400, "rest_invalid_param")
    if path.count("/") == 1:
        (item,) = shop.ok("POST", f"{path}/batch", {"create": [body]})["create"]
        assert item["error"] == error


@pytest.mark.parametrize(
    ("path", "body", "name"),
    [
        ("/orders", {"line_items": [{"name": "a" * 1001, "total": "1"}]}, "line_items"),
        ("/orders", {"line_items": [{**LINE, "variation_id": 2**63}]}, "line_items"),
        ("/coupons", {"code": "z", "product_ids": [2**63]}, "product_ids"),
        ("/coupons", {"code": "z", "excluded_product_ids": [-(2**70)]}, "excluded_product_ids"),
    ],
)
def test_values_that_cannot_be_stored_name_their_parameter(shop, path, body, name):
    response = shop.send("POST", path, body)
    assert response.status_code == 400
    assert list(response.get_json()["data"]["params"]) == [name]


@pytest.mark.parametrize("number", [2**63, -(2**70)])
def test_ids_beyond_64_bits_find_nothing(shop, number):
    for name in ("include", "parent"):
        assert shop.ok("GET", f"/orders?{name}={number}") == []
    every = shop.ok("GET", "/orders")
    for name in ("exclude", "parent_exclude"):
        assert shop.ok("GET", f"/orders?{name}={number}") == every


@pytest.mark.parametrize(
    ("method", "path", "body", "name", "message"),
    [
        ("POST", "/customers", {"email": "q@x.example", "username": "a" * 61},
         "username", "username: is longer than 60 characters."),
        ("PUT", "/customers/5", {"email": "q@@x.example"}, "email", "Invalid email address."),
        ("POST", "/coupons", {"code": "z", "meta_data": [{"key": "a", "value": 2**64}]},
         "meta_data", "coupon.metadata.a: contains an integer outside 64 bits."),
        ("POST", "/coupons", {"code": "z", "amount": "1e2"},
         "amount", "amount is not a decimal number such as 12.50."),
        ("GET", "/reports/sales?context=edit", None, "context", "context is not view."),
        ("GET", "/orders?search=a%00b", None,
         "search", "search must not contain a NUL character."),
        ("POST", "/coupons", {"code": "z", "meta_data": [{"key": "a", "value": ["b\0"]}]},
         "meta_data", "meta_data[0][value] must not contain a NUL character."),
        ("POST", "/orders", {"meta_data": [{"key": "a\0", "value": "b"}]},
         "meta_data", "meta_data[0][key] must not contain a NUL character."),
        ("POST", "/webhooks", {"topic": "order.created", "delivery_url": "https://x.example", "name": "\0"},
         "name", "name must not contain a NUL character."),
    ],
)  # fmt: skip
def test_names_and_details_of_invalid_parameters(shop, method, path, body, name, message):
    data = shop.send(method, path, body).get_json()["data"]
    assert data["params"] == {name: message}
    assert data["details"][name]["message"] == message


def test_texts_of_lines_can_be_numbers(shop):
    order = shop.ok(
        "POST",
        "/orders",
        {
            "shipping_lines": [{"method_id": 5, "method_title": 6, "total": "1"}],
            "fee_lines": [{"name": 7, "total": "2"}],
            "created_via": "",
        },
    )
    (shipping,), (fee,) = order["shipping_lines"], order["fee_lines"]
    found = (shipping["method_id"], shipping["method_title"], fee["name"], order["created_via"])
    assert found == ("5", "6", "7", "rest-api")


def test_version_is_that_of_the_last_change(shop):
    assert shop.ok("GET", "/orders/41")["version"] == "10.5.0"
    assert shop.ok("PUT", "/orders/41", {"customer_note": "n"})["version"] == "9.0.0"


def test_metadata_is_in_the_order_of_its_ids_in_lists_only(shop):
    entries = [{"key": "b", "value": "1"}, {"key": "a", "value": "2"}]
    order = shop.ok("POST", "/orders", {"meta_data": entries})
    assert [each["key"] for each in order["meta_data"]] == ["a", "b"]
    (listed,) = shop.ok("GET", f"/orders?include={order['id']}")
    assert [each["key"] for each in listed["meta_data"]] == ["b", "a"]


def test_links_have_the_parameters_as_they_were_read(shop):
    def link(path):
        return shop.send("GET", path).headers["Link"]

    assert "?dp=1&status%5B0%5D=any&" in link("/orders?dp=-1")
    assert "wc/v3/orders?dp=2&context=view&page=2>" in link("/orders?status=")
    assert "?offset=1&page=1>" in link("/customers?offset=-1")


def test_reports_have_the_descriptions_of_the_original(shop):
    assert {each["slug"]: each["description"] for each in shop.ok("GET", "/reports")} == {
        "sales": "List of sales reports.",
        "top_sellers": "List of top sellers products.",
        "orders/totals": "Orders totals.",
        "customers/totals": "Customers totals.",
        "coupons/totals": "Coupons totals.",
    }


def test_selections_and_methods_that_are_empty(shop):
    assert shop.ok("GET", "/reports?_fields=none") == [[], [], [], [], []]
    response = shop.send("GET", "/coupons/16?_method=")
    assert (response.status_code, response.get_json()["message"]) == (
        401,
        "Unknown request method.",
    )


def test_unknown_methods_are_rejected_after_the_credentials(shop):
    path = "/coupons/16?_method=FOO"
    known, unknown = shop.send("GET", path), shop.http.get(f"{V3}{path}")
    assert (known.status_code, known.get_json()["message"]) == (401, "Unknown request method.")
    assert (unknown.status_code, unknown.get_json()["code"]) == (404, "rest_no_route")
    for response in (known, unknown):
        (link,) = response.headers.getlist("Link")
        assert link.endswith('/wp-json/>; rel="https://api.w.org/"')


def test_empty_fields_in_a_change_of_a_webhook_keep_their_values(shop):
    before = shop.ok("GET", "/webhooks/1")
    empty = dict.fromkeys(("name", "topic", "delivery_url", "secret"), "")
    after = shop.ok("PUT", "/webhooks/1", empty)
    assert {name for name in after if after[name] != before[name]} <= {
        "date_modified",
        "date_modified_gmt",
    }


def test_metadata_of_lists_by_key(shop):
    def keys(path):
        (record,) = shop.ok("GET", path)
        return [entry["key"] for entry in record["meta_data"]]

    assert keys("/coupons?include=39&include_meta=campaign") == ["campaign", "campaign"]
    assert keys("/coupons?include=39&exclude_meta=campaign,channels") == ["_internal_flag"]
    assert keys("/customers?include=5&include_meta[]=prefs&exclude_meta=prefs") == ["prefs"]
    shop.ok(
        "POST", "/orders/47/refunds", {"amount": "1", "meta_data": [{"key": "a", "value": "b"}]}
    )
    assert keys("/orders/47/refunds?per_page=1&include_meta=b") == []
    assert keys("/refunds?per_page=1&exclude_meta=b") == ["a"]
    (order,) = shop.ok("GET", "/orders?include=47&include_meta=source")
    assert order["line_items"][0]["meta_data"]  # the keys are those of the order


def test_hooks_of_topics(shop):
    """The names of the actions of the original, which the recording shows for some topics only."""
    expected = {
        "order.updated": ["woocommerce_update_order", "woocommerce_order_refunded"],
        "product.created": [
            "woocommerce_process_product_meta",
            "woocommerce_new_product",
            "woocommerce_new_product_variation",
        ],
        "product.updated": [
            "woocommerce_process_product_meta",
            "woocommerce_update_product",
            "woocommerce_update_product_variation",
        ],
    }
    for topic, hooks in expected.items():
        assert shop.ok("PUT", "/webhooks/1", {"topic": topic})["hooks"] == hooks


def test_webhooks_changed_in_the_second_of_their_creation_have_a_time(app_with):
    app = app_with(SHOP_WEBHOOK_ALLOWED_NETWORKS="0.0.0.0/0")
    reset(app)
    shop = Shop(app)
    body = {"topic": "order.created", "delivery_url": "http://receiver.example/a"}
    created = shop.ok("POST", "/webhooks", body)
    assert created["date_modified"] is None
    changed = shop.ok("PUT", f"/webhooks/{created['id']}", {})
    assert changed["date_modified"] > created["date_created"]


def test_metadata_under_the_names_of_fields_is_not_shown(shop):
    given = {
        "coupons": ["coupon_amount", "_used_by", "erp"],
        "orders": ["_billing_city", "_customer_user", "erp"],
        "customers": ["billing_city", "wp_capabilities", "erp"],
    }
    identity = {"coupons": {"code": "named"}, "orders": {}, "customers": {"email": "n@b.example"}}
    for resource, keys in given.items():
        entries = [{"key": key, "value": "x"} for key in keys]
        created = shop.ok("POST", f"/{resource}", {**identity[resource], "meta_data": entries})
        assert [entry["key"] for entry in created["meta_data"]] == ["erp"]


def test_bounds_of_the_cart_can_be_negative(shop):
    coupon = shop.ok("POST", "/coupons", {"code": "low", "minimum_amount": "-5"})
    assert coupon["minimum_amount"] == "-5.00"
    refused = shop.send("POST", "/coupons", {"code": "lower", "amount": "-5"}).get_json()
    assert refused["code"] == "coupon_invalid_amount"


def test_notes_of_an_order_in_the_trash_can_be_read(shop):
    note = shop.ok("POST", "/orders/41/notes", {"note": "Fragile"})
    shop.ok("DELETE", "/orders/41")
    assert note["id"] in [each["id"] for each in shop.ok("GET", "/orders/41/notes")]
    assert shop.ok("GET", f"/orders/41/notes/{note['id']}")["note"] == "Fragile"
    assert shop.send("POST", "/orders/41/notes", {"note": "Late"}).status_code == 404


def test_values_of_an_object_are_items_of_a_batch(shop):
    done = shop.ok("POST", "/coupons/batch", {"create": {"2": {"code": "a"}, "5": {"code": "b"}}})
    assert [each["code"] for each in done["create"]] == ["a", "b"]


def test_ids_in_a_batch(shop):
    body = {"update": [{"id": 16.0, "amount": "1"}], "delete": [0, "x", None, 17.0, "18", -19]}
    result = shop.ok("POST", "/coupons/batch?_envelope=1", body)["body"]
    assert result["update"][0]["amount"] == "1.00"
    assert [each["id"] for each in result["delete"]] == [17, 18]
    assert shop.ok("POST", "/coupons/batch", {"delete": ["x", 0]}) == []


def test_errors_have_the_names_of_this_dialect(app, shop):
    body = {"topic": "order.created", "delivery_url": "https://hooks.example/a"}
    refused = Shop(app, "admin_w").send("POST", "/webhooks", body).get_json()
    assert refused["message"].startswith("topic: an API key cannot grant a right")


def test_image_of_a_line(shop):
    lines = shop.ok("GET", "/orders/48")["line_items"]
    assert [line["image"]["id"] for line in lines] == ["", 0]


def test_staff_cannot_be_deleted(shop):
    refused = shop.send("DELETE", "/customers/2?force=true")
    assert refused.status_code == 403
    assert refused.get_json()["code"] == "woocommerce_rest_cannot_delete"
    (link,) = shop.ok("GET", "/customers/2")["_links"]["self"]
    assert "DELETE" not in link["targetHints"]["allow"]
    assert shop.ok("DELETE", "/customers/3?force=true")["role"] == "subscriber"


def test_offset_of_the_time_zone(shop, app_with):
    options = {"base_url": "https://shop.example"}
    index = shop.http.get("/wp-json/", **options).get_json()
    assert (index["gmt_offset"], index["timezone_string"]) == ("0", "UTC")
    for zone, offset in (("Asia/Kolkata", 5.5), ("America/Phoenix", -7)):
        other = app_with(SHOP_TIMEZONE=zone).test_client()
        assert other.get("/wp-json/", **options).get_json()["gmt_offset"] == offset


@pytest.mark.sample(1)
@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Phoenix"])
@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
@pytest.mark.parametrize("are_last_days", [False, True])
def test_first_and_last_day_of_the_calendar(app_with, zone, day, are_last_days):
    app = app_with(SHOP_TIMEZONE=zone, SHOP_EXPIRY_IN_TIMEZONE=are_last_days)
    reset(app)
    shop = Shop(app)
    for text in (f"{day}T00:00:00", f"{day}T23:59:59", f"{day}T23:59:59-12:00", f"{day}T00:00:00Z"):
        for name in ("after", "modified_before"):
            found = shop.ok("GET", f"/orders?{name}={text}&_fields=id")
            assert bool(found) is ((name == "after") is (day == "0001-01-01"))
        coupon = {"code": text, "date_expires": text}
        created = shop.ok("POST", "/coupons", coupon)
        assert shop.ok("GET", f"/coupons/{created['id']}") == created
    for report in ("sales", "top_sellers"):
        path = f"/reports/{report}?date_min={day}&date_max={day}"
        expected = 200 if day == "0001-01-01" else 400
        assert shop.send("GET", path).status_code == expected


@pytest.mark.parametrize("value", ["abc", "1,5", [1], {"a": 1}, "nan", True, ""])
def test_metadata_of_a_line_that_is_not_an_amount(shop, value):
    names = ("shipping_tax_amount", "rate_percent", "discount_amount_tax")
    metadata = dict.fromkeys(names, value)
    tax = {"rate_id": 1, "code": "T", "title": "Tax", "total": "2.00", "metadata": metadata}
    used = {"code": "recorded", "amount": "1.00", "metadata": metadata}
    body = {"order": {"tax_lines": [tax], "coupon_lines": [used]}}
    created = shop.http.post("/orders", json=body, **shop.options)
    order = shop.ok("GET", f"/orders/{created.get_json()['order']['id']}")
    (tax,), (used,) = order["tax_lines"], order["coupon_lines"]
    shown = tax["tax_total"], tax["shipping_tax_total"], tax["rate_percent"], used["discount_tax"]
    assert shown == ("2.00", "0.00", 0, "0")


@pytest.mark.both_databases
def test_order_of_coupons_without_ids_to_include(shop):
    listed = shop.ok("GET", "/coupons?orderby=include&_fields=id")
    assert listed == shop.ok("GET", "/coupons?_fields=id")


@pytest.mark.both_databases
def test_search_finds_ids(shop):
    found = shop.ok("GET", "/customers?search=5&_fields=id")
    assert sorted(each["id"] for each in found) == [5, 9, 19]
    assert 71 in [each["id"] for each in shop.ok("GET", "/refunds?search=47")]
    assert shop.ok("GET", "/customers?search=5000") == []
    assert shop.ok("GET", f"/customers?search={'5' * 5000}") == []


def test_a_search_counts_an_order_once_whose_id_and_text_match(shop):
    response = shop.send("GET", "/orders?search=41&_fields=id")
    assert response.get_json() == [{"id": 41}]
    assert response.headers["X-WP-Total"] == "1"


@pytest.mark.both_databases
def test_sales_count_new_customers_only(shop):
    (sales,) = shop.ok("GET", "/reports/sales?date_min=2025-01-01&date_max=2025-02-28")
    assert sales["total_customers"] == 3  # the staff of January is not counted


def test_slashes_at_the_end(shop):
    assert shop.ok("GET", "/coupons/16//")["id"] == 16


def test_a_username_of_blanks_is_invalid(shop):
    refused = shop.send("POST", "/customers", {"email": "b@b.example", "username": "   "})
    assert refused.get_json()["code"] == "registration-error-invalid-username"


def test_the_customer_of_a_guest_order_has_no_further_keys(shop):
    guest = shop.ok("POST", "/orders", {"billing": {"first_name": "Ada", "email": "a@b.example"}})
    named = ["id", "email", "first_name", "last_name", "billing", "shipping"]
    assert list(guest["customer"]) == named
    assert list(shop.ok("GET", f"/orders/{guest['id']}")["customer"]) == named
    for address in ("billing", "shipping"):  # in the order of the accounts of customers
        parts = list(shop.ok("GET", "/customers/2")[address])
        assert list(guest["customer"][address]) == parts


@pytest.mark.sample(4)
@pytest.mark.parametrize("field", ["product_id", "method_id", "method_title", "name", "code"])
@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("line_items", LINE),
        ("shipping_lines", {"method_id": "flat", "total": "1"}),
        ("fee_lines", {"name": "Gift", "total": "1"}),
    ],
)
def test_null_removes_an_item(shop, name, line, field):
    order = shop.ok("POST", "/orders", {name: [line, line]})
    first, second = (each["id"] for each in order[name])
    path, removal = f"/orders/{order['id']}", {"id": first, field: None}
    assert [each["id"] for each in shop.ok("PUT", path, {name: [removal]})[name]] == [second]


def test_a_batch_deletes_records_that_are_named_by_objects(shop):
    items = [19, {"id": 21}, {"id": "22"}, {"id": 0}, {}, "x"]
    deleted = shop.ok("POST", "/coupons/batch", {"delete": items})["delete"]
    assert [each["id"] for each in deleted] == [19, 21, 22]
    assert shop.send("GET", "/coupons/21").status_code == 404
    assert shop.ok("POST", "/orders/batch", {"delete": [{"id": 90000}]})["delete"] == [
        {
            "id": 90000,
            "error": {
                "code": "woocommerce_rest_shop_order_invalid_id",
                "message": "Invalid ID.",
                "data": {"status": 404},
            },
        }
    ]


@pytest.mark.parametrize("noun", ["coupons", "customers", "orders", "webhooks"])
def test_options_of_batches_have_a_schema(shop, noun):
    schema = shop.ok("OPTIONS", f"/{noun}/batch")["schema"]
    assert schema["title"] == "batch"
    assert list(schema["properties"]) == ["create", "update", "delete"]


@pytest.mark.parametrize("given", ["0", "x", "0,41", "x,41"])
def test_parent_0_means_orders_without_a_parent(shop, given):
    child = shop.ok("POST", "/orders", {"parent_id": 42})["id"]
    other = shop.ok("POST", "/orders", {"parent_id": 41})["id"]
    listed = [each["id"] for each in shop.ok("GET", f"/orders?parent_exclude={given}&order=asc")]
    assert listed == ([child] if "41" in given else [child, other])
    assert len(shop.ok("GET", "/orders?parent=0&per_page=100")) > 2


def test_orders_of_other_parents_are_counted(shop):
    for parent in (41, 41, 42):
        shop.ok("POST", "/orders", {"parent_id": parent})
    every = shop.ok("GET", "/orders?per_page=100&_fields=id,parent_id,status")
    for query, status in (
        ("", None),
        ("&status=pending", "pending"),
        ("&after=2000-01-01T00:00:00", None),
    ):
        path = f"/orders?parent_exclude=41,43&per_page=100&_fields=id{query}"
        found = shop.send("GET", path)
        wanted = [
            each["id"]
            for each in every
            if each["parent_id"] != 41 and each["status"] == (status or each["status"])
        ]
        assert [each["id"] for each in found.get_json()] == wanted
        assert found.headers["X-WP-Total"] == str(len(wanted))


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/orders", {"line_items": [{"id": "x"}]}, "line_items[0][id] is not of type integer."),
        ("/orders", {"fee_lines": [{"id": []}]}, "fee_lines[0][id] is not of type integer."),
        ("/orders", {"line_items": [{"sku": []}]}, "line_items[0][sku] is not of type string."),
        (
            "/orders",
            {"line_items": [{"total": []}]},
            "line_items[0][total] is not of type number,string.",
        ),
        (
            "/coupons",
            {"code": "x", "meta_data": [{"id": "x"}]},
            "meta_data[0][id] is not of type integer.",
        ),
        ("/coupons", {"code": "x", "date_expires": []}, "date_expires is not of type null,string."),
    ],
)
def test_messages_do_not_name_null_where_the_original_does_not(shop, path, body, message):
    error = shop.send("POST", path, body).get_json()
    assert list(error["data"]["params"].values()) == [message]


def test_refunds_of_an_order_in_the_trash_are_in_no_list(shop, admin_client):
    order = shop.ok("POST", "/orders", {"line_items": [LINE]})
    path = f"/orders/{order['id']}"
    refund = shop.ok("POST", f"{path}/refunds", {"amount": "3"})
    listed = [{"id": refund["id"], "reason": "", "total": "-3.00"}]
    assert shop.ok("GET", path)["refunds"] == listed
    shop.ok("DELETE", path)
    assert shop.ok("GET", path)["refunds"] == []
    (trashed,) = shop.ok("GET", f"/orders?status=trash&include={order['id']}")
    assert trashed["refunds"] == []
    native = {"filter[limit]": "1", "fields": "id,refunds,total_refunded"}
    assert admin_client.get("/orders/trash", native).get_json() == {
        "orders": [{"id": order["id"], "refunds": [], "total_refunded": "3.00"}]
    }
    shop.ok("PUT", path, {"status": "pending"})
    assert shop.ok("GET", path)["refunds"] == listed


@pytest.mark.sample(1)
@pytest.mark.parametrize("part", ["email", "first_name", "phone", "country"])
def test_null_in_an_address_is_not_sent(shop, part):
    billing = {part: None, "last_name": "Byron", "city": "Bath"}
    body = {"billing": billing, "shipping": {"first_name": None, "city": "Ely"}}
    order = shop.ok("POST", "/orders", {**body, "line_items": [LINE]})
    assert (order["billing"][part], order["billing"]["city"]) == ("", "Bath")
    assert order["shipping"]["city"] == "Ely"
    value = "a@b.example" if part == "email" else "GB"
    path = f"/orders/{order['id']}"
    shop.ok("PUT", path, {"billing": {part: value}})
    assert shop.ok("PUT", path, {"billing": billing})["billing"][part] == value
    batch = {"update": [{"id": order["id"], "billing": billing}]}
    (updated,) = shop.ok("POST", "/orders/batch", batch)["update"]
    assert updated["billing"][part] == value
    customer = shop.ok("POST", "/customers", {"email": "new@b.example", **body})
    assert (customer["billing"][part], customer["shipping"]["city"]) == ("", "Ely")
    path = f"/customers/{customer['id']}"
    shop.ok("PUT", path, {"billing": {part: value}})
    assert shop.ok("PUT", path, {"billing": billing})["billing"][part] == value


def test_an_entry_of_metadata_with_the_id_null_is_new(shop):
    entry = {"id": None, "key": "a", "value": "b"}
    coupon = shop.ok("POST", "/coupons", {"code": "new-entry", "meta_data": [entry]})
    assert [(each["key"], each["value"]) for each in coupon["meta_data"]] == [("a", "b")]
    order = shop.ok("POST", "/orders", {"line_items": [{**LINE, "id": None, "meta_data": [entry]}]})
    assert order["line_items"][0]["meta_data"][0]["value"] == "b"


@pytest.mark.parametrize("code", ["mom's10", "it's 'x' \"y\"", "{0}-{1}", "a: b"])
def test_errors_name_the_whole_code(shop, code):
    shop.ok("POST", "/coupons", {"code": code, "amount": "5", "minimum_amount": "50"})
    body = {"line_items": [LINE], "coupon_lines": [{"code": code}]}
    error = shop.send("POST", "/orders", body).get_json()
    assert error["message"] == f'The minimum spend for coupon "{code}" is $50.00.'
    batch = shop.ok("POST", "/orders/batch", {"create": [body]})
    assert batch["create"][0]["error"]["message"] == error["message"]


def test_a_name_can_occur_a_thousand_times(shop):
    order = shop.ok("POST", "/orders", {"line_items": [LINE]})["id"]
    for name in ("include[]", "include"):
        query = "&".join(f"{name}={number}" for number in (order, *range(100_000, 100_999)))
        assert [each["id"] for each in shop.ok("GET", f"/orders?{query}")] == [order]
        response = shop.send("GET", f"/orders?{query}&{name}=1")
        assert (response.status_code, response.get_json()["code"]) == (400, "rest_invalid_param")


@pytest.mark.parametrize("currency", ["KWD", "BHD", "TND"])
def test_currency_with_three_decimals_is_an_invalid_param(shop, currency):
    order = shop.ok("POST", "/orders", {"line_items": [LINE]})
    body = {"currency": currency, "line_items": [LINE | {"total": "35.205"}]}
    update = f"/orders/{order['id']}"
    for method, path in (("POST", "/orders"), ("PUT", update), ("PATCH", update)):
        response = shop.send(method, path, body)
        error = response.get_json()
        assert (response.status_code, error["code"]) == (400, "rest_invalid_param")
        assert list(error["data"]["params"]) == ["currency"]
    batch = shop.ok("POST", "/orders/batch", {"create": [body]})
    assert batch["create"][0]["error"]["code"] == "rest_invalid_param"


def test_discounts_and_refunds_of_currencies_without_decimals_are_whole(shop):
    shop.ok("POST", "/coupons", {"code": "tenth", "discount_type": "percent", "amount": "10"})
    line = {"name": "Mug", "quantity": 3, "subtotal": "345", "total": "345"}
    body = {"currency": "KRW", "line_items": [line], "coupon_lines": [{"code": "tenth"}]}
    order = shop.ok("POST", "/orders", body)
    assert (order["discount_total"], order["total"]) == ("34.00", "311.00")
    made = shop.ok("POST", f"/orders/{order['id']}/refunds", {"amount": "10.4"})
    assert made["amount"] == "10.00"


def test_errors_name_the_currency_of_the_order(shop):
    shop.ok("POST", "/coupons", {"code": "large", "maximum_amount": "5", "amount": "1"})
    body = {"coupon_lines": [{"code": "large"}]}
    order = shop.ok("POST", "/orders", {"line_items": [LINE], "currency": "EUR"})
    path = f"/orders/{order['id']}"

    def message(method, path, **over):
        return shop.send(method, path, {**body, **over}).get_json()["message"]

    assert message("PUT", path) == 'The maximum spend for coupon "large" is €5.00.'
    assert message("PUT", path, currency="GBP") == 'The maximum spend for coupon "large" is £5.00.'
    in_yen = message("POST", "/orders", currency="JPY", line_items=[LINE])
    assert in_yen == 'The maximum spend for coupon "large" is ¥5.00.'
    batch = shop.ok("POST", "/orders/batch", {"update": [{"id": order["id"], **body}]})
    assert "€5.00" in batch["update"][0]["error"]["message"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("resources", "permission", "is_shown"),
    [
        ("all", "read_write", True),
        ("coupons,orders", "read", True),
        ("coupons,customers", "read", True),
        ("coupons,redemptions", "read", True),
        ("coupons", "read_write", False),
        ("coupons,webhooks,reports", "read_write", False),
        ("coupons,orders", "write", False),
    ],
)
def test_used_by_is_empty_for_keys_without_the_right(shop, app, resources, permission, is_shown):
    shown = shop.ok("GET", "/coupons/40")["used_by"]
    assert len(shown) == 2
    limit_key(app, resources, permission=permission)
    expected = shown if is_shown else []
    if permission != "write":
        assert shop.ok("GET", "/coupons/40")["used_by"] == expected
        assert shop.ok("GET", "/coupons?include=40")[0]["used_by"] == expected
    if permission != "read":
        changed = {"description": "new"}
        assert shop.ok("PUT", "/coupons/40", changed)["used_by"] == expected
        batch = {"update": [{"id": 40, **changed}], "delete": [40]}
        done = shop.ok("POST", "/coupons/batch", batch)
        assert [each[0]["used_by"] for each in done.values()] == [expected] * 2


def test_deliveries_name_no_customers_of_coupons(shop, app):
    """It is unknown which key a webhook was created with."""
    with app.app_context():
        event = {"id": 1, "type": "coupon.updated", "resource_id": 40}
        (body,) = current_catalog().webhook_forms["bare"].bodies([event])
    delivered = json.loads(body)
    shown = shop.ok("GET", "/coupons/40")
    assert shown["used_by"] == ["5", "guest@mail.example"]
    del shown["_links"], delivered["_links"]
    assert delivered == {**shown, "used_by": []}


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "path",
    ["/products", "/products/categories", "/products/tags", "/products/attributes", "/taxes",
     "/taxes/classes", "/shipping/zones", "/payment_gateways", "/data", "/data/continents",
     "/data/countries", "/data/currencies"],
)  # fmt: skip
def test_lists_without_records_are_empty(shop, path):
    query = "?per_page=100&page=1&orderby=date&status=any"
    response = shop.send("GET", path + query)
    assert (response.status_code, response.get_json()) == (200, [])
    totals = response.headers["X-WP-Total"], response.headers["X-WP-TotalPages"]
    assert (totals, response.headers["Allow"]) == (("0", "0"), "GET")
    assert 'rel="next"' not in response.headers["Link"]
    assert shop.send("HEAD", path).status_code == 200
    assert shop.http.get(V3 + path, base_url="https://shop.example").status_code == 401
    for method, below in (
        ("GET", "/1"),
        ("GET", "/x"),
        ("PUT", "/1"),
        ("POST", ""),
        ("DELETE", "/1"),
    ):
        refused = shop.send(method, path + below, None if method == "GET" else {"name": "x"})
        assert (refused.status_code, refused.get_json()["code"]) == (404, "rest_no_route")


def test_a_search_for_many_words_is_one_for_a_phrase(shop):
    words = "one two three four five six seven eight nine"
    shop.ok("POST", "/coupons", {"code": "words", "description": f"{words} ten"})
    backwards = " ".join(reversed(words.split()))
    assert [each["code"] for each in shop.ok("GET", f"/coupons?search={backwards}")] == ["words"]
    assert [each["code"] for each in shop.ok("GET", f"/coupons?search={words} ten")] == ["words"]
    assert shop.ok("GET", f"/coupons?search=ten {backwards}") == []
    assert shop.ok("GET", f"/coupons?search={'a ' * 3000}") == []


@pytest.mark.parametrize(
    "wrong", ["not-an-address", "a@b.example c@d.example", "a@b.example,c@d.example", "a@"]
)
def test_restrictions_that_are_not_addresses_are_rejected(shop, wrong):
    """A coupon would be open for everyone if an address with a typing error was dropped."""
    given = {"code": "typo", "email_restrictions": ["A@b.example", wrong]}
    response = shop.send("POST", "/coupons", given)
    assert (response.status_code, response.get_json()["code"]) == (400, "rest_invalid_param")
    assert "email_restrictions" in response.get_json()["data"]["params"]
    right = {"code": "typo", "email_restrictions": ["A@b.example", " *@c.example ", ""]}
    made = shop.send("POST", "/coupons", right).get_json()
    assert made["email_restrictions"] == ["a@b.example", "*@c.example"]
    response = shop.send("PUT", f"/coupons/{made['id']}", {"email_restrictions": [wrong]})
    assert response.status_code == 400
    cleared = shop.send("PUT", f"/coupons/{made['id']}", {"email_restrictions": []}).get_json()
    assert cleared["email_restrictions"] == []


@pytest.mark.parametrize("time", ["T10:00:00+02:00", "t10:00:00+02:00", "T08:30:00.5+00:00"])
def test_plus_of_a_time_zone_need_not_be_encoded(shop, time):
    shop.ok("POST", "/coupons", {"code": "soon"})
    found = shop.ok("GET", f"/coupons?search=soon&modified_after=2020-01-01{time}")
    assert [each["code"] for each in found] == ["soon"]
    assert shop.ok("GET", f"/coupons?modified_after=2120-01-01{time}") == []


# Writers of PostgreSQL do not wait for each other.
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("path", "record"),
    [("/orders", {"line_items": [{"quantity": 1}]}), ("/coupons", {"discount_type": "unknown"})],
)
def test_invalid_new_record_waits_for_no_writer(shop, app, monkeypatch, path, record):
    monkeypatch.setattr(sqlite, "WAIT_SECONDS", 0.01)
    with app.extensions[session._WRITE_LOCK]:
        assert shop.send("POST", path, record).status_code == 400
