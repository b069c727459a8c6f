"""The replay of events of the shop: histories in which no promise is broken."""

import time
from types import SimpleNamespace

import pytest

from qa.histories.checkers.conditions import check_conditions
from qa.histories.checkers.coupons import CouponChecker
from qa.histories.checkers.records import RecordChecker
from qa.histories.generator import CONDITIONS
from qa.histories.history import Event, Operation, Segment
from qa.histories.snapshots import snapshot
from tests.redemptions.calls import post


def recorded(response, kind, body, *, invoked=0.0, returned=1000.0, **args):
    """A request, as a client records it."""
    request = response.request
    return Operation(
        0, kind, request.method, request.path, body, args, response.headers["X-Request-Id"],
        invoked=invoked, returned=returned, status=response.status_code,
        response=response.get_json(),
    )  # fmt: skip


def violations_of(events, *operations, redemptions=(), coupons=(), checker=None):
    """The violations in a segment. One event follows the other.

    It begins without orders, unless the checker has seen the segment before it.
    """
    state = {"coupons": {each["id"]: each for each in coupons}, "customers": {}}
    state["taken"] = time.time()
    state["redemptions"] = {each["id"]: each for each in redemptions}
    timed = [Event(each, float(number), number + 0.9) for number, each in enumerate(events)]
    segment = Segment(0, 0.0, time.time(), events=timed)
    segment.before = segment.after = state
    segment.operations = list(operations)
    if checker is None:
        checker = CouponChecker()
        checker.begin(state)
    return [violation.text for violation in checker.check(segment)]


EMAIL = "ann@example.com"
OF_ADDRESS = {"code": "summer", "customer_id": 0, "email": EMAIL, "expires_in": 900}


def reserve(admin, reference, person, **times):
    """Reserve a use of the coupon "summer"; return the operation."""
    body = {"redemption": {"code": "summer", "reference": reference, **person}}
    response = admin.post("/redemptions", body)
    return recorded(response, "reserve", body, **times, **OF_ADDRESS | {"email": ""} | person)


def limit_per_user(admin, coupon):
    """Limit a coupon to one use of a customer; return the operation."""
    change = {"coupon": {"usage_limit_per_user": 1}}
    response = admin.put(f"/coupons/{coupon['id']}", change)
    return recorded(response, "update_coupon", change, change=change["coupon"])


def stored_redemptions(admin):
    return admin.get("/redemptions").get_json()["redemptions"]


def assert_explained(admin, events, *operations, **more):
    """Assert that the events and the stored redemptions explain each operation."""
    found = violations_of(events, *operations, redemptions=stored_redemptions(admin), **more)
    assert found == []


def test_an_order_keeps_the_use_of_a_deleted_coupon_for_any_customer(
    admin, feed, make_coupon, make_order
):
    """A permanently deleted coupon has no limits any more (redemptions 6)."""
    coupon = make_coupon(code="summer")
    guests = [{"email": "ann@example.com"}, {"email": "bob@example.com"}]
    orders = [
        make_order(status="pending", billing_address=guest, coupon_lines=[{"code": "summer"}])
        for guest in guests
    ]
    limited = limit_per_user(admin, coupon)
    assert admin.delete(f"/coupons/{coupon['id']}?force=true").status_code == 200
    body = {"order": {"billing_address": guests[1]}}
    assert admin.put(f"/orders/{orders[0]['id']}", body).status_code == 200
    assert violations_of(feed(), limited) == []


def test_a_rejection_is_explained_by_the_customer_that_the_order_had(
    admin, feed, make_coupon, make_customer, make_order
):
    """Later in the segment, the customer is deleted, and the order belongs to a guest."""
    make_coupon(code="summer", usage_limit_per_user=1)
    ann = make_customer(email="ann@example.com")["id"]
    reserved = reserve(admin, "a", {"customer_id": ann})
    path = f"/orders/{make_order(customer_id=ann, status='pending')['id']}"
    body = {"order": {"coupon_lines": [{"code": "summer"}]}}
    response = admin.put(path, body)
    assert response.status_code == 400
    events = feed()
    rejected = recorded(
        response, "change_coupons", body, invoked=len(events) - 0.5, returned=len(events) - 0.1,
        order=int(path.rpartition("/")[2]), codes=["summer"],
    )  # fmt: skip
    admin.delete(f"/customers/{ann}")
    admin.put(path, {"order": {"note": "later"}})
    assert_explained(admin, [*events, *feed()], reserved, rejected)


def test_a_rejection_is_explained_by_a_coupon_that_was_renamed_meanwhile(admin, feed, make_coupon):
    coupon = make_coupon(code="summer", usage_limit=1)
    change = {"coupon": {"code": "winter"}}
    renaming = admin.put(f"/coupons/{coupon['id']}", change)
    renamed = recorded(renaming, "update_coupon", change, change=change["coupon"])
    args = {"customer_id": 0, "email": "", "expires_in": 900}
    uses = [{"redemption": {"code": "winter", "reference": each}} for each in "ab"]
    reserved = recorded(admin.post("/redemptions", uses[0]), "reserve", uses[0], **args)
    # It has found the coupon by its first code, and waited for it.
    rejected = recorded(admin.post("/redemptions", uses[1]), "reserve", uses[1], **args)
    rejected.args |= {"code": "summer"}
    renamed.returned, reserved.invoked = 1.5, 2.0  # one after the other
    assert rejected.reasons == {"usage_limit"}
    assert_explained(admin, feed(), renamed, reserved, rejected)


def test_a_recorded_coupon_is_rejected_because_of_a_use_that_was_taken_in_the_trash(
    admin, feed, make_coupon, make_order
):
    coupon = make_coupon(code="winter", usage_limit=1)
    path = f"/coupons/{coupon['id']}"
    line = {"code": "winter", "amount": "0.77"}
    order = make_order(status="pending", coupon_lines=[line])
    moves = []
    for status in ("cancelled", "on-hold"):
        body = {"order": {"status": status}}
        moved = admin.put(f"/orders/{order['id']}", body)
        moves.append(recorded(moved, "set_status", body, order=order["id"]))
        admin.delete(path)  # an order takes its use again, also of a coupon in the trash
    events = feed()
    assert admin.post(f"{path}/restore").status_code == 200
    new = {"order": {"coupon_lines": [line]}}
    rejected = recorded(admin.post("/orders", new), "create_order", new, codes=["winter"])
    assert rejected.reasons == {"usage_limit"}
    # It has found the coupon before the trash, when the use had been released.
    released = [event["type"] for event in events].index("coupon.released")
    rejected.invoked, rejected.returned = released + 0.95, len(events) - 0.5
    events += feed()
    assert_explained(admin, events, *moves, rejected)


def test_a_new_customer_of_an_order_uses_the_coupon_after_a_reservation_has_expired(
    admin, expire, feed, make_coupon, make_order
):
    """The request stores the expiry; its event follows the one of the order."""
    make_coupon(code="summer", usage_limit_per_user=1)
    order = make_order(status="pending", coupon_lines=[{"code": "summer"}])
    reserved = reserve(admin, "a", {"email": EMAIL})
    reserved.response["redemption"]["expires_at"] = expire(reserved.response["redemption"])
    body = {"order": {"billing_address": {"email": "ann@example.com"}}}
    response = admin.put(f"/orders/{order['id']}", body)
    moved = recorded(response, "change_customer", body, email="ann@example.com", customer_id=0)
    events = feed()
    assert [event["type"] for event in events[-2:]] == ["order.updated", "coupon.released"]
    assert_explained(admin, events, reserved, moved)


def test_a_rejection_is_explained_by_an_order_of_a_deleted_customer(
    admin, feed, make_coupon, make_customer, make_order
):
    """The use counts for the address of the account, also after an update of the order."""
    make_coupon(code="summer", usage_limit_per_user=1)
    ann = make_customer(email="ann@example.com")["id"]
    order = make_order(customer_id=ann, status="pending", coupon_lines=[{"code": "summer"}])
    events = feed()
    assert admin.delete(f"/customers/{ann}").status_code == 200
    assert admin.put(f"/orders/{order['id']}", {"order": {"note": "a"}}).status_code == 200
    events += feed()
    late = {"invoked": len(events) + 1.0, "returned": len(events) + 2.0}
    rejected = reserve(admin, "a", {"email": EMAIL}, **late)
    assert rejected.reasons == {"usage_limit_per_user"}
    assert_explained(admin, events, rejected)


def test_an_update_without_an_address_keeps_that_of_a_deleted_customer(
    admin, feed, make_coupon, make_customer, make_order
):
    """The use counted for the address before, so the limit per user is not checked again."""
    coupon = make_coupon(code="summer")
    ann = make_customer(email="ann@example.com")["id"]
    address = {"email": "ann@example.com"}
    lines = [{"code": "summer"}]
    given = {"status": "pending", "coupon_lines": lines, "billing_address": address}
    order = make_order(customer_id=ann, **given)
    make_order(**given)
    limited = limit_per_user(admin, coupon)
    events = feed()
    assert admin.delete(f"/customers/{ann}").status_code == 200
    body = {"order": {"billing_address": {"email": ""}, "customer_id": 0}}
    response = admin.put(f"/orders/{order['id']}", body)
    assert response.status_code == 200
    moved = recorded(response, "change_customer", body, email="", customer_id=0)
    assert_explained(admin, [*events, *feed()], limited, moved)


def test_a_use_of_an_erased_address_counts_for_its_next_customer_only(
    admin, feed, make_coupon, make_customer, make_order
):
    """It counts for the erased address as before, although the limit is reached there."""
    coupon = make_coupon(code="summer")
    ann = make_customer(email=EMAIL)["id"]
    bob = make_customer(email="bob@example.com")["id"]
    order = make_order(customer_id=ann, status="pending", coupon_lines=[{"code": "summer"}])
    operations = [reserve(admin, "a", {"customer_id": ann})]
    events = feed()
    assert admin.delete(f"/customers/{ann}").status_code == 200
    operations.append(limit_per_user(admin, coupon))
    body = {"order": {"customer_id": bob}}
    response = admin.put(f"/orders/{order['id']}", body)
    assert response.status_code == 200
    operations.append(recorded(response, "change_customer", body, customer_id=bob, email=""))
    events += feed()
    assert_explained(admin, events, *operations)


def test_a_rejection_is_explained_by_the_address_of_the_deleted_customer_of_an_order(
    admin, feed, make_coupon, make_customer, make_order
):
    """An order in the trash takes its use again, beside another use of the deleted customer."""
    make_coupon(code="summer", usage_limit_per_user=1)
    ann = make_customer(email="ann@example.com")["id"]
    order = make_order(customer_id=ann, status="pending", coupon_lines=[{"code": "summer"}])
    path = f"/orders/{order['id']}"
    trashed = recorded(admin.delete(path), "trash_order", None, order=order["id"])
    reserved = reserve(admin, "a", {"customer_id": ann})
    events = feed()
    assert admin.delete(f"/customers/{ann}").status_code == 200
    events += feed()
    response = admin.post(f"{path}/restore")
    late = {"invoked": len(events) + 1.0, "returned": len(events) + 2.0}
    codes = ["summer"]
    rejected = recorded(response, "restore_order", None, **late, order=order["id"], codes=codes)
    assert rejected.reasons == {"usage_limit_per_user"}
    assert_explained(admin, events, trashed, reserved, rejected)


def test_a_conditional_delete_of_an_order_releases_its_coupons(
    admin, feed, make_coupon, make_order
):
    """The event of a coupon is not a conditional write of this coupon."""
    coupon = make_coupon(code="summer")
    order = make_order(status="pending", coupon_lines=[{"code": "summer"}])
    coupons = {coupon["id"]: admin.get(f"/coupons/{coupon['id']}").get_json()["coupon"]}
    feed()
    path = f"/orders/{order['id']}"
    args = {"order": order["id"], "seen": order}
    trashed = recorded(admin.delete(path), "conditional_trash", None, **args)
    segment = Segment(0, 0.0, time.time(), events=[Event(each, 1.0, 2.0) for each in feed()])
    segment.before = {"orders": {order["id"]: order}, "coupons": coupons, "customers": {}}
    segment.after = segment.before | {"orders": {}, "redemptions": {}}
    segment.operations = [trashed]
    assert [event.type for event in segment.events] == ["order.deleted", "coupon.released"]
    assert [each.text for each in RecordChecker().check(segment)] == []
    other = order | {"created_at": "2020-01-01T00:00:00Z"}
    trashed.args["seen"] = other
    (violation,) = RecordChecker().check(segment)
    assert violation.text == (
        f"order {order['id']}: a conditional write to another state than the one seen"
    )


def test_a_confirmation_is_rejected_because_of_the_address_of_a_deleted_customer(
    admin, expire, feed, make_coupon, make_customer
):
    """The reservation was released before the deletion. It counts for the address when confirmed."""
    make_coupon(code="summer", usage_limit_per_user=1)
    ann = make_customer(email=EMAIL)["id"]
    operations = [reserve(admin, "a", {"customer_id": ann})]
    first = operations[0].response["redemption"]
    first["expires_at"] = expire(first)
    operations.append(reserve(admin, "b", {"email": EMAIL}))
    events = feed()
    assert admin.delete(f"/customers/{ann}").status_code == 200
    events += feed()
    late = {"invoked": len(events) + 1.0, "returned": len(events) + 2.0}
    response = admin.post(f"/redemptions/{first['id']}/confirm")
    operations.append(recorded(response, "confirm", None, **late, redemption=first["id"]))
    assert operations[-1].reasons == {"usage_limit_per_user"}
    assert_explained(admin, events, *operations)


def test_a_reference_of_a_deleted_customer_belongs_to_who_uses_it_again(
    admin, feed, make_coupon, make_customer
):
    make_coupon(code="summer", usage_limit_per_user=1)
    ann, bob = (make_customer(email=each)["id"] for each in (EMAIL, "bob@example.com"))
    operations = [reserve(admin, "a", {"customer_id": ann})]
    first = operations[0].response["redemption"]["id"]
    releasing = admin.post(f"/redemptions/{first}/release")
    operations.append(recorded(releasing, "release", None, redemption=first))
    events = feed()
    assert admin.delete(f"/customers/{ann}").status_code == 200
    operations.append(reserve(admin, "b", {"email": EMAIL}))
    operations.append(reserve(admin, "a", {"customer_id": bob}))
    assert [each.status for each in operations] == [201, 200, 201, 200]
    events += feed()
    assert_explained(admin, events, *operations)


def test_a_guest_reserves_during_the_deletion_of_an_account_with_the_same_address(
    admin, expire, feed, make_coupon, make_customer
):
    """The deletion has not seen the use, which keeps its address, and its event comes later."""
    make_coupon(code="summer", usage_limit_per_user=1)
    ann = make_customer(email=EMAIL)["id"]
    events = feed()
    response = admin.delete(f"/customers/{ann}")
    deletion = recorded(response, "delete_customer", None, customer=ann)
    deleted = feed()
    operations = [deletion, reserve(admin, "a", {"email": EMAIL})]
    first = operations[1].response["redemption"]
    first["expires_at"] = expire(first)
    events += feed() + deleted
    checker = CouponChecker()
    checker.begin({"coupons": {}, "customers": {}})
    found = violations_of(
        events, *operations, redemptions=stored_redemptions(admin), checker=checker
    )
    operations = [reserve(admin, "b", {"email": EMAIL})]
    events = feed()
    late = {"invoked": len(events) + 1.0, "returned": len(events) + 2.0}
    response = admin.post(f"/redemptions/{first['id']}/confirm")
    operations.append(recorded(response, "confirm", None, **late, redemption=first["id"]))
    assert operations[-1].reasons == {"usage_limit_per_user"}
    redemptions = stored_redemptions(admin)
    found += violations_of(events, *operations, redemptions=redemptions, checker=checker)
    assert found == []


def test_an_account_keeps_its_address_if_another_account_has_the_new_one(
    admin, feed, make_coupon, make_customer
):
    """The response was lost, and the deletion of the account removes the address from the event."""
    make_coupon(code="summer", usage_limit_per_user=1)
    make_customer(email=EMAIL)
    bob = make_customer(email="bob@example.com")["id"]
    operations = [reserve(admin, "a", {"email": EMAIL})]
    events = feed()
    body = {"customer": {"email": EMAIL}}
    changing = admin.put(f"/customers/{bob}", body)
    assert changing.get_json()["customer"]["email"] == "bob@example.com"
    changed = recorded(changing, "change_email", body, customer=bob)
    changed.status = changed.response = None
    after = {"invoked": len(events) + 0.95, "returned": len(events) + 1.95}  # of the change
    operations += [changed, reserve(admin, "b", {"customer_id": bob}, **after)]
    assert operations[-1].status == 201
    assert admin.delete(f"/customers/{bob}").status_code == 200
    events += feed()
    assert_explained(admin, events, *operations)


def test_an_order_without_an_address_counts_erased_uses_of_its_deleted_customer(
    admin, feed, make_coupon, make_customer, make_order
):
    """The shop cannot know that another account has the address now (docs/reliability.md)."""
    make_coupon(code="summer", usage_limit_per_user=1)
    ann = make_customer(email=EMAIL)["id"]
    path = f"/orders/{make_order(customer_id=ann, status='pending')['id']}"
    body = {"order": {"coupon_lines": [{"code": "summer"}]}}
    added = recorded(admin.put(path, body), "change_coupons", body)
    trashed = recorded(admin.delete(path), "trash_order", None)
    events = feed()
    assert admin.delete(f"/customers/{ann}").status_code == 200
    new = make_customer(email=EMAIL)["id"]
    operations = [added, trashed, reserve(admin, "a", {"customer_id": new})]
    events += feed()
    restored = admin.post(f"{path}/restore")
    operations.append(recorded(restored, "restore_order", None, invoked=len(events) - 0.05))
    assert [each.status for each in operations] == [200, 200, 201, 200]
    events += feed()
    assert_explained(admin, events, *operations)


def test_an_order_without_a_use_of_its_coupon_is_found(admin, feed, make_coupon, make_order):
    coupon = make_coupon(code="summer")
    body = {"order": {"status": "processing", "coupon_lines": [{"code": "summer"}]}}
    feed()
    created = recorded(admin.post("/orders", body), "create_order", body, codes=["summer"])
    assert created.status == 201
    events = [event for event in feed() if event["type"] != "coupon.redeemed"]
    found = violations_of(events, created, coupons=[coupon])
    assert found[0] == "an order that is processing has no use of ['summer']"


def test_a_reference_returns_its_reservation_for_another_address(admin, make_coupon):
    make_coupon(code="members", **CONDITIONS["members"])
    body = {"code": "members", "reference": "a"}
    segment = Segment(0, 0.0, time.time())
    for email, status in (("member@example.com", 201), ("", 200)):
        use = {"redemption": {**body, "email": email}}
        response = admin.post("/redemptions", use)
        assert response.status_code == status
        args = {"code": "members", "customer_id": 0, "email": email}
        segment.operations.append(recorded(response, "reserve", use, **args))
    assert check_conditions(segment) == []
    segment.operations[1].status = 201
    assert [each.checker for each in check_conditions(segment)] == ["conditions"]


def test_a_reservation_of_a_campaign_can_expire_while_the_state_is_read(
    admin, feed, make_coupon, expire
):
    """The figures of its campaign are read after its uses, or they would have one more."""
    body = {"campaign": {"name": "Mailing", "usage_limit": 3}}
    campaign = admin.post("/campaigns", body).get_json()["campaign"]
    coupon = make_coupon(code="summer", campaign_id=campaign["id"])
    feed()
    began, response = time.time(), post(admin, expires_in=900)
    known = {"campaigns": {campaign["id"]: campaign}, "coupons": {coupon["id"]: coupon}}
    checker = CouponChecker()
    checker.begin(known | {"customers": {}})

    def get(path):
        body = admin.get(path).get_json()
        if path == "/campaigns" or "[campaign]" in path:
            expire(response.get_json()["redemption"])
        return body

    state = snapshot(SimpleNamespace(get=get), began) | {"began": began, "taken": began + 1000}
    segment = Segment(0, 0.0, began, events=[Event(each, 0.0, 1.0) for each in feed()], after=state)
    assert [each.text for each in checker.check(segment)] == []


@pytest.mark.parametrize("in_one_segment", [True, False])
def test_the_campaign_of_a_deleted_coupon_rejects_a_use(
    admin, feed, make_coupon, expire, in_one_segment
):
    """The deleted coupon has no limits, and what is known of its uses still names it."""
    body = {"campaign": {"name": "Mailing", "usage_limit": 1}}
    campaign = admin.post("/campaigns", body).get_json()["campaign"]["id"]
    summer = make_coupon(code="summer", campaign_id=campaign, usage_limit_per_user=1)
    make_coupon(code="winter", campaign_id=campaign)
    who = {"customer_id": 0, "email": EMAIL}
    first = recorded(post(admin, **who), "reserve", None, code="summer", expires_in=3, **who)
    use = first.response["redemption"]
    use["expires_at"] = expire(use)
    second = recorded(
        post(admin, "winter"), "reserve", None, code="winter", customer_id=0, email=""
    )
    assert (first.status, second.status) == (201, 201)
    assert admin.delete(f"/coupons/{summer['id']}?force=true").status_code == 200
    events, checker = feed(), CouponChecker()
    checker.begin({"coupons": {}, "customers": {}})
    operations, state = [first, second], {"redemptions": stored_redemptions(admin)}
    if not in_one_segment:
        assert violations_of(events, *operations, checker=checker, **state) == []
        events, operations = [], []
    confirm = admin.post(f"/redemptions/{use['id']}/confirm")
    confirmed = recorded(confirm, "confirm", None, redemption=use["id"], code="summer")
    confirmed.invoked = len(events) - 0.05
    assert confirmed.reasons == {"usage_limit"}
    assert violations_of(events, *operations, confirmed, checker=checker, **state) == []


@pytest.mark.slow
def test_an_order_of_a_bulk_request_had_the_address_that_its_events_lost(
    admin, feed, make_coupon, make_customer
):
    """The deletion of a later customer of an order removes the guest's address from its events."""
    make_coupon(code="summer", usage_limit_per_user=1)
    bob = make_customer(email="bob@example.com")["id"]
    guest = {"billing_address": {"email": EMAIL}}
    order = {**guest, "order_key": "a", "coupon_lines": [{"code": "summer"}]}
    bulk = {"orders": [order]}
    created = recorded(admin.post("/orders/bulk", bulk), "bulk_orders", bulk, codes=["summer"])
    id_ = created.response["orders"][0]["id"]
    again = {"order": {**guest, "coupon_lines": [{"code": "summer"}]}}
    response = admin.post("/orders", again)
    number = len(admin.get("/events").get_json()["events"])
    during = {"invoked": number - 0.05, "returned": number - 0.01}
    args = {"codes": ["summer"], "customer_id": 0, "email": EMAIL}
    rejected = recorded(response, "create_order", again, **during, **args)
    assert rejected.reasons == {"usage_limit_per_user"}
    change = {"order": {"customer_id": bob, "billing_address": {"email": ""}}}
    response = admin.put(f"/orders/{id_}", change)
    changed = recorded(response, "change_customer", change, customer_id=bob, email="")
    assert admin.delete(f"/customers/{bob}").status_code == 200
    events = admin.get("/events").get_json()["events"]
    assert EMAIL not in str(events)
    assert_explained(admin, events, created, rejected, changed)


def test_uses_follow_their_customer_in_a_merge_a_claim_and_an_erasure(
    admin, feed, make_coupon, make_customer, make_order
):
    """The limit per customer counts both accounts, then the hash of the erased addresses."""
    kept, old = (make_customer(email=f"{name}@example.com")["id"] for name in ("kept", "old"))
    make_coupon(code="once", usage_limit_per_user=1)
    by_id = {"code": "once", "customer_id": old, "email": ""}
    operations = [recorded(post(admin, "once", customer_id=old), "reserve", None, **by_id)]
    operations[0].args["expires_in"] = 900
    guest = {"email": "kept@example.com"}
    order = make_order(status="pending", billing_address=guest)
    of_account = make_order(status="pending", customer_id=old)

    def send(kind, path, body):
        operations.append(recorded(admin.post(path, body), kind, body))
        assert operations[-1].is_done, operations[-1]

    def reject(email):
        """A guest with the address is rejected, after all events so far."""
        number = len(admin.get("/events").get_json()["events"])
        args = {"code": "once", "customer_id": 0, "email": email, "expires_in": 900}
        rejected = recorded(post(admin, "once", email, email=email), "reserve", None, **args)
        rejected.invoked, rejected.returned = number - 0.05, number - 0.01
        assert rejected.reasons == {"usage_limit_per_user"}
        operations.append(rejected)

    send("merge", f"/customers/{kept}/merge", {"merge": {"customer_id": old}})
    reject("old@example.com")
    reject("kept@example.com")
    send("claim", f"/customers/{kept}/claim", {"claim": {}})
    admin.put(f"/orders/{of_account['id']}", {"order": {"status": "completed"}})
    admin.put(f"/orders/{order['id']}", {"order": {"status": "completed"}})
    redemptions = stored_redemptions(admin)
    before = admin.get("/events").get_json()["events"]
    assert violations_of(before, *operations, redemptions=redemptions) == []
    without = [each for each in before if each["type"] != "customer.merged"]
    found = violations_of(without, *operations, redemptions=redemptions)
    assert any("no coupon had reached usage_limit_per_user" in text for text in found), found
    send("erase", "/persons/erase", {"person": {"customer_id": kept}})
    reject("old@example.com")
    query = {"filter[after]": before[-1]["id"]}
    events = [*before, *admin.get("/events", query).get_json()["events"]]
    assert_explained(admin, events, *operations)


def sender(admin, operations):
    """Return a function that sends a request and adds it to the operations."""

    def send(kind, method, path, body=None):
        response = admin.request(method, path, json=body)
        operations.append(recorded(response, kind, body))
        assert operations[-1].is_done, operations[-1]

    return send


@pytest.mark.parametrize("status", ["pending", "cancelled"])
def test_a_claim_moves_the_uses_of_an_order(admin, make_coupon, make_customer, make_order, status):
    """Also those that it has released. They no longer belong to the guest with the address."""
    make_coupon(code="summer")
    guest = {"email": "guest@example.com"}
    owner = make_customer(**guest)["id"]
    lines = {"coupon_lines": [{"code": "summer"}]}
    order = make_order(status="pending", billing_address=guest, **lines)["id"]
    operations = []
    send = sender(admin, operations)
    send("set_status", "PUT", f"/orders/{order}", {"order": {"status": status}})
    send("claim", "POST", f"/customers/{owner}/claim", {"claim": {}})
    new = {"customer": {"email": "new@example.com"}}
    send("change_email", "PUT", f"/customers/{owner}", new)
    send("create_customer", "POST", "/customers", {"customer": guest})
    other = operations[-1].response["customer"]["id"]
    assert admin.delete(f"/customers/{other}").status_code == 200
    send("set_status", "PUT", f"/orders/{order}", {"order": {"status": "completed"}})
    redemptions = stored_redemptions(admin)
    assert [(each["customer_id"], each["email"]) for each in redemptions] == [
        (owner, "guest@example.com")
    ]
    events = admin.get("/events?filter[limit]=100").get_json()["events"]
    assert violations_of(events, *operations, redemptions=redemptions) == []


def test_an_erased_order_takes_a_use_again_that_it_had_for_another_guest(
    admin, make_coupon, make_order
):
    """The use still counts for the address that it had when it was released."""
    make_coupon(code="once", usage_limit_per_user=1)
    lines = {"coupon_lines": [{"code": "once"}]}
    guest = {"email": "before@example.com"}
    order = make_order(status="pending", billing_address=guest, **lines)["id"]
    operations = []
    send = sender(admin, operations)
    send("set_status", "PUT", f"/orders/{order}", {"order": {"status": "cancelled"}})
    person = {"email": "after@example.com"}
    send("change_customer", "PUT", f"/orders/{order}", {"order": {"billing_address": person}})
    send("erase", "POST", "/persons/erase", {"person": person})
    send("set_status", "PUT", f"/orders/{order}", {"order": {"status": "completed"}})
    args = {"code": "once", "customer_id": 0, "email": guest["email"], "expires_in": 900}
    rejected = recorded(post(admin, "once", email=guest["email"]), "reserve", None, **args)
    assert rejected.reasons == {"usage_limit_per_user"}
    events, redemptions = (
        admin.get("/events?filter[limit]=100").get_json()["events"],
        stored_redemptions(admin),
    )
    rejected.invoked = len(events) - 0.05
    found = violations_of(events, *operations, rejected, redemptions=redemptions)
    assert found == []


def test_a_deletion_erases_the_uses_of_addresses_that_another_account_takes_later(
    admin, make_coupon, make_customer
):
    """The addresses of merged accounts count until the account with them is deleted."""
    kept, old = (make_customer(email=f"{name}@example.com")["id"] for name in ("kept", "old"))
    make_coupon(code="once")
    guest = {"code": "once", "customer_id": 0, "email": "old@example.com", "expires_in": 900}
    operations = [recorded(post(admin, "once", email=guest["email"]), "reserve", None, **guest)]
    merge = {"merge": {"customer_id": old}}
    response = admin.post(f"/customers/{kept}/merge", merge)
    operations.append(recorded(response, "merge", merge))
    before = admin.get("/events").get_json()["events"]
    assert admin.delete(f"/customers/{kept}").status_code == 200
    make_customer(email="old@example.com")
    query = {"filter[after]": before[-1]["id"]}
    events = [*before, *admin.get("/events", query).get_json()["events"]]
    redemptions = stored_redemptions(admin)
    assert [each["email"] for each in redemptions] == [""]
    assert violations_of(events, *operations, redemptions=redemptions) == []


def test_the_address_of_a_merged_account_is_not_that_of_the_customer(
    admin, make_coupon, make_customer, make_order
):
    """A use that counts for it is taken again while another account has it."""
    kept, old = (make_customer(email=f"{name}@example.com")["id"] for name in ("kept", "old"))
    make_coupon(code="once", usage_limit_per_user=1)
    lines = {"coupon_lines": [{"code": "once"}]}
    order = make_order(status="pending", customer_id=old, **lines)["id"]
    path = f"/orders/{order}"
    operations = [recorded(admin.delete(path), "trash_order", None, order=order)]
    merge = {"merge": {"customer_id": old}}
    operations.append(recorded(admin.post(f"/customers/{kept}/merge", merge), "merge", merge))
    taken = make_customer(email="old@example.com")["id"]
    use = {"code": "once", "customer_id": taken, "email": "", "expires_in": 900}
    response = post(admin, "once", customer_id=taken)
    operations.append(recorded(response, "reserve", None, **use))
    number = len(admin.get("/events", {"filter[limit]": 100}).get_json()["events"])
    response = admin.post(f"{path}/restore")
    operations.append(recorded(response, "restore_order", None, invoked=number - 0.05, order=order))
    assert response.status_code == 200
    events = admin.get("/events", {"filter[limit]": 100}).get_json()["events"]
    assert_explained(admin, events, *operations)


@pytest.mark.parametrize(("invoked", "violations"), [(3.95, 0), (900.0, 1)])
def test_a_use_and_a_merge_at_the_same_time(admin, make_coupon, make_customer, invoked, violations):
    """The use did not see the merge, whose event is before that of the use."""
    kept, old = (make_customer(email=f"{name}@example.com")["id"] for name in ("kept", "old"))
    make_coupon(code="once", usage_limit_per_user=1)
    given = (
        {"code": "once", "customer_id": old, "email": ""},
        {"code": "once", "customer_id": 0, "email": "kept@example.com"},
    )
    operations = [
        recorded(
            post(admin, reference=f"cart-{number}", **use), "reserve", None, expires_in=900, **use
        )
        for number, use in enumerate(given)
    ]
    operations[1].invoked = invoked
    before = admin.get("/events").get_json()["events"]
    merge = {"merge": {"customer_id": old}}
    operations.append(recorded(admin.post(f"/customers/{kept}/merge", merge), "merge", merge))
    after = admin.get("/events", {"filter[after]": before[-1]["id"]}).get_json()["events"]
    events = [*before[:-1], *after, before[-1]]
    found = violations_of(events, *operations, redemptions=stored_redemptions(admin))
    assert len([text for text in found if "beyond usage_limit_per_user" in text]) == violations
