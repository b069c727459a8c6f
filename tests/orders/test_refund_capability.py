"""Refunding as a capability of its own, and a shop assistant, who changes status and notes only."""

import pytest

from app.auth.principals import ROLES, Capability, Principal
from app.errors import ShopError
from app.services.orders.writes import create_order, update_order
from tests.api_client import codes
from tests.orders.calls import change, create, read
from tests.plugins.admin.browser_client import Browser

LINES = [{"name": "Mug", "price": "4.00", "quantity": 1}]
REFUND = (401, "shop_api_user_cannot_create_order_refund")
WITHOUT = frozenset(Capability) - {Capability.REFUND_SHOP_ORDERS}


@pytest.fixture
def assistant(client_for):
    return client_for("shop_assistant", login="bea")


@pytest.fixture
def order(admin):
    return create(admin, status="processing", line_items=LINES)


@pytest.fixture
def unchanged(admin, order):
    """Check after the test that the order is as it was, with its refunds."""
    yield order
    assert read(admin, order["id"]) == order
    assert admin.get(f"/orders/{order['id']}/refunds").get_json() == {"order_refunds": []}


def wc(client, method, path, body):
    """Send a request to /wp-json/wc/v3 and return the status and the body of its response."""
    pair = (client.key.consumer_key, client.key.consumer_secret)
    options = {"json": body, "auth": pair, "base_url": "https://shop.example"}
    response = client.http.open(f"/wp-json/wc/v3{path}", method=method, **options)
    return response.status_code, response.get_json()


def test_the_roles_that_could_refund_still_can():
    can_refund = {name for name, held in ROLES.items() if Capability.REFUND_SHOP_ORDERS in held}
    can_delete = {name for name, held in ROLES.items() if Capability.DELETE_SHOP_ORDERS in held}
    assert can_refund == can_delete == {"administrator", "shop_manager"}


@pytest.mark.both_databases
@pytest.mark.parametrize("role", ["administrator", "shop_manager"])
def test_managers_refund_as_before(client_for, order, role):
    client, path = client_for(role, login="cat"), f"/orders/{order['id']}"
    refund = {"order_refund": {"amount": "1.00"}}
    number = client.post(f"{path}/refunds", refund).get_json()["order_refund"]["id"]
    assert change(client, order["id"], status="refunded")["status"] == "refunded"
    reason = {"order_refund": {"reason": "broken"}}
    assert client.put(f"{path}/refunds/{number}", reason).status_code == 200
    assert client.delete(f"{path}/refunds/{number}").status_code == 200


@pytest.mark.both_databases
def test_an_assistant_changes_status_and_notes(assistant, order):
    path = f"/orders/{order['id']}"
    for prefix in ("", "/wc-api/v2", "/wc-api/v3"):
        for status in ("completed", "cancelled", "processing"):
            assert change(assistant, order["id"], prefix, status=status)["status"] == status
    assert wc(assistant, "PUT", path, {"status": "completed"})[1]["status"] == "completed"
    note = assistant.post(f"{path}/notes", {"order_note": {"note": "Packed."}})
    note_id = note.get_json()["order_note"]["id"]
    assert (
        assistant.put(f"{path}/notes/{note_id}", {"order_note": {"note": "Sent."}}).status_code
        == 200
    )
    assert change(assistant, order["id"], note="Ring twice.")["note"] == "Ring twice."
    assert wc(assistant, "PUT", path, {"customer_note": "Twice."})[1]["customer_note"] == "Twice."
    assert assistant.get("/customers").status_code == 200
    assert assistant.get("/coupons").headers["X-Total"] == "0"


@pytest.mark.both_databases
def test_an_assistant_does_not_refund(assistant, unchanged):
    path, refunded = f"/orders/{unchanged['id']}", {"status": "refunded"}
    assert codes(assistant.put(path, {"order": refunded})) == REFUND
    bulk = {"orders": [{"id": unchanged["id"], **refunded}]}
    (result,) = assistant.post("/orders/bulk", bulk).get_json()["orders"]
    assert result["error"]["code"] == REFUND[1]
    assert codes(assistant.post(f"{path}/refunds", {"order_refund": {"amount": "1"}})) == REFUND
    for version in ("v2", "v3"):
        prefix, code = f"/wc-api/{version}", REFUND[1].replace("shop", "woocommerce")
        assert codes(assistant.put(f"{prefix}{path}", {"order": refunded})) == (401, code)
        refund = {"order_refund": {"amount": "1"}}
        assert codes(assistant.post(f"{prefix}{path}/refunds", refund)) == (401, code)
        (result,) = assistant.post(f"{prefix}/orders/bulk", bulk).get_json()["orders"]
        assert result["error"]["code"] == code


@pytest.mark.both_databases
def test_an_assistant_does_not_refund_by_wc_v3(assistant, unchanged):
    path, number = f"/orders/{unchanged['id']}", unchanged["id"]
    for method, target, body, right in (
        ("PUT", path, {"status": "refunded"}, "create"),
        ("POST", f"{path}/refunds", {"amount": "1.00"}, "create"),
        ("PUT", path, {"status": "trash"}, "delete"),
        ("DELETE", path, None, "delete"),
    ):
        status, error = wc(assistant, method, target, body)
        assert (status, error["code"]) == (403, f"woocommerce_rest_cannot_{right}")
    batch = {"update": [{"id": number, "status": "refunded"}], "delete": [number]}
    _, done = wc(assistant, "POST", "/orders/batch", batch)
    assert done["update"][0]["error"]["code"] == "woocommerce_rest_cannot_create"
    assert done["delete"][0]["error"]["code"] == "woocommerce_rest_cannot_delete"


EDITS = {
    "line_items": [{"name": "Gift", "price": "0.00", "quantity": 1}],
    "fee_lines": [{"title": "Discount", "total": "-1.00"}],
    "coupon_lines": [],
    "shipping_tax": "1.00",
    "billing_address": {"city": "Rome"},
    "customer_id": 0,
    "payment_details": {"paid": True},
    "currency": "EUR",
    "metadata": {"gift": "yes"},
}


@pytest.mark.both_databases
@pytest.mark.parametrize("name", EDITS)
def test_an_assistant_changes_nothing_else(assistant, unchanged, name):
    number, edit = unchanged["id"], {name: EDITS[name], "status": "completed"}
    cannot = "api_user_cannot_edit_order"
    assert codes(assistant.put(f"/orders/{number}", {"order": edit})) == (401, f"shop_{cannot}")
    bulk = {"orders": [{"id": number, **edit}]}
    mounts = {"": "shop", "/wc-api/v3": "woocommerce"}
    if name in {"shipping_tax", "metadata"}:  # unknown to the legacy API
        del mounts["/wc-api/v3"]
    for prefix, shop in mounts.items():
        (result,) = assistant.post(f"{prefix}/orders/bulk", bulk).get_json()["orders"]
        assert result["error"]["code"] == f"{shop}_{cannot}"


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "edit",
    [
        {"set_paid": True, "status": "pending"},
        {"meta_data": [{"key": "gift", "value": "yes"}]},
        {"billing": {"city": "Rome"}},
        {"line_items": [{"name": "Gift", "total": "0", "quantity": 1}]},
        {"coupon_lines": []},
    ],
)
def test_an_assistant_changes_nothing_else_by_wc_v3(assistant, unchanged, edit):
    number = unchanged["id"]
    refused = (403, "woocommerce_rest_cannot_edit")
    status, error = wc(assistant, "PUT", f"/orders/{number}", edit)
    assert (status, error["code"]) == refused
    _, done = wc(assistant, "POST", "/orders/batch", {"update": [{"id": number, **edit}]})
    assert done["update"][0]["error"]["code"] == refused[1]


@pytest.mark.both_databases
def test_an_assistant_deletes_no_notes_and_takes_no_uses(admin, assistant, order):
    path = f"/orders/{order['id']}/notes"
    note = admin.post(path, {"order_note": {"note": "Packed."}}).get_json()["order_note"]
    cannot = "api_user_cannot_delete_order_note"
    assert codes(assistant.delete(f"{path}/{note['id']}")) == (401, f"shop_{cannot}")
    for version in ("v2", "v3"):
        response = assistant.delete(f"/wc-api/{version}{path}/{note['id']}")
        assert codes(response) == (401, f"woocommerce_{cannot}")
    status, error = wc(assistant, "DELETE", f"{path}/{note['id']}?force=true", None)
    assert (status, error["code"]) == (403, "woocommerce_rest_cannot_delete")
    assert note in admin.get(path).get_json()["order_notes"]
    admin.post("/coupons", {"coupon": {"code": "ten", "amount": "10"}})
    use = {"redemption": {"code": "ten", "reference": "till-1"}}
    cannot = (401, "shop_api_user_cannot_create_redemption")
    assert codes(assistant.post("/redemptions", use)) == cannot


@pytest.mark.both_databases
def test_an_assistant_does_not_delete(assistant, unchanged):
    path, cannot = f"/orders/{unchanged['id']}", (401, "shop_api_user_cannot_delete_order")
    for query in ("", "?force=true"):
        assert codes(assistant.delete(f"{path}{query}")) == cannot
        legacy = assistant.delete(f"/wc-api/v3{path}{query}")
        assert codes(legacy) == (401, "woocommerce_api_user_cannot_delete_order")
    assert codes(assistant.delete("/orders/trash")) == cannot


def test_an_assistant_neither_changes_nor_deletes_refunds(admin, assistant, order):
    path = f"/orders/{order['id']}/refunds"
    made = admin.post(path, {"order_refund": {"amount": "1.00"}}).get_json()["order_refund"]
    for response, right in (
        (assistant.put(f"{path}/{made['id']}", {"order_refund": {"reason": "x"}}), "edit"),
        (assistant.delete(f"{path}/{made['id']}"), "delete"),
    ):
        assert codes(response) == (401, f"shop_api_user_cannot_{right}_order_refund")
    assert admin.get(path).get_json()["order_refunds"] == [made]


def test_a_user_without_the_capability_creates_no_refunded_order(app, admin, order):
    actor = Principal(admin.key.user_id, WITHOUT)
    with app.app_context():
        for write in (
            lambda: create_order(actor, {"status": "refunded"}),
            lambda: update_order(actor, order["id"], {"status": "refunded"}),
        ):
            with pytest.raises(ShopError, match="create refunds"):
                write()
        assert update_order(actor, order["id"], {"status": "completed"})["status"] == "completed"


def newest_event(admin, number):
    query = {"filter[resource]": "order", "filter[resource_id]": number, "filter[order]": "desc"}
    return admin.get("/events", query).get_json()["events"][0]


@pytest.mark.both_databases
def test_undo_needs_the_capability_of_what_it_does(admin, assistant, order):
    number = order["id"]
    change(admin, number, status="refunded")
    change(admin, number, status="processing")
    path = f"/events/{newest_event(admin, number)['id']}/undo"
    assert codes(assistant.get(path)) == codes(assistant.post(path)) == REFUND
    assert read(admin, number)["status"] == "processing"
    browser = Browser(assistant.app, assistant.key)
    shown = f"/events/{newest_event(admin, number)['id']}#undo"
    assert shown not in browser.get(f"/orders/{number}").html
    assert shown in Browser(admin.app, admin.key).get(f"/orders/{number}").html
    assert admin.post(path).get_json()["order"]["status"] == "refunded"

    change(assistant, number, status="completed")  # leaves a status, which the assistant may
    admin.delete(f"/orders/{number}")
    restored = assistant.post(f"/orders/{number}/restore")
    assert restored.status_code == 200
    path = f"/events/{newest_event(admin, number)['id']}/undo"
    cannot = (401, "shop_api_user_cannot_delete_order")
    assert codes(assistant.get(path)) == codes(assistant.post(path)) == cannot
    assert f"{path.removesuffix('/undo')}#undo" not in browser.get(f"/orders/{number}").html
    change(assistant, number, status="on-hold")
    path = f"/events/{newest_event(admin, number)['id']}/undo"
    assert assistant.post(path).get_json()["order"]["status"] == "completed"


@pytest.mark.both_databases
def test_an_assistant_undoes_only_a_status_or_a_note(admin, assistant, order):
    number = order["id"]
    browser = Browser(assistant.app, assistant.key)
    change(admin, number, billing_address={"city": "Rome"}, status="completed")
    path = f"/events/{newest_event(admin, number)['id']}/undo"
    cannot = (401, "shop_api_user_cannot_edit_order")
    assert codes(assistant.get(path)) == codes(assistant.post(path)) == cannot
    assert f"{path.removesuffix('/undo')}#undo" not in browser.get(f"/orders/{number}").html
    change(admin, number, note="Ring twice.")
    path = f"/events/{newest_event(admin, number)['id']}/undo"
    assert f"{path.removesuffix('/undo')}#undo" in browser.get(f"/orders/{number}").html
    assert assistant.post(path).get_json()["order"]["note"] == order["note"]


def test_the_form_of_an_assistant_has_status_and_note(assistant, order):
    bea, path = Browser(assistant.app, assistant.key), f"/orders/{order['id']}/edit"
    names = {name for name in bea.get(path).form("_form") if not name.startswith("_")}
    assert names == {"status", "note"}
    sent = bea.get(path).form("_form") | {"billing_address.city": "Rome"}
    assert bea.post(path, sent).status in {303, 400}
    assert read(assistant, order["id"])["billing_address"]["city"] == ""


def test_pages_offer_an_assistant_only_what_the_role_may(admin, assistant, order):
    bea, ada = (Browser(each.app, each.key) for each in (assistant, admin))
    path = f"/orders/{order['id']}"
    offered, page = f'href="/admin{path}/refund"', bea.get(path)
    assert offered in ada.get(path).html
    assert offered not in page.html
    for word in ("/trash", "/delete", 'value="refunded"'):
        assert word in ada.get(path).html or word == "/delete"
        assert word not in page.html
    assert f"{path}/notes" in page.html
    status = page.form("status") | {"status": "completed"}
    assert bea.post(f"{path}/status", status).status == 303
    refunded = bea.get(path).form("status") | {"status": "refunded"}
    assert bea.post(f"{path}/status", refunded).status in {400, 401}
    assert bea.get(f"{path}/refund").status == 401
    assert read(admin, order["id"])["status"] == "completed"
    table = bea.get("/orders").html
    assert 'value="trash"' not in table
    chosen = {"action": "status", "id": str(order["id"]), "status": "refunded"}
    assert bea.post("/orders/selected", chosen).status == 400
    assert bea.post("/orders/selected", {"action": "trash", "id": str(order["id"])}).status == 401
    admin.delete(path)
    restored = bea.post("/orders/selected", {"action": "restore", "id": str(order["id"])})
    assert "1 record done" in restored.text
    assert "Undo" not in restored.text
    assert read(admin, order["id"])["status"] == "completed"


def test_the_status_of_a_refunded_order_stays_in_the_forms_of_an_assistant(admin, assistant, order):
    change(admin, order["id"], status="refunded")
    bea, path = Browser(assistant.app, assistant.key), f"/orders/{order['id']}"
    for page in (bea.get(path), bea.get(f"{path}/edit")):
        assert '<option value="refunded" selected>Refunded</option>' in page.html
    assert bea.submit(f"{path}/edit", "_form", note="Called.").status == 303
    assert read(admin, order["id"])["note"] == "Called."
    assert read(admin, order["id"])["status"] == "refunded"
