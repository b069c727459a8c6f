"""A write decides by the record that it has locked, not by the one that an earlier read showed."""

from threading import Event, Thread

import pytest
from sqlalchemy import text

from app.db.session import db
from app.plugin_api import ChangeHook, registry
from tests.api_client import Client

# SQLite has one writer at a time.
pytestmark = [
    pytest.mark.both_databases,
    pytest.mark.parametrize("database_url", ["postgresql"], indirect=True),
]

V3 = "/wp-json/wc/v3"
LINE = {"name": "Mug", "quantity": 1, "total": "10.00"}


class Caller:
    """The administrator, as a client of this dialect."""

    def __init__(self, app, key):
        self.http = app.test_client()
        pair = (key.consumer_key, key.consumer_secret)
        self.options = {"auth": pair, "base_url": "https://shop.example"}

    def send(self, method, path, body=None):
        given = {} if body is None else {"json": body}
        return self.http.open(f"{V3}{path}", method=method, **self.options, **given)

    def ok(self, method, path, body=None):
        response = self.send(method, path, body)
        assert response.status_code < 300, response.get_json()
        return response.get_json()


@pytest.fixture
def caller(app, admin):
    return Caller(app, admin.key)


@pytest.fixture
def beside(make_app, admin):
    """Return a function: send a request while a native one has written and not committed yet.

    The first one commits as soon as the second one waits for a lock, or has its response. The
    result is the second response.
    """
    app = make_app(WEB_THREADS=2)
    begun, responses = Event(), []

    def run(first, second):
        later = Thread(target=lambda: responses.append(Caller(app, admin.key).send(*second)))

        def start_second(_):
            if begun.is_set():
                return
            begun.set()
            later.start()
            waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
            while later.is_alive() and not db.session.scalar(waiting):
                later.join(0.01)

        with app.app_context():
            registry().add_change_hook(ChangeHook("*", start_second))
        method, path, body = first
        answer = Client(app, admin.key).request(method, path, json=body)
        assert answer.status_code < 300, answer.get_json()
        later.join()
        return responses[0]

    return run


def test_a_payment_does_not_undo_a_cancellation(caller, beside):
    order = caller.ok("POST", "/orders", {"line_items": [LINE]})
    path = f"/orders/{order['id']}"
    cancel = ("PUT", path, {"order": {"status": "cancelled"}})
    paid = beside(cancel, ("PUT", path, {"set_paid": True}))
    assert (paid.status_code, paid.get_json()["status"]) == (200, "cancelled")
    assert paid.get_json()["date_paid"] is None
    assert caller.ok("GET", path)["status"] == "cancelled"


def test_a_payment_in_a_batch_does_not_undo_a_cancellation(caller, beside):
    order = caller.ok("POST", "/orders", {"line_items": [LINE]})
    cancel = ("PUT", f"/orders/{order['id']}", {"order": {"status": "cancelled"}})
    batch = {"update": [{"id": order["id"], "set_paid": True}]}
    paid = beside(cancel, ("POST", "/orders/batch", batch))
    assert [each["status"] for each in paid.get_json()["update"]] == ["cancelled"]


def test_a_quantity_keeps_the_total_that_was_just_written(caller, beside):
    order = caller.ok("POST", "/orders", {"line_items": [LINE]})
    path, line_id = f"/orders/{order['id']}", order["line_items"][0]["id"]
    discounted = {"order": {"line_items": [{"id": line_id, "total": "7.00"}]}}
    changed = {"line_items": [{"id": line_id, "quantity": 2}]}
    (line,) = beside(("PUT", path, discounted), ("PUT", path, changed)).get_json()["line_items"]
    assert (line["quantity"], line["subtotal"], line["total"]) == (2, "10.00", "7.00")


def test_coupon_lines_replace_those_that_were_just_added(caller, beside, make_coupon):
    first, second = make_coupon(amount="1"), make_coupon(amount="2")
    order = caller.ok("POST", "/orders", {"line_items": [LINE]})
    path = f"/orders/{order['id']}"
    add = {"order": {"coupon_lines": [{"code": first["code"]}]}}
    replace = {"coupon_lines": [{"code": second["code"]}]}
    response = beside(("PUT", path, add), ("PUT", path, replace))
    assert [line["code"] for line in response.get_json()["coupon_lines"]] == [second["code"]]


def test_a_deletion_returns_what_was_deleted(caller, beside):
    order = caller.ok("POST", "/orders", {"line_items": [LINE]})
    path = f"/orders/{order['id']}"
    cancel = ("PUT", path, {"order": {"status": "cancelled"}})
    assert beside(cancel, ("DELETE", path)).get_json()["status"] == "cancelled"


def test_an_order_is_not_moved_to_the_trash_twice(caller, beside):
    order = caller.ok("POST", "/orders", {"line_items": [LINE]})
    path = f"/orders/{order['id']}"
    response = beside(("DELETE", path, None), ("DELETE", path))
    assert (response.status_code, response.get_json()["code"]) == (
        410,
        "woocommerce_rest_already_trashed",
    )


def test_a_status_restores_an_order_that_was_just_moved_to_the_trash(caller, beside):
    order = caller.ok("POST", "/orders", {"line_items": [LINE]})
    path = f"/orders/{order['id']}"
    response = beside(("DELETE", path, None), ("PUT", path, {"status": "processing"}))
    assert response.get_json()["status"] == "processing"
    assert caller.ok("GET", path)["status"] == "processing"


def test_a_percentage_is_limited_by_the_amount_that_was_just_written(caller, beside, make_coupon):
    coupon = make_coupon(amount="50", type="fixed_cart")
    path = f"/coupons/{coupon['id']}"
    raise_amount = ("PUT", path, {"coupon": {"amount": "150"}})
    changed = beside(raise_amount, ("PUT", path, {"discount_type": "percent"})).get_json()
    assert (changed["discount_type"], changed["amount"]) == ("percent", "0.00")


def test_a_status_publishes_a_coupon_that_was_just_moved_to_the_trash(caller, beside, make_coupon):
    path = f"/coupons/{make_coupon()['id']}"
    response = beside(("DELETE", path, None), ("PUT", path, {"status": "publish"}))
    assert response.get_json()["status"] == "publish"


def test_codes_that_are_exchanged_do_not_deadlock(caller, make_app, admin, make_coupon):
    """A change locks its coupon and the holder of its new code in the order of their IDs."""
    coupons = [make_coupon(), make_coupon()]
    app = make_app(WEB_THREADS=2)
    with app.app_context(), db.engine.connect() as other:
        other.execute(text("SELECT id FROM coupons WHERE id = :id FOR UPDATE"), coupons[0])
        first = Thread(
            target=lambda: Caller(app, admin.key).send(
                "PUT", f"/coupons/{coupons[1]['id']}", {"code": coupons[0]["code"]}
            )
        )
        first.start()
        waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        while first.is_alive() and not other.scalar(waiting):
            first.join(0.01)
        free = text("SELECT id FROM coupons WHERE id = :id FOR UPDATE NOWAIT")
        assert other.scalar(free, coupons[1]) == coupons[1]["id"]
        other.commit()
    first.join()


def test_refunds_see_a_line_that_was_just_added(caller, beside):
    order = caller.ok("POST", "/orders", {"line_items": [LINE]})
    added = {"order": {"line_items": [{"name": "Cup", "price": "4.00"}]}}
    with_cup = ("PUT", f"/orders/{order['id']}", added)
    cup = order["line_items"][0]["id"] + 1
    body = {"amount": "4.00", "line_items": [{"id": cup, "quantity": 1, "refund_total": "4.00"}]}
    refund = beside(with_cup, ("POST", f"/orders/{order['id']}/refunds", body)).get_json()
    assert [line["name"] for line in refund["line_items"]] == ["Cup"]


def test_a_note_has_the_name_that_its_author_has_now(caller, beside, admin):
    order = caller.ok("POST", "/orders", {})
    rename = {"customer": {"first_name": "Ada", "last_name": "Byron"}}
    body = {"note": "Called.", "added_by_user": True}
    note = beside(
        ("PUT", f"/customers/{admin.key.user_id}", rename),
        ("POST", f"/orders/{order['id']}/notes", body),
    )
    assert note.get_json()["author"] == "Ada Byron"


def test_a_new_order_has_the_address_that_its_account_has_now(caller, beside, make_customer):
    customer = make_customer()
    moved = {"customer": {"email": "new@example.com"}}
    order = beside(
        ("PUT", f"/customers/{customer['id']}", moved),
        ("POST", "/orders", {"customer_id": customer["id"], "line_items": [LINE]}),
    )
    assert order.get_json()["billing"]["email"] == "new@example.com"
