"""A thousand undos of all kinds of writes and records restore exact bodies (people 8)."""

import json
import random
from collections import Counter
from itertools import count

import pytest
from sqlalchemy import make_url

from app.api.representations import CAMPAIGN, COUPON, CUSTOMER, ORDER, ORDER_NOTE, ORDER_REFUND

UNDOS = {"sqlite": 1_000, "postgresql": 200}
"""Number on each database. Both store the same changes; PostgreSQL takes several times as long."""

RECORDS = 3  # of each kind
TRASHED = "in the trash"
STAY = {"completed_at", "paid_at", "version"}
TEXTS = ["", "Plain", 'Ä "quoted" <b>', "a & b", "\u2028 ß"]
STATUSES = ["pending", "processing", "on-hold", "cancelled", "failed", "completed"]
TIMES = ["", "2030-01-01T10:00:00Z", "2031-06-30T23:59:59Z"]
CITIES = ["Rome", "Oslo", ""]
TYPES = {
    *(f"{kind}.updated" for kind in ("campaign", "coupon", "customer")),
    *(f"{kind}.updated" for kind in ("order", "order_note", "order_refund")),
    *(f"{kind}.{verb}" for kind in ("coupon", "order") for verb in ("deleted", "restored")),
}
DIALECTS = {"coupon": "coupons", "customer": "customers", "order": "orders"}


class Shop:
    """Records of each kind, and random writes of them.

    ``paths`` has the address of each record by its kind and ID.
    """

    def __init__(self, client, seed, orders):
        self.client, self.chance, self.numbers = client, random.Random(seed), count(1)
        self.paths = {}
        self.create("campaign", "/campaigns", [{"name": "Spring"}, {"name": "Fall", "budget": "9"}])
        coupons = [{"code": f"first-{number}", "amount": "1"} for number in range(RECORDS)]
        self.create("coupon", "/coupons", coupons)
        used = {"code": "used", "type": "fixed_cart", "amount": "1", "usage_limit": RECORDS}
        self.used = client.post("/coupons", {"coupon": used}).get_json()["coupon"]["id"]
        customers = [{"email": f"c{number}@example.com"} for number in range(RECORDS)]
        self.create("customer", "/customers", customers)
        self.first_customer = min(key[1] for key in self.paths if key[0] == "customer")
        for number in range(RECORDS):
            lines = {"coupon_lines": [{"code": "used"}]} if number else {}
            # Of guests with the address of a customer, so that they can be claimed.
            address = {"email": f"c{number}@example.com", "city": "Rome"}
            order_id = orders(billing_address=address, status="processing", **lines)["id"]
            self.paths["order", order_id] = path = f"/orders/{order_id}"
            self.create("order_refund", f"{path}/refunds", [{"amount": "1", "reason": "Late"}])
            self.create("order_note", f"{path}/notes", [{"note": "Call"}])

    def create(self, kind, path, bodies):
        for body in bodies:
            record = self.client.post(path, {kind: body}).get_json()[kind]
            self.paths[kind, record["id"]] = f"{path}/{record['id']}"

    # --- what a write changes ---

    def some(self, **choices):
        """Some of the fields with a random value."""
        names = self.chance.sample(sorted(choices), self.chance.randint(1, len(choices)))
        return {name: self.chance.choice(choices[name]) for name in names}

    def metadata(self):
        values = [None, "", "x", 1, True, {"k": [1, None]}, 2.5]
        return self.some(a=values, b=values, c=values)

    def address(self):
        return self.some(city=CITIES, first_name=TEXTS, phone=["", "1"], country=["IT", "DE"])

    def fields(self, kind, record_id):
        addresses = {
            name: [self.address() for _ in range(2)]
            for name in ("billing_address", "shipping_address")
        }
        metadata = [self.metadata() for _ in range(2)]
        times = {"starts_at": TIMES, "active": [True, False], "usage_limit": [0, 5, 50]}
        if kind == "campaign":
            tags = [[], ["a"], ["a", "b"]]
            names = ["Spring", "Fall", "Winter"]
            return self.some(
                name=names, budget=["", "9", "50.5"], tags=tags, ends_at=TIMES, **times
            )
        if kind == "coupon":
            return self.some(
                code=[f"code-{record_id}", f"other-{record_id}"], amount=["0", "1", "12.5"],
                product_ids=[[], [1, 2], [2]], expiry_date=["", "2031-01-31"],
                minimum_amount=["", "0", "12.345"], description=TEXTS, metadata=metadata,
                customer_emails=[[], ["c1@example.com", "*@example.com"]],
                type=["percent", "fixed_cart", "fixed_product"], **times,
            )  # fmt: skip
        if kind == "customer":
            return self.some(
                email=[f"c{record_id - self.first_customer}@example.com", f"N-{record_id}@Example.com"],
                first_name=TEXTS, last_name=TEXTS, tags=[[], ["vip"], ["vip", "b"]],
                metadata=metadata, **addresses,
            )  # fmt: skip
        if kind == "order":
            return self.some(
                status=STATUSES, note=TEXTS, customer_ip=["", "10.0.0.1"], metadata=metadata,
                payment_details=[{"method_id": "bacs", "method_title": "Bank"}, {"method_id": ""}],
                prices_include_tax=[True, False], transaction_id=TEXTS, **addresses,
            )  # fmt: skip
        if kind == "order_refund":
            return self.some(reason=TEXTS, metadata=metadata)
        return self.some(note=TEXTS[1:], customer_note=[True, False])

    def in_dialect(self, kind):
        """The fields of a request to wc/v3."""
        keys = [[{"key": key, "value": f"v{next(self.numbers)}"}] for key in ("a", "wc")]
        address = {"city": CITIES, "phone": ["", "1"], "first_name": TEXTS}
        addresses = {name: [self.some(**address)] for name in ("billing", "shipping")}
        if kind == "coupon":
            return self.some(
                amount=["3", "4"], description=TEXTS, individual_use=[True, False], meta_data=keys,
                date_expires=[None, "2031-01-31T00:00:00"], email_restrictions=[["a@b.example"], []],
            )  # fmt: skip
        if kind == "customer":
            return self.some(first_name=TEXTS, last_name=TEXTS, meta_data=keys, **addresses)
        return self.some(
            customer_note=TEXTS, status=STATUSES, transaction_id=TEXTS, meta_data=keys, **addresses
        )

    # --- the writes: each returns the method, the path, the body, and the records that it names ---

    def write(self):
        """Write in a random way; return the ID of the request and the bodies before it."""
        kind, record_id = key = self.chance.choice([*self.paths])
        ways = {"put": 3, "undo": 1}
        if kind in DIALECTS:
            ways |= {"bulk": 2, "wc": 2, "batch": 1, "legacy": 1}
        if kind in {"coupon", "order"}:
            ways |= {"trash": 2, "restore": 1}
        if kind == "customer":
            ways |= {"claim": 2}
        if self.body(key) == TRASHED:  # wc/v3 changes it also then, which cannot be undone
            ways = {"restore": 1}
        (way,) = self.chance.choices([*ways], [*ways.values()])
        method, path, body, *more = getattr(self, f"_{way}")(kind, record_id, self.paths[key])
        before = {each: self.body(each) for each in (key, *more)}
        request_id = f"write-{next(self.numbers)}"
        headers = {"X-Request-Id": request_id}
        response = self.client.request(method, path, json=body, headers=headers)
        assert response.status_code in {200, 400, 404, 409}, response.get_json()
        return way, request_id, before

    def _put(self, kind, record_id, path):
        return "PUT", path, {kind: self.fields(kind, record_id)}

    def _bulk(self, kind, record_id, _):
        others = [key for key in self.paths if key[0] == kind]
        other = self.chance.choice(others)
        ids = [record_id, other[1], record_id]
        items = [{"id": each, **self.fields(kind, each)} for each in ids]
        return "POST", f"/{DIALECTS[kind]}/bulk", {DIALECTS[kind]: items}, other

    def _wc(self, kind, record_id, _):
        path = f"/wp-json/wc/v3/{DIALECTS[kind]}/{record_id}"
        return "PUT", path, self.in_dialect(kind)

    def _batch(self, kind, record_id, _):
        item = {"id": record_id, **self.in_dialect(kind)}
        return "POST", f"/wp-json/wc/v3/{DIALECTS[kind]}/batch", {"update": [item]}

    def _legacy(self, kind, record_id, _):
        given = {"coupon": {"amount": ["5", "6"], "description": TEXTS},
                 "customer": {"first_name": TEXTS, "last_name": TEXTS},
                 "order": {"note": TEXTS, "status": STATUSES}}[kind]  # fmt: skip
        return "PUT", f"/wc-api/v3/{DIALECTS[kind]}/{record_id}", {kind: self.some(**given)}

    def _trash(self, _kind, _id, path):
        return "DELETE", path, None

    def _restore(self, _kind, _id, path):
        return "POST", f"{path}/restore", None

    def _claim(self, _kind, _id, path):
        orders = [key for key in self.paths if key[0] == "order"]
        return "POST", f"{path}/claim", {"claim": {}}, *orders

    def _undo(self, kind, record_id, _path):
        query = {"resource": kind, "resource_id": record_id, "order": "desc", "limit": 1}
        (event,) = self.client.get("/events", query).get_json()["events"]
        return "POST", f"/events/{event['id']}/undo", None

    # --- what is compared ---

    def body(self, key):
        """The whole record as text, or what says that it is in the trash."""
        kind, path = key[0], self.paths[key]
        schema = {"campaign": CAMPAIGN, "coupon": COUPON, "customer": CUSTOMER, "order": ORDER,
                  "order_note": ORDER_NOTE, "order_refund": ORDER_REFUND}[kind]  # fmt: skip
        names = [*schema.selectable, *(() if kind in {"campaign", "order_note"} else ["metadata"])]
        response = self.client.get(path, {"fields": ",".join(names)})
        if response.status_code == 404:
            return TRASHED
        return json.dumps(shown(response.get_json()[kind]), sort_keys=True)

    def bodies(self):
        used = self.client.get(f"/coupons/{self.used}").get_json()["coupon"]["usage_count"]
        return {"used": used} | {key: self.body(key) for key in self.paths}


def shown(value):
    """A body without the times that a write sets."""
    if isinstance(value, list):
        return [shown(each) for each in value]
    if isinstance(value, dict):
        left = {name: each for name, each in value.items() if name not in STAY | {"updated_at"}}
        return {name: shown(each) for name, each in left.items()}
    return value


def undoable(event):
    verb = event["type"].partition(".")[2]
    return (verb == "updated" and event["changes"]) or verb in {"deleted", "restored"}


@pytest.mark.slow
@pytest.mark.both_databases
def test_a_thousand_undos_restore_exact_bodies(admin, make_order, database_url):
    shop = Shop(admin, 1, make_order)
    first, undos, types, ways = shop.bodies(), [], Counter(), Counter()
    while len(undos) < UNDOS[make_url(database_url).get_backend_name()]:
        way, request_id, before = shop.write()
        query = {"request_id": request_id, "fields": "id,type,changes"}
        events = admin.get("/events", query).get_json()["events"]
        found = [event for event in events if undoable(event)]
        if found:
            types.update(event["type"] for event in found)
            ways[way] += len(found)
            # The last one undone is the first one written.
            undos += [(found[0]["id"], before), *((event["id"], {}) for event in found[1:])]
    assert types.keys() == TYPES
    assert len(ways) == 9, ways
    for event_id, before in reversed(undos):
        response = admin.post(f"/events/{event_id}/undo")
        assert response.status_code == 200, (event_id, response.get_json())
        assert {key: shop.body(key) for key in before} == before
    assert shop.bodies() == first
