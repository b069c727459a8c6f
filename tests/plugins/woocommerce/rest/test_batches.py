"""Batches write their items together, with the results of single requests."""

import pytest
from sqlalchemy import event

from app.db.session import db
from tests.api_client import without_key
from tests.plugins.woocommerce.rest.seed import reset
from tests.plugins.woocommerce.rest.test_dialect import LINE, Shop

META = [{"key": "erp", "value": {"id": 7}}]
NEW = {
    "coupons": [
        {"code": "First", "amount": "5", "meta_data": META},
        {"code": "FIRST"},
        {"code": "half", "discount_type": "percent", "amount": "150"},
        {"code": " ", "amount": "1"},
        {"id": 16, "code": "other"},
        {"code": "limited", "usage_limit": -3, "minimum_amount": ""},
        5,
    ],
    "customers": [
        {"email": "first@example.com", "first_name": "Ann", "meta_data": META},
        {"email": "FIRST@example.com"},
        {"email": "second@example.com", "username": "second", "billing": {"email": "x"}},
        {"email": "second@example.com", "username": "second", "password": "a password"},
        {"first_name": "no address"},
    ],
    "orders": [
        {"line_items": [LINE], "customer_id": 2, "set_paid": True, "meta_data": META},
        {"line_items": [{"quantity": 1}]},
        {"customer_id": 9999},
        {"parent_id": 9999},
        {"coupon_lines": [{"code": "nothing"}], "currency": "EUR"},
        {"line_items": [{**LINE, "meta_data": META}], "billing": {"first_name": "Ada"}},
    ],
}
CHANGED = {
    "coupons": [
        {"id": 16, "amount": "3", "meta_data": META},
        {"id": 999, "amount": "3"},
        {"amount": "3"},
        {"id": 17, "code": "x" * 300},
        {"id": 18, "description": "new"},
    ],
    "customers": [
        {"id": 2, "last_name": "New", "meta_data": META},
        {"id": 3, "username": "another"},
        {"id": 999, "last_name": "New"},
        {"id": 4, "billing": {"city": "Bath"}},
    ],
    "orders": [
        {"id": 41, "customer_note": "new", "meta_data": META},
        {"id": 40, "line_items": [{"id": 999, "quantity": 1}]},
        {"id": 999, "customer_note": "new"},
        {"id": 42, "set_paid": True},
    ],
}
VOLATILE = {"id", "date", "number", "order_key", "payment_url", "_links", "href", "version"}


@pytest.fixture
def shop(app):
    reset(app)
    return Shop(app)


def lasting(value):
    """A JSON value without IDs, times and keys, which differ between two runs."""
    if isinstance(value, dict):
        return {
            name: lasting(each)
            for name, each in value.items()
            if name not in VOLATILE and not name.startswith("date_")
        }
    return [lasting(each) for each in value] if isinstance(value, list) else value


def alone(shop, method, path, item):
    """The result of an item in a request of its own, in the form of a batch."""
    response = shop.send(method, path, item if isinstance(item, dict) else {})
    body = response.get_json()
    if response.status_code < 300:
        return body
    if body["data"]["status"] == 404 and body["code"].startswith("woocommerce"):
        body["data"]["status"] = 400  # as on the original
    return {"error": body}


@pytest.mark.sample(2)
@pytest.mark.both_databases
@pytest.mark.parametrize("noun", NEW)
def test_items_that_are_created_together(app, shop, noun):
    together = shop.ok("POST", f"/{noun}/batch", {"create": NEW[noun]})["create"]
    for result in together:
        if "error" not in result:
            (found,) = shop.ok(
                "GET", f"/{noun}?include={result['id']}&role=all&_fields=id,meta_data"
            )
            assert found["meta_data"] == result["meta_data"]
    reset(app)
    apart = [alone(shop, "POST", f"/{noun}", item) for item in NEW[noun]]
    assert lasting(together) == lasting(apart)
    assert {"error" in each for each in apart} == {True, False}


@pytest.mark.sample(2)
@pytest.mark.both_databases
@pytest.mark.parametrize("noun", CHANGED)
def test_items_that_are_changed_together(app, shop, noun):
    together = shop.ok("POST", f"/{noun}/batch", {"update": CHANGED[noun]})["update"]
    assert [each["id"] for each in together] == [item.get("id", 0) for item in CHANGED[noun]]
    reset(app)
    for item, result in zip(CHANGED[noun], together, strict=True):
        path = f"/{noun}/{item.get('id', 0)}"
        assert lasting(result) == lasting(alone(shop, "PUT", path, item)), item
    assert {"error" in each for each in together} == {True, False}


@pytest.mark.sample(2)
@pytest.mark.both_databases
@pytest.mark.parametrize(("noun", "most"), [("coupons", 14), ("customers", 14), ("orders", 14)])
def test_statements_of_a_batch_do_not_grow_with_its_items(shop, statements, noun, most):
    def new(number):
        return {
            "coupons": {"code": f"c-{number}", "meta_data": META},
            "customers": {"email": f"c-{number}@example.com", "meta_data": META},
            "orders": {"line_items": [LINE], "billing": {"email": f"c-{number}@example.com"}},
        }[noun]

    counts = []
    for size in (2, 20):
        statements.clear()
        items = [new(f"{size}-{number}") for number in range(size)]
        created = shop.ok("POST", f"/{noun}/batch", {"create": items})["create"]
        counts.append(len(without_key(statements)))
        statements.clear()
        changes = [{"id": each["id"], "meta_data": [{"key": "b", "value": 1}]} for each in created]
        changed = shop.ok("POST", f"/{noun}/batch", {"update": changes})["update"]
        assert [each["id"] for each in changed] == [each["id"] for each in created]
        # Each changed order is an UPDATE of its own, as in bulk requests of the native API.
        counts.append(
            len([each for each in without_key(statements) if "UPDATE orders" not in each])
        )
    assert counts[:2] == counts[2:]
    assert max(counts) <= most, statements


@pytest.mark.parametrize("noun", ["coupons", "orders"])
def test_items_that_move_records_into_the_trash_or_change_one_twice(shop, noun):
    first, second = {"coupons": (16, 17), "orders": (42, 41)}[noun]
    name = {"coupons": "description", "orders": "customer_note"}[noun]
    items = [
        {"id": first, name: "one"},
        {"id": second, "status": "trash"},
        {"id": first, name: "two"},
    ]
    results = shop.ok("POST", f"/{noun}/batch", {"update": items})["update"]
    assert [each[name] for each in (results[0], results[2])] == ["one", "two"]
    assert results[1]["status"] == "trash"
    restored = [{"id": second, "status": "publish" if noun == "coupons" else "pending"}]
    done = shop.ok("POST", f"/{noun}/batch", {"update": [{"id": first, name: "3"}, *restored]})
    assert done["update"][1]["status"] == restored[0]["status"]


@pytest.mark.parametrize("noun", ["coupons", "orders"])
def test_a_list_of_a_batch_is_one_transaction(app, shop, noun):
    first, second = {"coupons": (16, 17), "orders": (42, 41)}[noun]
    items = [{"id": first}, {"id": second, "status": "trash"}, {"id": first}, {"id": second}]
    commits = []
    with app.app_context():
        event.listen(db.engine, "commit", lambda _: commits.append(1))
    # The first write of an app commits once more on PostgreSQL.
    shop.ok("POST", f"/{noun}/batch", {"update": items[:1]})
    commits.clear()
    shop.ok("POST", f"/{noun}/batch", {"update": items})
    assert len(commits) == 1


def test_an_item_with_the_address_of_another_account_changes_nothing(shop):
    items = [
        {"id": 2, "last_name": "New"},
        {"id": 3, "email": shop.ok("GET", "/customers/2")["email"], "last_name": "New"},
    ]
    results = shop.ok("POST", "/customers/batch", {"update": items})["update"]
    assert results[0]["last_name"] == "New"
    assert results[1]["error"]["code"] == "woocommerce_rest_customer_invalid_email"
    assert shop.ok("GET", "/customers/2")["last_name"] == "New"
    assert shop.ok("GET", "/customers/3")["last_name"] != "New"


@pytest.mark.parametrize("beside", [{"id": 2, "email": 5}, {"id": 999}])
def test_a_failed_item_beside_only_failed_items_changes_nothing(shop, beside):
    taken = shop.ok("GET", "/customers/2")["email"]
    items = [beside, {"id": 3, "email": taken, "last_name": "New"}]
    results = shop.ok("POST", "/customers/batch", {"update": items})["update"]
    assert results[1]["error"]["code"] == "woocommerce_rest_customer_invalid_email"
    assert shop.ok("GET", "/customers/3")["last_name"] != "New"


def test_a_failed_item_beside_a_failed_item_stays_in_the_trash(shop):
    shop.ok("DELETE", "/orders/41")
    items = [{"id": 42, "customer_id": "x"}, {"id": 41, "status": "pending", "parent_id": 9999}]
    results = shop.ok("POST", "/orders/batch", {"update": items})["update"]
    assert ["error" in each for each in results] == [True, True]
    assert shop.ok("GET", "/orders/41")["status"] == "trash"


def test_an_item_with_a_nul_character_fails_alone(shop):
    items = {
        "create": [{"code": "a\0"}, {"code": "b"}],
        "update": [{"id": 16, "description": "\0"}],
    }
    done = shop.ok("POST", "/coupons/batch", items)
    assert [
        list(each["error"]["data"]["params"]) for each in (done["create"][0], *done["update"])
    ] == [
        ["code"],
        ["description"],
    ]
    assert done["create"][1]["code"] == "b"
