"""A member of staff who is in every column of personal data, and in none after the erasure."""

import zlib
from pathlib import Path

import pytest
from sqlalchemy import insert, select, update

from app.auth.encryption import decrypt
from app.db.read_pool import fetch
from app.db.session import db, now, run_in_transaction, truncate_write_ahead_log
from app.models import (
    ADMIN_SESSIONS,
    API_KEYS,
    IMPORT_ERRORS,
    ORDER_NOTES,
    SIGN_IN_LINKS,
    WEBHOOK_DELIVERIES,
)
from app.models.personal_data import PERSONAL
from app.models.webhook_delivery import new_delivery
from app.schemas.customers import CustomerUpdate
from app.schemas.fields.input import CleanText
from app.services.coupons.refusals import refusals_of
from tests.persons.test_erasure import Person, address, order_of, stored
from tests.persons.test_merge import merge

MARK = "zqmark"

NOT_FILLED = {
    ("coupon_refusals", "code"),  # a code that can be an address is counted as an empty one
    ("refused_carts", "code"),  # the same
    ("erasures", "traces_encrypted"),  # only while a worker clears a large account
    ("idempotency_persons", "person"),  # a keyed hash
    ("import_errors", "param"),  # names a field
    ("order_refunds", "line_items"),  # the items of the order have the texts
    ("orders", "item_details"),  # the IDs of what ``line_items`` have
    ("orders", "billing_email_normalized"),  # only where it differs from the address
    *(("uploads", name) for name in ("content", "failures", "name")),  # of the previous version
}
"""Columns of PERSONAL in which this person cannot be."""


def readable(value):
    """A stored value as text, also if it is compressed or encrypted."""
    if not isinstance(value, bytes):
        return str(value)
    try:
        return zlib.decompress(value).decode("latin-1")
    except zlib.error:
        pass
    text = value.decode("latin-1")
    return text if text[:1] in {"{", "["} else decrypt(text) or text


def places(app):
    """Return the tables and columns that contain the mark."""
    return stored(app, [MARK], readable)


def fill(admin):
    """Store a member of staff with the mark in every field; return the person and the import."""
    admin.post("/coupons", {"coupon": {"code": "summer", "amount": "1.00", "type": "fixed_cart"}})
    person = Person(admin, MARK, has_account=True)
    older = Person(admin, f"{MARK}old", has_account=True)
    assert merge(admin, person.customer_id, older.customer_id).status_code == 200
    path, order = f"/customers/{person.customer_id}", f"/orders/{person.order_id}"
    both = {
        name: address(MARK) | {"state": MARK, "country": MARK}
        for name in ("billing_address", "shipping_address")
    }
    texts = {
        name: MARK
        for name, field in CustomerUpdate().fields.items()
        if isinstance(field, CleanText)
    }
    admin.put(path, {"customer": texts | both | {"metadata": {MARK: MARK}}})
    phone = {"shipping": {"phone": MARK}}
    admin.request("PUT", f"/wp-json/wc/v3{path}", json=phone)
    admin.request("PUT", f"/wp-json/wc/v3{order}", json=phone)
    items = order_of(MARK, 0)["line_items"]
    items[0]["metadata"] = {MARK: MARK}
    download = {"download_name": MARK, "download_url": MARK, "file": {"name": MARK, "file": MARK}}
    admin.put(order, {"order": {
        "line_items": items, "metadata": {MARK: MARK},
        "download_permissions": [{"product_id": 1, "download_id": "f", **download}],
    }})  # fmt: skip
    refund = {"amount": "1.00", "metadata": {MARK: MARK}}
    admin.post(f"{order}/refunds", {"order_refund": refund})
    admin.post("/coupons", {"coupon": {"code": "own", "customer_emails": [person.email]}})
    admin.post(
        "/coupons/evaluate",
        {"cart": {"coupons": [person.email], "items": [], "email": person.email}},
    )
    sent = admin.request(
        "POST", f"/imports?kind=customers&name={person.email}", data=f"email\n{person.email}\n",
        content_type="text/csv",
    )  # fmt: skip
    assert sent.status_code == 201
    return person, sent.get_json()["import"]["id"]


def fill_tables(app, admin, person, import_id):
    """Store what needs a browser, a receiver or a worker: rows of its own tables."""
    hook = {"name": "all", "topics": ["order.*"], "delivery_url": "https://1.1.1.1/"}
    webhook_id = admin.post("/webhooks", {"webhook": hook}).get_json()["webhook"]["id"]
    of_order = {"resource": "order", "resource_id": person.order_id, "limit": 1}
    reported = [  # also the removal of the merged account
        admin.get("/events", query).get_json()["events"][0]
        for query in (of_order, {"type": "customer.deleted"})
    ]

    def work(session):
        (key,) = fetch(select(API_KEYS).where(API_KEYS.c.id == admin.key.key_id))
        hashes = {"consumer_key_hash": "other", "consumer_secret_hash": "other"}
        row = {**key._mapping, **hashes, "user_id": person.customer_id, "description": MARK}
        del row["id"]
        key_id = session.scalar(insert(API_KEYS).values(row).returning(API_KEYS.c.id))
        times = {"created_at": now(), "expires_at": now()}
        of_key = {"token_hash": "other", "key_id": key_id, **times}
        session.execute(
            insert(ADMIN_SESSIONS).values(**of_key, last_used_at=now(), user_agent=MARK)
        )
        session.execute(insert(SIGN_IN_LINKS).values(**of_key, login=MARK))
        notes = update(ORDER_NOTES).where(ORDER_NOTES.c.order_id == person.order_id)
        session.execute(notes.values(author=MARK))
        for event in reported:
            delivery = new_delivery(webhook_id, now()) | {
                "event_id": event["id"], "resource": event["resource"],
                "resource_id": event["resource_id"], "state": "delivered", "next_attempt_at": None,
                "response_body": MARK, "response_headers": {MARK: MARK},
            }  # fmt: skip
            session.execute(insert(WEBHOOK_DELIVERIES).values(delivery))
        error = {"line": 2, "code": "shop_api_invalid_param", "message": f"{person.email} is.",
                 "sentence": f"{person.email} is."}  # fmt: skip
        session.execute(insert(IMPORT_ERRORS).values(import_id=import_id, **error))

    with app.app_context():
        run_in_transaction(work)
        refusals_of(app).flush()


@pytest.mark.both_databases
def test_every_column_of_personal_data_is_erased(logged, database_url):
    app, admin = logged.app, logged.client
    person, import_id = fill(admin)
    fill_tables(app, admin, person, import_id)
    described = {(table, column) for table, columns in PERSONAL.items() for column in columns}
    assert described - places(app) == NOT_FILLED
    assert places(app) <= described
    shown = admin.post("/persons/erase", {"person": {"customer_id": person.customer_id}})
    erasure = shown.get_json()["erasure"]
    assert erasure["complete"], erasure
    assert erasure["erased"]["imports"] == erasure["erased"]["keys"] == 1
    assert erasure["erased"]["orders"] == 2
    assert MARK not in shown.text
    assert places(app) == set()
    for way in ("data", "erasure"):
        assert admin.get(f"/persons/{way}", {"email": person.email}).status_code == 404
    printed = logged.printed()
    assert "/persons/erase" in printed
    assert MARK not in printed.lower()
    export = app.test_cli_runner().invoke(args=["export", "all", "-"])
    assert (export.exit_code, MARK in export.output) == (0, False)
    if "sqlite" in database_url:
        with app.app_context():
            truncate_write_ahead_log()
            assert MARK.encode() not in Path(db.engine.url.database).read_bytes().lower()
