"""What remains of a deleted customer, with a mark in every text (docs/customers.md)."""

import io
import re
import zlib
from collections import defaultdict
from contextlib import suppress
from types import SimpleNamespace

import pytest
from sqlalchemy import inspect, text

from app.db.read_pool import fetch
from app.db.session import db
from tests.api_client import Client
from tests.plugins.admin.browser_client import Browser
from tests.plugins.admin.filled_shop import address

EMAIL = "Marked.Email@example.com"
MARK = re.compile(r"(?i)marked[._a-z0-9]+")


def mark(name):
    return f"marked_{name}"


def addresses(kind):
    return {name: mark(f"{kind}_{name}") for name in (*address(""), "phone")}


def meta(kind):
    return {mark(f"{kind}_key"): {mark(f"{kind}_name"): [mark(f"{kind}_value")]}}


def order_of(customer_id):
    line = {"name": mark("line"), "sku": mark("sku"), "product_id": 7, "price": "40"}
    attribute = {each: mark(f"attribute_{each}") for each in ("key", "label", "value")}
    return {
        "customer_id": customer_id,
        "billing_address": addresses("order") | {"email": EMAIL},
        "shipping_address": addresses("order"),
        "customer_ip": "192.0.2.77",
        "line_items": [line | {"meta": [attribute], "metadata": meta("line")}],
        "fee_lines": [{"title": mark("fee"), "total": "1", "metadata": meta("fee")}],
        "shipping_lines": [
            {
                "method_id": mark("method"),
                "method_title": mark("method"),
                "metadata": meta("shipping"),
            }
        ],
        "tax_lines": [
            {
                "title": mark("tax"),
                "code": mark("rate"),
                "rate_id": 1,
                "total": "1",
                "metadata": meta("tax"),
            }
        ],
        "coupon_lines": [{"code": "summer", "metadata": meta("coupon_line")}],
        "metadata": meta("order"),
        **{each: mark(each) for each in ("note", "transaction_id", "customer_user_agent")},
    }


REMAINS = {
    # Records of sales with the texts that search them, their notes, refunds and metadata.
    "orders", "orders_search", "order_notes", "order_refunds", "order_metadata", "refund_metadata",
    "item_metadata",
    # Terms of a coupon.
    "coupons",
}  # fmt: skip
"""The tables that keep marks, as docs/customers.md says."""

GOODS = {mark(each) for each in ("line", "sku", "fee", "method", "rate", "tax")}
"""Names of what was sold, which remain in events and in stored responses."""

TERMS = {EMAIL.lower().partition("@")[0]}
"""The address in events of the coupon that requires it."""


def _text(value):
    """Return bytes as text. Parts of files are compressed."""
    with suppress(zlib.error):
        value = zlib.decompress(value)
    return value.decode("latin-1")


@pytest.fixture
def marks(app):
    """Return a function: the marks by table, of every column of every table."""

    def find():
        with app.app_context():
            found = defaultdict(set)
            for table in inspect(db.engine).get_table_names():
                for row in fetch(text(f'SELECT * FROM "{table}"')):  # of the schema
                    for value in row:
                        is_binary = isinstance(value, bytes | memoryview)
                        read = _text(bytes(value)) if is_binary else str(value)
                        found[table] |= {each.lower() for each in MARK.findall(read)}
            return {table: words for table, words in found.items() if words}

    return find


@pytest.fixture
def marked(app, admin, make_coupon):
    """An account with a mark in each text of its records, and the requests that created them."""
    make_coupon(code="summer", customer_emails=[EMAIL])
    sent = []

    def create(path, key, values):
        sent.append((path, {key: values}, {"Idempotency-Key": f"{len(sent)}"}))
        response = admin.post(*sent[-1][:2], headers=sent[-1][2])
        assert response.status_code == 201, response.json
        return response.json[key]

    customer = create("/customers", "customer", {
        "email": EMAIL, "username": mark("username"), "password": "secret word",
        "first_name": mark("first_name"), "last_name": mark("last_name"),
        "billing_address": addresses("billing") | {"email": EMAIL},
        "shipping_address": addresses("shipping"), "metadata": meta("customer"),
    })["id"]  # fmt: skip
    order = create("/orders", "order", order_of(customer))["id"]
    for kind in ("note", "customer_note"):
        note = {"note": mark(kind), "customer_note": kind == "customer_note"}
        create(f"/orders/{order}/notes", "order_note", note)
    refund = {"amount": "1.00", "reason": mark("reason"), "metadata": meta("refund")}
    create(f"/orders/{order}/refunds", "order_refund", refund)
    create("/orders", "order", order_of(0))
    use = {"code": "summer", "reference": "a", "email": EMAIL, "customer_id": customer}
    create("/redemptions", "redemption", use)
    own = {"user_id": customer, "description": mark("description"), "permission": "read_write"}
    create("/keys", "key", own)
    for change in ({"last_name": mark("new_name")}, {"metadata": meta("new")}):
        assert admin.put(f"/customers/{customer}", {"customer": change}).status_code == 200
    assert admin.put(f"/orders/{order}", {"order": {"note": mark("new_note")}}).status_code == 200
    browser = Browser(app, admin.key)
    cells = f"email,first_name\n{EMAIL},{mark('cell')}\n"
    form = {"kind": "customers", "on_conflict": "update"}
    form["file"] = (io.BytesIO(cells.encode()), f"{mark('file')}.csv")
    assert browser.post("/data/upload", form, content_type="multipart/form-data").status == 303
    return customer, sent


@pytest.mark.both_databases
def test_only_records_of_sales_and_terms_of_coupons_remain(admin, marks, marked):
    customer, sent = marked
    assert {
        "users",
        "events",
        "idempotency_records",
        "import_runs",
        "redemptions",
    } <= marks().keys()
    assert admin.delete(f"/customers/{customer}").status_code == 200
    remains = marks()
    assert remains.pop("events") == GOODS | TERMS
    assert remains.pop("idempotency_records") <= GOODS
    assert remains.keys() <= REMAINS
    for path, body, once in sent:
        response = admin.post(path, body, headers=once)
        assert response.headers["Idempotent-Replayed"] == "true"
        assert set(MARK.findall(response.text)) <= GOODS, path


@pytest.mark.parametrize("other", ["grace", "marked_last"])
def test_the_name_of_a_colleague_is_removed_from_notes_and_keys(
    app, admin, make_customer, make_order, marks, other
):
    names = {"username": mark("login"), "role": "administrator", "permission": "read_write"}
    key = admin.post("/keys", {"key": names}).json["key"]
    path = f"/customers/{key['user_id']}"
    assert admin.put(path, {"customer": {"last_name": mark("last")}}).status_code == 200
    make_customer(email="grace@example.com", last_name=other)
    order, staff = make_order(), Client(app, SimpleNamespace(**key, key_id=key["id"]))
    pair = key["consumer_key"], key["consumer_secret"]
    note = {"note": "Called.", "added_by_user": True}
    notes = f"/wp-json/wc/v3/orders/{order['id']}/notes"
    response = staff.http.post(notes, json=note, auth=pair, base_url="https://localhost")
    assert (response.status_code, response.json["author"]) == (201, mark("last"))
    browser = Browser(app, staff.key)
    page = browser.submit("/invitations/new", "login", login="ada", role="administrator")
    link = page.html.split("sign-in?token=")[1].split("<")[0]
    assert Browser(app).post("/sign-in", {"token": link}).status == 200
    assert admin.delete(path).status_code == 200
    # Another account with the same name can have written the note.
    found = marks()
    assert found.get("order_notes", set()) == {other} - {"grace"}
    assert other != "grace" or found == {}
    descriptions = {each["description"] for each in admin.get("/keys").json["keys"]}
    assert "invitation" in descriptions


def test_an_uploaded_file_is_deleted_by_any_form_of_the_address(app, admin, make_customer, marks):
    ann = make_customer(email="Marked.Ann@münchen.example")
    browser = Browser(app, admin.key)
    for address_ in ("marked.ann@XN--MNCHEN-3YA.example", "<MARKED.ANN@mu\u0308nchen.example>"):
        form = {"kind": "customers", "on_conflict": "update"}
        form["file"] = (io.BytesIO(f'email\n"{address_}"\n'.encode()), "a.csv")
        sent = browser.post("/data/upload", form, content_type="multipart/form-data")
        assert sent.status == 303
    assert "import_parts" in marks()
    assert admin.delete(f"/customers/{ann['id']}").status_code == 200
    assert marks() == {}
