"""Limits and statistics hold while accounts are merged and ordered for (people 6)."""

import pytest

from app.db import session as database
from app.db.errors import TryAgain
from app.db.read_pool import fetch
from app.db.session import run_in_transaction
from app.services.coupons.customers import find_customer
from app.services.coupons.terms import coupons_by_code
from app.services.redemptions.slots import take_slot
from tests.api_client import at_the_same_time, codes
from tests.persons.test_merge import merge
from tests.redemptions.calls import reserve

pytestmark = pytest.mark.both_databases

CODES = ("a", "b", "c")
KEPT, REMOVED = "kept@example.com", "old@example.com"


@pytest.fixture
def pair(make_customer, make_coupon):
    for code in CODES:
        make_coupon(code=code, usage_limit_per_user=1)
    return tuple(make_customer(email=email)["id"] for email in (KEPT, REMOVED))


def requests_for(pair):
    """Uses of each coupon by each account and address: the account that they count for, and how."""
    for code in CODES:
        for owner, email in zip(pair, (KEPT, REMOVED), strict=True):
            line = {"product_id": 1, "name": "Mug", "quantity": 1, "price": "5.00"}
            order = {"line_items": [line], "coupon_lines": [{"code": code}]}
            use = {"code": code, "reference": f"{code}-{email}", "email": email}
            yield owner, "/orders", {"order": order | {"customer_id": owner}}
            yield owner, "/redemptions", {"redemption": use}
            yield None, "/orders", {"order": {"customer_id": owner}}


def test_a_merge_among_orders_and_uses(admin, pair):
    kept, removed = pair
    given = [*requests_for(pair)]
    given.insert(len(given) // 2, (None, None, None))

    def send(each):
        client = type(admin)(admin.app, admin.key)
        return client.post(each[1], each[2]) if each[1] else merge(client, kept, removed)

    answers = at_the_same_time(send, given)
    allowed = {(400, "shop_api_invalid_customer_id"), (400, "shop_api_coupon_not_applicable")}
    uses, orders = [], []
    for (owner, path, body), answer in zip(given, answers, strict=True):
        if path is None:
            assert answer.status_code == 200, answer.get_json()
        elif answer.status_code != 201:
            assert codes(answer) in allowed, (path, body, answer.get_json())
        else:
            shown = answer.get_json()
            if path == "/orders":
                orders += [shown["order"]["id"]] if body["order"].get("customer_id") else []
            if owner:
                uses.append((owner, str(body).partition("'code': '")[2][0]))
    # Each account had one use of each coupon at most, of before the merge.
    assert len(set(uses)) == len(uses)
    assert {code for _, code in uses} == set(CODES)
    stored = admin.get("/orders", {"customer_id": kept, "limit": -1}).get_json()["orders"]
    assert sorted(order["id"] for order in stored) == sorted(orders)
    assert admin.get(f"/customers/{kept}").get_json()["customer"]["orders_count"] == len(orders)
    assert admin.get("/orders/count", {"customer_id": 0}).get_json() == {"count": 0}
    for code in CODES:
        for person in ({"customer_id": kept}, {"email": KEPT}, {"email": REMOVED}):
            body = {"redemption": {"code": code, "reference": f"late-{code}", **person}}
            assert codes(admin.post("/redemptions", body)) == (
                400,
                "shop_api_coupon_not_applicable",
            )


def test_of_two_opposite_merges_one_wins(admin, pair):
    first, second = pair

    def send(ids):
        return merge(type(admin)(admin.app, admin.key), *ids)

    answers = at_the_same_time(send, [(first, second), (second, first)])
    assert sorted(answer.status_code for answer in answers) == [200, 404]


def test_a_customer_who_was_read_before_the_merge_is_read_again(app, admin, pair, monkeypatch):
    monkeypatch.setattr(database, "MAX_ATTEMPTS", 2)
    kept, removed = pair
    with app.app_context():
        stale = [
            (coupons_by_code(fetch, [code], customer)[code], customer)
            for code, customer in (
                ("a", find_customer(fetch, 0, REMOVED, param="")),
                ("b", find_customer(fetch, kept, "", param="")),
            )
        ]
    assert merge(admin, kept, removed).status_code == 200
    reserve(admin, "a", customer_id=kept)
    reserve(admin, "b", email=REMOVED)
    for coupon, customer in stale:

        def take(session, coupon=coupon, customer=customer):
            take_slot(session, coupon, customer, confirmed=False, param="")

        with app.app_context(), pytest.raises(TryAgain):
            run_in_transaction(take)
