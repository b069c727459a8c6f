"""Persons with marks in every field: after the erasure, nothing contains the marks (people 5)."""

import json
import subprocess
from base64 import b64encode

import pytest
from sqlalchemy import select

from app.db.read_pool import fetch
from app.db.session import db, truncate_write_ahead_log
from app.models.personal_data import PERSONAL
from app.services.persons import erasure
from tests.api_client import codes, reply
from tests.factories import insert_order
from tests.redemptions.calls import post, rejected, reserve

PERSONS = [f"mark{letter}" for letter in "abcdefghij"]
REMAINING = "remains"


def address(mark):
    names = ("first_name", "last_name", "company", "address_1", "address_2", "city", "phone")
    given = {name: f"{mark} {name}" for name in names}
    return given | {
        "email": f"{mark}@example.com",
        "postcode": f"9{mark}",
        "state": "BY",
        "country": "DE",
    }


def order_of(mark, customer_id):
    """Return the body of an order that contains a mark in every field of its customer."""
    billing = address(mark)
    shipping = {name: value for name, value in billing.items() if name not in {"email", "phone"}}
    line = {
        "name": "Teapot",
        "price": "10.00",
        "total_tax": "1.90",
        "meta": [{"key": "engraving", "label": "Engraving", "value": mark}],
        "metadata": {"gift": mark},
    }
    return {
        "customer_id": customer_id,
        "status": "completed",
        "billing_address": billing,
        "shipping_address": shipping,
        "note": f"For {mark}",
        "customer_ip": f"ip {mark}",
        "customer_user_agent": f"agent {mark}",
        "transaction_id": "kept-1",
        "line_items": [line],
        "shipping_lines": [{"method_id": "flat", "total": "4.00"}],
        "coupon_lines": [{"code": "summer"}],
        "metadata": {"erp": {"name": mark}},
        "download_permissions": [{"product_id": 1, "download_id": "f", "download_name": mark}],
    }


class Person:
    """A person whose data the API stores: an account with an order, or a guest."""

    def __init__(self, admin, mark, *, has_account):
        self.mark, self.email = mark, f"{mark}@example.com"
        self.customer_id = 0
        if has_account:
            body = {
                "email": self.email.title(),
                "username": mark,
                "first_name": mark,
                "last_name": mark,
                "password": "long enough 1",
                "billing_address": address(mark),
                "metadata": {"crm": mark},
                "tags": [mark],
            }
            created = admin.post(
                "/customers", {"customer": body}, headers={"Idempotency-Key": mark}
            )
            self.customer_id = created.get_json()["customer"]["id"]
            admin.put(f"/customers/{self.customer_id}", {"customer": {"first_name": f"{mark} 2"}})
        order = order_of(mark, self.customer_id)
        created = admin.post("/orders", {"order": order}, headers={"Idempotency-Key": f"{mark}-o"})
        assert created.status_code == 201, created.get_json()
        self.order_id = created.get_json()["order"]["id"]
        path = f"/orders/{self.order_id}"
        admin.put(path, {"order": {"note": f"Again {mark}"}})
        admin.post(f"{path}/notes", {"order_note": {"note": f"Call {mark}"}})
        note = admin.post(f"{path}/notes", {"order_note": {"note": f"Not {mark}"}}).get_json()
        admin.delete(f"{path}/notes/{note['order_note']['id']}")
        refund = {"amount": "1.00", "reason": mark, "metadata": {"erp": mark}}
        admin.post(f"{path}/refunds", {"order_refund": refund})
        reserve(admin, "summer", f"cart {self.order_id}", email=self.email)

    @property
    def names(self):
        return {"customer_id": self.customer_id} if self.customer_id else {"email": self.email}


@pytest.fixture
def persons(filled_once):
    """Ten persons, five of them guests, and one who remains."""
    return filled_once(fill)


def fill(admin):
    admin.post("/coupons", {"coupon": {"code": "summer", "amount": "1.00", "type": "fixed_cart"}})
    found = [
        Person(admin, mark, has_account=index % 2 == 0)
        for index, mark in enumerate([*PERSONS, REMAINING])
    ]
    emails = [person.email for person in found]
    coupon = {"code": "private", "customer_emails": [*emails, "*@example.org"]}
    admin.post("/coupons", {"coupon": coupon}, headers={"Idempotency-Key": "private"})
    for email in emails:  # a code that is not one
        admin.post("/coupons/evaluate", {"cart": {"coupons": [email], "items": []}})
    return found


def sums(admin):
    """Return the sales of the year, in which all erased guests count as one customer."""
    status, body = reply(admin.get("/reports/sales", {"filter[period]": "year"}))
    assert status == 200
    return json.loads(
        json.dumps(body),
        object_hook=lambda each: {
            name: value for name, value in each.items() if "customer" not in name
        },
    )


def as_text(value):
    """Return a stored value as text."""
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def stored(app, words, read=as_text):
    """Return the tables and columns that contain a word, as ``read`` returns their values."""
    with app.app_context():
        return {
            (table.name, name)
            for table in db.metadata.sorted_tables
            for row in fetch(select(table))
            for name, value in row._mapping.items()
            if any(word in read(value).lower() for word in words)
        }


def test_nothing_contains_the_marks_of_erased_persons(app, admin, persons, database_url):
    reports = sums(admin)
    described = {(table, column) for table, columns in PERSONAL.items() for column in columns}
    assert stored(app, PERSONS) <= described
    for person in persons[:-1]:
        query = {"person": person.names}
        shown = admin.post("/persons/erase", query, headers={"Idempotency-Key": f"e{person.mark}"})
        erasure = shown.get_json()["erasure"]
        assert (erasure["complete"], erasure["customer_id"]) == (True, person.customer_id or None)
        assert erasure["erased"] == {
            "customers": int(bool(person.customer_id)), "orders": 1, "order_notes": 1,
            "order_refunds": 1, "downloads": 1, "redemptions": 2, "keys": 0, "sessions": 0,
            "coupons": 1, "imports": 0,
        }  # fmt: skip
    assert stored(app, PERSONS) == set()
    assert stored(app, [REMAINING])
    for path in ("/orders", "/customers", "/events", "/redemptions", "/coupons", "/refunds"):
        query = {"filter[limit]": 100, "fields": ""}
        assert not any(mark in admin.get(path, query).text.lower() for mark in PERSONS), path
    feed = admin.get("/events", {"filter[limit]": 1000, "fields": "data,changes"}).text.lower()
    assert not any(mark in feed for mark in PERSONS)
    assert sums(admin) == reports
    again = admin.post("/customers", {"customer": {}}, headers={"Idempotency-Key": PERSONS[0]})
    assert PERSONS[0] not in again.text.lower()
    if "sqlite" in database_url:
        with app.app_context():
            truncate_write_ahead_log()
            done = subprocess.run(["cat", db.engine.url.database], capture_output=True, check=True)
        content = done.stdout.lower()
        assert not [mark for mark in PERSONS if mark.encode() in content]


def test_the_sale_remains(admin, persons):
    person = persons[0]
    path = f"/orders/{person.order_id}"
    before = admin.get(path).get_json()["order"]
    admin.post("/persons/erase", {"person": person.names})
    after = admin.get(path).get_json()["order"]
    changed = {name for name in before if before[name] != after[name]}
    assert changed == {
        "updated_at", "billing_address", "shipping_address", "note", "customer_ip",
        "customer_user_agent", "customer_id", "line_items", "customer",
    } - ({"updated_at"} if before["updated_at"] == after["updated_at"] else set())  # fmt: skip
    assert after["billing_address"] == {
        **dict.fromkeys(before["billing_address"], ""),
        "postcode": "9m", "state": "BY", "country": "DE",
    }  # fmt: skip
    assert [line | {"meta": []} for line in before["line_items"]] == after["line_items"]
    assert after["customer"]["id"] == 0
    fields = {"fields": "erased_at,metadata,refunds"}
    shown = admin.get(path, fields).get_json()["order"]
    assert shown["erased_at"] is not None
    assert shown["metadata"] == {}
    assert [refund["reason"] for refund in shown["refunds"]] == [""]
    notes = admin.get(f"{path}/notes").get_json()["order_notes"]
    assert [note["note"] for note in notes] == ["Personal data erased."]
    assert admin.get(path, {"fields": "id"}).get_json()["order"] == {"id": person.order_id}


def test_events_of_an_erasure(admin, persons):
    admin.post("/persons/erase", {"person": persons[0].names})
    query = {"filter[order]": "desc", "filter[limit]": 4, "fields": "type,resource_id,changes,data"}
    events = admin.get("/events", query).get_json()["events"]
    assert [(each["type"], each["resource_id"], each["changes"]) for each in events] == [
        ("person.erased", persons[0].customer_id, None),
        ("customer.deleted", persons[0].customer_id, None),
        ("coupon.updated", coupon_id(admin), None),
        ("order.updated", persons[0].order_id, None),
    ]
    assert events[0]["data"]["person"]["order_ids"] == [persons[0].order_id]


def coupon_id(admin):
    return admin.get("/coupons/code/private").get_json()["coupon"]["id"]


def test_a_coupon_does_not_become_open_to_everyone(admin, persons):
    for person in persons:
        admin.post("/persons/erase", {"person": person.names})
    (coupon,) = admin.get("/coupons", {"filter[q]": "private"}).get_json()["coupons"]
    erased = "erased@erased.invalid"
    assert coupon["customer_emails"] == [*[erased] * len(persons), "*@example.org"]
    for email in (erased, "any@erased.invalid", persons[0].email):
        assert rejected(post(admin, "private", email=email)) == ["email_not_allowed"]


def test_an_address_of_another_account_stays_in_coupons(admin, make_coupon, make_customer):
    make_customer(email="shared@example.com")
    coupon = make_coupon(code="private", customer_emails=["shared@example.com"])
    order = {"status": "completed", "billing_address": {"email": "Shared@example.com"}}
    order = order | {"line_items": [{"name": "Teapot", "price": "1.00"}]}
    order_id = admin.post("/orders", {"order": order}).get_json()["order"]["id"]
    erased = admin.post("/persons/erase", {"person": {"order_id": order_id}}).get_json()["erasure"]
    assert (erased["customer_id"], erased["erased"]["orders"]) == (None, 1)
    assert admin.get("/customers/email/shared@example.com").status_code == 200
    shown = admin.get(f"/coupons/{coupon['id']}").get_json()["coupon"]
    assert shown["customer_emails"] == ["shared@example.com"]


@pytest.mark.both_databases
def test_limits_still_count(admin, make_coupon, make_customer):
    make_coupon(code="summer", usage_limit_per_user=1)
    ann = make_customer(email="ann@example.com")
    reserve(admin, customer_id=ann["id"])
    admin.post("/persons/erase", {"person": {"customer_id": ann["id"]}})
    for over in (
        {"email": "Ann@example.com"},
        {"customer_id": make_customer(email="ann@example.com")["id"]},
    ):
        assert rejected(post(admin, reference="b", **over)) == ["usage_limit_per_user"]


def test_the_preview_and_its_entity_tag(admin, persons):
    person = persons[0]
    response = admin.get("/persons/erasure", person.names)
    erasure = response.get_json()["erasure"]
    assert erasure == {
        "customer_id": person.customer_id,
        "emails": [person.email],
        "other_emails": [],
        "complete": False,
        "erased": {
            "customers": 1, "orders": 1, "order_notes": 1, "order_refunds": 1, "downloads": 1,
            "redemptions": 2, "keys": 0, "sessions": 0, "coupons": 1, "imports": 0,
        },
        "reasons": [],
    }  # fmt: skip
    tag = {"If-Match": response.headers["ETag"]}
    admin.put(
        f"/customers/{person.customer_id}",
        {"customer": {"billing_address": {"email": "b@example.com"}}},
    )
    body = {"person": person.names}
    assert codes(admin.post("/persons/erase", body, headers=tag)) == (
        412,
        "shop_api_precondition_failed",
    )
    response = admin.get("/persons/erasure", person.names)
    assert response.get_json()["erasure"]["other_emails"] == ["b@example.com"]
    tag = {"If-Match": response.headers["ETag"]}
    assert admin.post("/persons/erase", body, headers=tag).status_code == 200


def test_open_orders_and_the_own_account(admin, persons):
    person = persons[0]
    admin.put(f"/orders/{person.order_id}", {"order": {"status": "processing"}})
    response = admin.post("/persons/erase", {"person": person.names})
    assert codes(response) == (409, "shop_api_cannot_erase_person")
    (error,) = response.get_json()["errors"]
    assert error["reasons"] == [
        {"code": "open_orders", "message": f"Open orders: {person.order_id} (processing)."}
    ]
    own = admin.get("/persons/erasure", {"customer_id": admin.key.user_id}).get_json()["erasure"]
    assert [reason["code"] for reason in own["reasons"]] == ["is_caller"]
    admin.delete(f"/orders/{person.order_id}")  # to the trash
    assert admin.post("/persons/erase", {"person": person.names}).status_code == 200


def test_many_orders_take_several_requests(app, admin, make_customer):
    ann = make_customer(email="ann@example.com")["id"]
    for number in range(201):
        insert_order(app, customer_id=ann, order_number=str(number))
    body = {"person": {"customer_id": ann}}
    first = admin.post("/persons/erase", body).get_json()["erasure"]
    assert (first["complete"], first["erased"]["orders"], first["erased"]["customers"]) == (
        False,
        200,
        0,
    )
    assert admin.get(f"/customers/{ann}").status_code == 200
    second = admin.post("/persons/erase", body).get_json()["erasure"]
    assert (second["complete"], second["erased"]["orders"], second["erased"]["customers"]) == (
        True,
        1,
        1,
    )
    assert codes(admin.post("/persons/erase", body)) == (404, "shop_api_invalid_customer")


LINE = {"name": "Cup", "price": "1.00"}
REJECTED = {
    "billing_address.first_name": {"billing_address": {"first_name": "Ann"}},
    "billing_address.postcode": {"billing_address": {"postcode": "12345"}},
    "shipping_address.city": {"shipping_address": {"city": "Bonn"}},
    "note": {"note": "For Ann"},
    "customer_ip": {"customer_ip": "192.0.2.1"},
    "metadata": {"metadata": {"erp": "1"}},
    "line_items[1].meta": {"line_items": [LINE, LINE | {"meta": [{"key": "a", "value": "b"}]}]},
    "line_items[0].metadata": {"line_items": [LINE | {"metadata": {"a": "b"}}]},
    "download_permissions": {"download_permissions": [{"product_id": 1, "download_id": "f"}]},
}


def test_an_erased_order_accepts_no_personal_data(admin, persons, make_customer):
    person = persons[1]
    admin.post("/persons/erase", {"person": person.names})
    path = f"/orders/{person.order_id}"
    customer = {"customer_id": make_customer(email="other@example.com")["id"]}
    for place, body in {**REJECTED, "customer_id": customer}.items():
        refused = admin.put(path, {"order": body})
        assert codes(refused) == (400, "shop_api_cannot_update_order"), body
        (error,) = refused.get_json()["errors"]
        assert error["param"] == f"order.{place}"
        assert error["message"].startswith(f"order.{place}: ")
    read = admin.get(path).get_json()["order"]
    sent = {
        name: value for name, value in read.items() if name not in {"customer", "shipping_methods"}
    }
    assert admin.put(path, {"order": sent}).status_code == 200
    changes = {"status": "cancelled", "billing_address": {"country": "FR", "postcode": "75"}}
    assert admin.put(path, {"order": changes | {"transaction_id": "t"}}).status_code == 200
    assert admin.post(f"{path}/notes", {"order_note": {"note": "Ok"}}).status_code == 201
    refunds = f"{path}/refunds"
    for name, value in {"reason": "Ann called", "metadata": {"a": "Ann"}}.items():
        refused = admin.post(refunds, {"order_refund": {"amount": "0.01", name: value}})
        assert codes(refused) == (400, "shop_api_cannot_update_order")
        assert refused.get_json()["errors"][0]["param"] == f"order_refund.{name}"
    refund = admin.post(refunds, {"order_refund": {"amount": "0.01", "reason": ""}})
    assert refund.status_code == 201, refund.text
    refund = f"{refunds}/{refund.get_json()['order_refund']['id']}"
    refused = admin.put(refund, {"order_refund": {"reason": "Ann called"}})
    assert codes(refused) == (400, "shop_api_cannot_update_order")
    legacy = admin.put(f"/wc-api/v3{path}", {"order": {"note": "For Ann"}})
    assert codes(legacy) == (400, "woocommerce_api_cannot_update_order")
    pair = f"{admin.key.consumer_key}:{admin.key.consumer_secret}".encode()
    headers = {"Authorization": f"Basic {b64encode(pair).decode()}"}
    url = f"/wp-json/wc/v3{path}"
    meta = [{"key": "a", "value": "Ann"}]
    for place, body in {
        "customer_note": {"customer_note": "Ann"},
        "billing.first_name": {"billing": {"first_name": "Ann"}},
        "meta_data": {"meta_data": meta},
        "fee_lines[0].meta_data": {"fee_lines": [{"name": "a", "total": "1", "meta_data": meta}]},
    }.items():
        rest = admin.http.put(url, json=body, headers=headers)
        assert (rest.status_code, rest.get_json()["message"]) == (
            400,
            f"{place}: must stay empty, because the personal data of the order was erased.",
        )
    fee = {"fee_lines": [{"name": "Gift wrap", "total": "1.00"}]}
    read = admin.http.put(url, json=fee, headers=headers).get_json()
    read["billing"].pop("email")  # these two that API never takes back
    read.pop("coupon_lines")
    rest = admin.http.put(url, json=read, headers=headers)
    assert (rest.status_code, rest.get_json()["fee_lines"]) == (200, read["fee_lines"]), rest.text


def test_undo_of_a_change_that_was_erased(admin, persons):
    person = persons[1]
    query = {
        "filter[resource]": "order",
        "filter[resource_id]": person.order_id,
        "filter[type]": "order.updated",
    }
    event = admin.get("/events", query).get_json()["events"][0]["id"]
    admin.post("/persons/erase", {"person": person.names})
    undo = admin.get(f"/events/{event}/undo").get_json()["undo"]
    assert [reason["code"] for reason in undo["reasons"]] == ["erased"]
    response = admin.post(f"/events/{event}/undo")
    assert codes(response) == (409, "shop_api_cannot_undo_event")


def test_the_data_of_a_person(admin, persons):
    response = admin.get("/persons/data", persons[0].names)
    assert response.headers["Content-Disposition"].startswith("attachment")
    assert response.headers["Cache-Control"] == "no-store"
    data = json.loads(response.text)["person_data"]
    assert (data["customer_ids"], data["emails"]) == ([persons[0].customer_id], [persons[0].email])
    numbers = {name: len(each) for name, each in data.items() if isinstance(each, list)}
    types = [event["type"] for event in data["events"]]
    assert numbers == {
        "customer_ids": 1, "emails": 1, "other_emails": 0, "customers": 1, "orders": 1,
        "refunds": 1, "redemptions": 2, "keys": 0, "sessions": 0, "coupons": 1, "events": len(types),
        "refused_codes": 0,
    }  # fmt: skip
    assert {
        "customer.created",
        "order.updated",
        "order_note.created",
        "order_refund.created",
    } <= set(types)
    assert "password_hash" not in response.text
    assert data["orders"][0]["notes"][0]["note"] == f"Call {persons[0].mark}"
    assert data["coupons"] == [{"id": coupon_id(admin), "code": "private"}]
    others = {person.mark for person in persons[1:]}
    found = json.dumps({name: each for name, each in data.items() if name != "events"})
    assert not [mark for mark in others if f"{mark}@" in found]


def test_a_body_names_exactly_one_person(admin):
    for person in ({}, {"customer_id": 1, "email": "ann@example.com"}):
        response = admin.post("/persons/erase", {"person": person})
        assert codes(response) == (400, "shop_api_invalid_param")
        assert response.get_json()["errors"][0]["param"] == "person.customer_id"


def test_settings_name_the_statuses_and_the_metadata_that_stay(client_with, admin):
    """The defaults are in the other tests: ``processing`` is open, and all metadata goes."""
    client = client_with(
        SHOP_ERASABLE_STATUSES="completed,processing", SHOP_ERASURE_KEEPS_METADATA="erp,gift"
    )
    admin.post("/coupons", {"coupon": {"code": "summer"}})
    person = Person(client, "mark", has_account=False)
    path = f"/orders/{person.order_id}"
    client.put(path, {"order": {"status": "processing", "metadata": {"other": "mark"}}})
    erased = client.post("/persons/erase", {"person": person.names}).get_json()["erasure"]
    assert (erased["complete"], erased["erased"]["orders"]) == (True, 1)
    order = client.get(path, {"fields": "metadata,line_items.metadata"}).get_json()["order"]
    assert order["metadata"] == {"erp": {"name": "mark"}}
    assert order["line_items"][0]["metadata"] == {"gift": "mark"}


@pytest.mark.both_databases
def test_parts_of_an_erasure_count_each_record_once(admin, make_customer, make_coupon, monkeypatch):
    """Uses by the account are erased with the account, those of guests with their orders."""
    monkeypatch.setattr(erasure, "BATCH", 1)
    make_coupon(code="summer")
    ann = make_customer(email="ann@example.com")["id"]
    order = {"status": "completed", "billing_address": {"email": "ann@example.com"}}
    order |= {"line_items": [{"name": "Teapot", "price": "1.00"}]}
    order |= {"coupon_lines": [{"code": "summer"}]}
    for owner in ({"customer_id": ann}, {}, {"customer_id": ann}):
        assert admin.post("/orders", {"order": order | owner}).status_code == 201
    names = {"customer_id": ann}
    shown = admin.get("/persons/erasure", names).get_json()["erasure"]["erased"]
    assert (shown["customers"], shown["orders"], shown["redemptions"]) == (1, 3, 3)
    found = [admin.post("/persons/erase", {"person": names}).get_json() for _ in range(3)]
    parts = [each["erasure"]["erased"] for each in found]
    assert {name: sum(part[name] for part in parts) for name in shown} == shown
    assert [part["redemptions"] for part in parts] == [0, 1, 2]


def test_rights_of_persons(client_for, persons):
    manager = client_for("shop_manager")
    read = client_for("customer").get("/persons/data", persons[0].names)
    assert codes(read) == (401, "shop_api_user_cannot_read_person")
    assert manager.get("/persons/data", persons[0].names).status_code == 200
    for response in (
        manager.get("/persons/erasure", persons[0].names),
        manager.post("/persons/erase", {"person": persons[0].names}),
    ):
        assert codes(response) == (401, "shop_api_user_cannot_erase_person")
