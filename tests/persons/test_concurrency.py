"""Limits and statistics hold while accounts are merged and ordered for (people 6)."""

from concurrent.futures import ThreadPoolExecutor, wait

import pytest

from app.db import session as database
from app.db.errors import TryAgain
from app.db.read_pool import fetch
from app.db.session import run_in_transaction
from app.services.coupons.customers import find_customer
from app.services.coupons.terms import coupons_by_code, find_coupons
from app.services.customers import columns, traces
from app.services.redemptions.slots import take_slot
from tests.api_client import at_the_same_time, codes
from tests.persons.test_merge import merge
from tests.redemptions.calls import move, reserve

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


def test_a_guest_whose_accounts_were_not_read_is_read_again(
    app, admin, pair, make_coupon, monkeypatch
):
    """A limit per customer that a coupon gets in between counts the uses by a merged account."""
    monkeypatch.setattr(database, "MAX_ATTEMPTS", 2)
    kept, removed = pair
    coupon = make_coupon(code="free", usage_limit=5)
    reserve(admin, "free", customer_id=kept)
    assert merge(admin, kept, removed).status_code == 200
    with app.app_context():
        guest, found = find_coupons(fetch, ["free"], 0, REMOVED, param="")
    changed = {"coupon": {"usage_limit_per_user": 1}}
    assert admin.put(f"/coupons/{coupon['id']}", changed).status_code == 200

    def take(session):
        take_slot(session, found["free"], guest, confirmed=False, param="")

    with app.app_context(), pytest.raises(TryAgain):
        run_in_transaction(take)


def test_a_customer_who_was_read_before_an_address_moved_is_read_again(
    app, admin, pair, make_customer, monkeypatch
):
    """A use by the new owner of an address is counted, also if it was read before its owner."""
    monkeypatch.setattr(database, "MAX_ATTEMPTS", 2)
    kept, removed = pair
    assert merge(admin, kept, removed).status_code == 200
    other, new = make_customer(email=REMOVED)["id"], "new@example.com"
    with app.app_context():
        stale = [
            (coupons_by_code(fetch, [code], customer)[code], customer)
            for code, customer in (
                ("a", find_customer(fetch, 0, new, param="")),
                ("b", find_customer(fetch, kept, "", param="")),
                ("c", find_customer(fetch, kept, "", param="")),
            )
        ]
    for account, email in ((other, "other@example.com"), (kept, new)):
        change = {"customer": {"email": email}}
        assert admin.put(f"/customers/{account}", change).status_code == 200
    reserve(admin, "a", customer_id=kept)  # has taken the address of the guest
    reserve(admin, "b", email=new)
    reserve(admin, "c", email=REMOVED)  # which no other account has any more
    for coupon, customer in stale:

        def take(session, coupon=coupon, customer=customer):
            take_slot(session, coupon, customer, confirmed=False, param="")

        with app.app_context(), pytest.raises(TryAgain):
            run_in_transaction(take)


def delete(client, customer_id):
    return client.delete(f"/customers/{customer_id}", {"force": "true"})


def erase(client, customer_id):
    return client.post("/persons/erase", {"person": {"customer_id": customer_id}})


@pytest.mark.parametrize("remove", [delete, erase])
@pytest.mark.parametrize(
    ("place", "last_step"), [(traces, "erase_refused_carts"), (columns, "with_computed")]
)
def test_an_address_is_taken_before_or_after_the_removal_of_its_old_account(
    admin, make_customer, make_coupon, monkeypatch, remove, place, last_step
):
    """Another account takes the address of a merged account while the kept account is removed.

    The first transaction waits at its last step until the second one waits for it or has ended.
    """
    make_coupon(code="summer")
    use = reserve(admin, "summer", "cart", email=REMOVED)
    kept, removed, other = (
        make_customer(email=email)["id"] for email in (KEPT, REMOVED, "other@example.com")
    )
    assert merge(admin, kept, removed).status_code == 200

    def take(client, _):
        return client.put(f"/customers/{other}", {"customer": {"email": REMOVED}})

    first, second = (remove, take) if place is traces else (take, remove)
    begun = []
    step = getattr(place, last_step)
    with ThreadPoolExecutor() as pool:

        def step_beside_the_second(*args):
            if not begun:
                begun.append(pool.submit(second, type(admin)(admin.app, admin.key), kept))
                wait(begun, timeout=0.3)
            return step(*args)

        monkeypatch.setattr(place, last_step, step_beside_the_second)
        assert first(admin, kept).status_code == 200
        assert begun[0].result().status_code == 200
    assert admin.get(f"/customers/{other}").get_json()["customer"]["email"] == REMOVED
    types = {"type": "customer.updated,customer.deleted", "filter[order]": "desc"}
    last, before = admin.get("/events", {**types, "limit": 2}).get_json()["events"]
    assert {last["type"], before["type"]} == {"customer.updated", "customer.deleted"}
    # The uses of guests with the address belong to the account that had it then.
    shown = admin.get(f"/redemptions/{use['id']}").get_json()["redemption"]["email"]
    assert shown == ("" if last["type"] == "customer.updated" else REMOVED)


@pytest.mark.parametrize("remove", [delete, erase])
def test_an_account_leaves_an_address_before_or_after_the_removal_of_its_old_account(
    admin, make_customer, make_coupon, monkeypatch, remove
):
    """The removal keeps the uses of an address that another account has, until it is committed."""
    make_coupon(code="summer")
    use = reserve(admin, "summer", "cart", email=REMOVED)
    kept, removed, other = (
        make_customer(email=email)["id"] for email in (KEPT, REMOVED, "other@example.com")
    )
    assert merge(admin, kept, removed).status_code == 200
    admin.put(f"/customers/{other}", {"customer": {"email": REMOVED}})
    begun = []
    step = traces.erase_refused_carts
    with ThreadPoolExecutor() as pool:

        def step_beside_the_second(*args):
            if not begun:
                client, left = type(admin)(admin.app, admin.key), {"email": "new@example.com"}
                begun.append(pool.submit(client.put, f"/customers/{other}", {"customer": left}))
                wait(begun, timeout=0.3)
            return step(*args)

        monkeypatch.setattr(traces, "erase_refused_carts", step_beside_the_second)
        assert remove(admin, kept).status_code == 200
        assert begun[0].result().status_code == 200
    types = {"type": "customer.updated,customer.deleted", "filter[order]": "desc"}
    last = admin.get("/events", {**types, "limit": 1}).get_json()["events"][0]
    assert (last["type"], last["resource_id"]) == ("customer.updated", other)
    assert admin.get(f"/redemptions/{use['id']}").get_json()["redemption"]["email"] == REMOVED


# On SQLite, one transaction writes at a time.
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("remove", [delete, erase])
def test_a_released_use_that_a_guest_takes_during_a_removal_is_the_guests(
    admin, make_customer, make_coupon, monkeypatch, remove
):
    """The removal has read the use as one of the account, before the guest has reserved it."""
    make_coupon(code="summer")
    customer_id = make_customer(email=KEPT)["id"]
    use = move(admin, reserve(admin, "summer", "cart", customer_id=customer_id), "release")
    lock_orders = traces._lock_orders

    def reserved_meanwhile(session, condition):
        if not begun:
            begun.append(None)
            client = type(admin)(admin.app, admin.key)
            with ThreadPoolExecutor() as pool:
                pool.submit(reserve, client, "summer", "cart", email="guest@example.com").result()
        return lock_orders(session, condition)

    begun = []

    def clear(*args):
        monkeypatch.setattr(traces, "_lock_orders", reserved_meanwhile)
        return done(*args)

    done = traces._clear
    monkeypatch.setattr(traces, "_clear", clear)
    assert remove(admin, customer_id).status_code == 200
    assert begun
    shown = admin.get(f"/redemptions/{use['id']}").get_json()["redemption"]
    assert (shown["status"], shown["email"]) == ("reserved", "guest@example.com")
