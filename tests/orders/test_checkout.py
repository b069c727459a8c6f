"""The checkout in docs/orders.md: its commands work, and its table of statements is correct."""

import pytest

from tests.api_client import without_key
from tests.project.test_docs import read, run_examples, table

__all__ = ["run_examples"]  # a fixture

LINE = {"product_id": 4, "name": "Mug", "price": "4.00", "quantity": 2}
BOOK = {"product_id": 3, "download_id": "file-3", "download_name": "E-book"}


@pytest.fixture
def calls(admin, make_customer):
    """Each call of the table on the page: its name there, and a function that sends it."""
    customer_id = make_customer()["id"]

    def create(**fields):
        order = {"customer_id": customer_id, "line_items": [LINE] * 3} | fields
        return admin.post("/orders", {"order": order})

    order = create(download_permissions=[BOOK]).get_json()["order"]
    path = f"/orders/{order['id']}"
    (key,) = (
        admin.put(path, {"order": {"status": "processing"}})
        and admin.get(f"/customers/{customer_id}/downloads").get_json()["downloads"]
    )
    note = {"order_note": {"note": "Packed."}}
    note_path = f"{path}/notes/{admin.post(f'{path}/notes', note).get_json()['order_note']['id']}"
    trashed = f"/orders/{create().get_json()['order']['id']}"
    admin.delete(trashed)

    def update(**fields):
        return lambda: admin.put(path, {"order": fields})

    many = [{"customer_id": customer_id, "line_items": [LINE]}] * 100
    return {
        "Create an order for a guest": lambda: create(customer_id=0),
        "Create an order for an account": create,
        "… with download permissions": lambda: create(download_permissions=[BOOK] * 3),
        "Update fields or items": update(
            note="Ring twice.", line_items=[{"id": order["line_items"][0]["id"], "quantity": 5}]
        ),
        "… adding items": update(line_items=[LINE]),
        "Update the status": update(status="completed"),
        "… with download permissions, adding some": update(
            status="on-hold", download_permissions=[BOOK]
        ),
        "… with download permissions, updating some": update(
            status="completed", download_permissions=[{"id": key, "downloads_remaining": 1}]
        ),
        "Create 100 orders in bulk": lambda: admin.post("/orders/bulk", {"orders": many}),
        "Read an order": lambda: admin.get(path),
        "List the notes of an order": lambda: admin.get(f"{path}/notes"),
        "Create a note": lambda: admin.post(f"{path}/notes", note),
        "Update a note": lambda: admin.put(note_path, note),
        "Delete a note": lambda: admin.delete(note_path),
        "Move an order to the trash": lambda: admin.delete(path),
        "Restore an order": lambda: admin.post(f"{trashed}/restore"),
        "Delete an order permanently": lambda: admin.delete(trashed, {"force": "true"}),
    }


def test_number_of_statements_is_that_of_the_page(admin, calls, statements):
    seen = {}
    for name, send in calls.items():
        admin.get("/coupons/count")  # remembers the key
        statements.clear()
        response = send()
        assert response.status_code in {200, 201}, (name, response.get_json())
        seen[name] = len(without_key(statements))
    create = {"order": {"line_items": [LINE]}}
    statements.clear()
    admin.post("/orders", create, headers={"Idempotency-Key": "checkout-1"})
    assert len(without_key(statements)) == seen["Create an order for a guest"] + 4
    rows = table("docs/design.md", "Call", "Statements")
    assert {name: int(number) for name, number in rows} == seen


def test_commands_succeed_or_fail_as_documented(run_examples):
    seen = list(run_examples("docs/orders.md"))
    assert [remark for _, _, remark in seen].count("rejected") == 1
    # The total after each step: the cart grows to two bookmarks, and the payment changes nothing.
    totals = [body["order"].get("total") for body in run_examples.bodies if "order" in body]
    assert totals[:5] == ["12.00", "8.00", "9.50", "11.00", "11.00"]
    assert "total of 11.00" in " ".join(read("docs/orders.md").split())
    assert {method for method, _, _ in seen} == {"GET", "POST", "PUT", "DELETE"}


def test_sums_of_the_page_are_those_of_the_service(admin):
    """The order of the first command has the total that the page states."""
    assert "total is `12.00`" in " ".join(read("docs/orders.md").split())
    order = {"line_items": [LINE], "shipping_lines": [{"method_id": "flat_rate", "total": "4.00"}]}
    assert admin.post("/orders", {"order": order}).get_json()["order"]["total"] == "12.00"
