"""Order notes, in the native API and at both legacy mounts (orders 7 and 9)."""

from datetime import datetime

import pytest

from app.schemas.orders.note import MAX_NOTE_LENGTH
from tests.api_client import refusal, refused_params, reply, without_key
from tests.factories import insert_order

MOUNTS = {"": "shop_api_", "/wc-api/v2": "woocommerce_api_", "/wc-api/v3": "woocommerce_api_"}

each_mount = pytest.mark.parametrize("mount", MOUNTS)


def refused(mount, code, param=None, **details):
    """Return the error response of a code, with the prefix of a mount."""
    status, body = refusal(f"shop_api_{code}", param, **details)
    for entry in body["errors"]:
        entry["code"] = entry["code"].replace("shop_api_", MOUNTS[mount])
    return status, body


@pytest.fixture
def order_id(app):
    return insert_order(app)


@pytest.fixture
def write(admin, order_id):
    """Return a function: add a note to the order and return it as the API does."""

    def make(note="Packed.", **fields):
        response = admin.post(f"/orders/{order_id}/notes", {"order_note": {"note": note} | fields})
        assert response.status_code == 201, response.get_json()
        return response.get_json()["order_note"]

    return make


@each_mount
def test_note_from_create_to_delete(admin, order_id, mount):
    path = f"{mount}/orders/{order_id}/notes"
    assert reply(admin.get(path)) == (200, {"order_notes": []})
    response = admin.post(path, {"order_note": {"note": "Packed.", "customer_note": True}})
    created = response.get_json()["order_note"]
    assert datetime.fromisoformat(created["created_at"])
    assert reply(response) == (
        201,
        {
            "order_note": {
                "id": created["id"],
                "created_at": created["created_at"],
                "note": "Packed.",
                "customer_note": True,
            }
        },
    )
    one = f"{path}/{created['id']}"
    assert reply(admin.get(one)) == (200, {"order_note": created})
    updated = created | {"note": "Sent."}
    changes = {"note": "Sent.", "customer_note": False, "id": 0, "created_at": "2001-01-01"}
    assert reply(admin.put(one, {"order_note": changes})) == (200, {"order_note": updated})
    assert reply(admin.get(path)) == (200, {"order_notes": [updated]})
    assert reply(admin.delete(one)) == (200, {"message": "Permanently deleted order note"})
    assert reply(admin.get(one)) == refused(mount, "invalid_order_note_id")
    assert reply(admin.get(path)) == (200, {"order_notes": []})


@pytest.mark.parametrize("mount", ["/wc-api/v2", "/wc-api/v3"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_legacy_update_by_any_method(admin, order_id, write, mount, method):
    note = write()
    path = f"{mount}/orders/{order_id}/notes/{note['id']}"
    response = admin.request(method, path, json={"order_note": {"note": "Sent."}})
    assert reply(response) == (200, {"order_note": note | {"note": "Sent."}})


def test_list_is_oldest_first_and_not_paginated(admin, order_id, write):
    notes = [write(f"Note {number}") for number in range(12)]
    response = admin.get(f"/orders/{order_id}/notes", {"page": 2})
    assert reply(response) == (200, {"order_notes": notes})
    assert "X-Total" not in response.headers
    assert reply(admin.get(f"/orders/{order_id}/notes", {"fields": "note"})) == (
        200,
        {"order_notes": [{"note": note["note"]} for note in notes]},
    )


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"note": " a < b\n<b>c</b> "}, {"note": " a < b\n<b>c</b> "}),
        ({"note": 5}, {"note": "5"}),
        ({"note": "n", "customer_note": None}, {"customer_note": False}),
        ({"note": "n", "customer_note": "true"}, {"customer_note": False}),
        ({"note": "n", "customer_note": 1}, {"customer_note": False}),
        ({"note": "é" * MAX_NOTE_LENGTH}, {"note": "é" * MAX_NOTE_LENGTH}),
    ],
)
def test_accepted_values(write, given, stored):
    assert write(**given).items() >= stored.items()


@each_mount
@pytest.mark.parametrize("note", [{}, {"note": None}, {"note": ""}, {"note": " \n"}])
def test_note_is_required(admin, order_id, mount, note):
    response = admin.post(f"{mount}/orders/{order_id}/notes", {"order_note": note})
    assert reply(response) == refused(mount, "invalid_order_note")
    assert admin.get(f"/orders/{order_id}/notes").get_json() == {"order_notes": []}


def test_update_without_a_text_changes_nothing(admin, order_id, write):
    note = write()
    path = f"/orders/{order_id}/notes/{note['id']}"
    for changes in ({}, {"note": None}, {"customer_note": True}):
        assert reply(admin.put(path, {"order_note": changes})) == (200, {"order_note": note})
    assert reply(admin.put(path, {"order_note": {"note": " "}})) == refused(
        "", "invalid_order_note"
    )
    assert reply(admin.get(path)) == (200, {"order_note": note})


@pytest.mark.parametrize("note", [[], {}, True, "a\0b", "n" * (MAX_NOTE_LENGTH + 1)])
def test_wrong_types_are_reported_first(admin, order_id, write, note):
    body = {"order_note": {"note": note}}
    existing = write()["id"]
    missing = 10**9
    assert refused_params(admin.post(f"/orders/{order_id}/notes", body)) == ["order_note.note"]
    assert refused_params(admin.post(f"/orders/{missing}/notes", body)) == ["order_note.note"]
    for note_id in (existing, missing):
        response = admin.put(f"/orders/{order_id}/notes/{note_id}", body)
        assert refused_params(response) == ["order_note.note"]


@each_mount
@pytest.mark.parametrize("body", [None, {}, [], {"note": "n"}, {"order_note": None}])
def test_missing_wrapper(admin, mount, body):
    expected = refused(mount, "missing_order_note_data")
    assert reply(admin.post(f"{mount}/orders/1/notes", body)) == expected
    assert reply(admin.put(f"{mount}/orders/1/notes/1", body)) == expected


def requests_of(order_id, note_id):
    """Each operation on notes, and what its capability is called in its error."""
    body = {"order_note": {"note": "n"}}
    return [
        ("GET", f"/orders/{order_id}/notes", None, "read_order_notes"),
        ("POST", f"/orders/{order_id}/notes", body, "create_order_note"),
        ("GET", f"/orders/{order_id}/notes/{note_id}", None, "read_order_notes"),
        ("PUT", f"/orders/{order_id}/notes/{note_id}", body, "edit_order_note"),
        ("DELETE", f"/orders/{order_id}/notes/{note_id}", None, "delete_order_note"),
    ]


@each_mount
def test_capabilities_are_checked_after_the_ids(app, admin, client_for, order_id, write, mount):
    note_id, customer = write()["id"], client_for("customer")
    for method, path, body, name in requests_of(order_id, note_id):
        response = customer.request(method, mount + path, json=body)
        assert reply(response) == refused(mount, f"user_cannot_{name}")
    for method, path, body, _ in requests_of(10**9, note_id):
        response = customer.request(method, mount + path, json=body)
        assert reply(response) == refused(mount, "invalid_order_id")
    another = insert_order(app, order_key="order_def")
    for order, note in ((order_id, note_id + 1000), (another, note_id), (order_id, 10**30)):
        for method, path, body, _ in requests_of(order, note):
            if path.endswith("/notes"):
                continue
            response = customer.request(method, mount + path, json=body)
            assert reply(response) == refused(mount, "invalid_order_note_id")
    assert len(admin.get(f"/orders/{order_id}/notes").get_json()["order_notes"]) == 1


def test_notes_of_an_order_in_the_trash_are_not_found(app, admin):
    order_id = insert_order(app, status="trash")
    for method, path, body, _ in requests_of(order_id, 1):
        assert reply(admin.request(method, path, json=body)) == refused("", "invalid_order_id")


def test_etags(admin, order_id, write):
    path = f"/orders/{order_id}/notes/{write()['id']}"
    tag = admin.get(path).headers["ETag"]
    assert admin.get(path, headers={"If-None-Match": tag}).status_code == 304
    first = {"order_note": {"note": "First."}}
    assert admin.put(path, first, headers={"If-Match": tag}).status_code == 200
    expected = refusal("shop_api_precondition_failed")
    second = {"order_note": {"note": "Second."}}
    assert reply(admin.put(path, second, headers={"If-Match": tag})) == expected
    assert reply(admin.delete(path, headers={"If-Match": tag})) == expected
    assert admin.get(path).get_json()["order_note"]["note"] == "First."


def test_create_with_an_idempotency_key_is_done_once(admin, order_id):
    path, key = f"/orders/{order_id}/notes", {"Idempotency-Key": "note-1"}
    body = {"order_note": {"note": "Packed."}}
    first, second = (admin.post(path, body, headers=key) for _ in range(2))
    assert reply(first) == reply(second)
    assert second.headers["Idempotent-Replayed"] == "true"
    assert admin.get(path).get_json() == {"order_notes": [first.get_json()["order_note"]]}


@pytest.mark.parametrize(
    ("method", "count"), [("LIST", 1), ("POST", 3), ("GET", 1), ("PUT", 4), ("DELETE", 4)]
)
def test_statements(admin, order_id, write, statements, method, count):
    note_id = write()["id"]
    admin.get("/coupons/count")  # remembers the key
    statements.clear()
    path = f"/orders/{order_id}/notes" + ("" if method in {"LIST", "POST"} else f"/{note_id}")
    body = {"order_note": {"note": "n"}} if method in {"POST", "PUT"} else None
    response = admin.request("GET" if method == "LIST" else method, path, json=body)
    assert response.status_code in {200, 201}
    assert len(without_key(statements)) == count, statements
