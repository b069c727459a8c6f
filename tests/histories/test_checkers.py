"""The checkers: a recorded history with one altered response is rejected by each of them.

The history is stored, because what happens in a run differs from machine to machine, and an
alteration needs certain operations. This command records it again::

    make histories ARGS="--database sqlite --seed 5 --seconds 14 --no-faults \\
        --save tests/histories/recorded.json.gz"
"""

import copy
import pickle
from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from qa.histories import report
from qa.histories.checkers import check_recorded
from qa.histories.checkers.coupons import CouponChecker
from qa.histories.checkers.idempotency import IdempotencyChecker
from qa.histories.checkers.orders import HELD
from qa.histories.checkers.records import RecordChecker
from qa.histories.history import Operation, dump, load

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def recorded():
    """The history of a run without faults."""
    segments = load(Path(__file__).with_name("recorded.json.gz").read_bytes())
    assert list(check_recorded(segments)) == []
    return segments


def is_rejected(segments, checker):
    return any(violation.checker == checker for violation in check_recorded(segments))


def operations(segments, *kinds):
    """The successful operations of some kinds, each with its segment."""
    return [
        (segment, each)
        for segment in segments
        for each in segment.operations
        if each.kind in kinds and each.is_done and not each.replayed
    ]


def replayed(segments, *kinds):
    """The first operation of some kinds whose response is that of an earlier one."""
    return next(
        each
        for segment in segments
        for each in segment.operations
        if each.replayed and each.kind in kinds
    )


def events(segments, type_):
    return [
        (segment, each) for segment in segments for each in segment.events if each.type == type_
    ]


def sales(segments):
    """The reports of sales."""
    return [
        query["result"]["sales"]
        for segment in segments
        for query in segment.after["queries"]
        if query["path"].startswith("/reports/sales")
    ]


def alter_limit(segments):
    """A grant beyond the limit: all earlier records of a coupon with several uses have a lower one."""
    uses = Counter(event.data["resource_id"] for _, event in events(segments, "coupon.redeemed"))
    id_ = next(id_ for id_, _ in uses.most_common() if id_ in segments[0].before["coupons"])
    assert uses[id_] > 1
    state = segments[0].before["coupons"][id_]
    state["usage_limit"] = 1
    for each in segments:
        for other in each.events:
            if other.data["resource_id"] == state["id"] and other.data["resource"] == "coupon":
                coupon = other.data["data"]["coupon"]
                if "usage_limit" in coupon:
                    coupon["usage_limit"] = 1
                    coupon["usage_count"] = max(coupon["usage_count"], 0)


def alter_usage_count(segments):
    """A count that the feed does not explain, of a coupon whose uses are in the feed."""
    coupons = segments[-1].after["coupons"]
    used = [event.data["resource_id"] for _, event in events(segments, "coupon.redeemed")]
    coupons[next(id_ for id_ in used if id_ in coupons)]["usage_count"] += 1


def alter_evaluation(segments):
    """A coupon without a limit per customer is rejected because of one."""
    result = next(
        each
        for _, operation in operations(segments, "evaluate")
        for each in operation.response["evaluation"]["coupons"]
        if each["applicable"]
    )
    reasons = ("usage_limit", "usage_limit", "usage_limit_per_user")
    result["reasons"] = [{"code": code, "message": ""} for code in reasons]


def alter_order(segments):
    order = next(iter(segments[-1].after["orders"].values()))
    order["total"] = "0.01"


def alter_status(segments):
    """An order without the use that its status requires."""
    state = segments[-1].after
    redemption_id, order_id = next(
        (id_, each["order_id"])
        for id_, each in state["redemptions"].items()
        if each["status"] == "confirmed"
        and HELD.get(state["orders"].get(each["order_id"], {}).get("status")) == "confirmed"
    )
    state["redemptions"].pop(redemption_id)
    for line in state["orders"][order_id]["coupon_lines"]:
        line["amount"] = "1.00"


def alter_statistics(segments):
    customer = next(iter(segments[-1].after["customers"].values()))
    customer["orders_count"] += 1


def alter_query(segments):
    query = segments[-1].after["queries"][0]
    query["result"] = query["result"] + 1 if isinstance(query["result"], int) else [0]


def lose_event(segments):
    segment, event = events(segments, "order.created")[0]
    segment.events.remove(event)


def repeat_event(segments):
    segment, event = events(segments, "order.created")[0]
    segment.events.append(event)


def reorder_deliveries(segments):
    segments[-1].delivered += [(9_000_002, "order", 1), (9_000_001, "order", 1)]


def alter_repetition(segments):
    operation = replayed(segments, "reserve", "create_order")
    next(iter(operation.response.values()))["id"] += 1


def alter_read(segments):
    _, operation = operations(segments, "read_order")[0]
    operation.response["order"]["total"] = "0.01"


def alter_list(segments):
    lists = (each.response["coupons"] for _, each in operations(segments, "list_coupons"))
    next(filter(None, lists))[0]["usage_limit"] = 77


def lose_note(segments):
    notes = segments[-1].after["notes"]
    next(each for each in notes.values() if any("status changed" in n["note"] for n in each)).pop()


def keep_tag(segments):
    """The tag of a record that has changed is the one from before."""
    segment = segments[-1]
    for path, tag in segment.before["tags"].items():
        kind, id_ = path.strip("/").split("/")
        before, after = (state[kind].get(int(id_)) for state in (segment.before, segment.after))
        if before and after and before != after:
            segment.after["tags"][path] = tag
            return
    raise AssertionError("no change of a record with a tag")


def alter_report(segments):
    """A report of sales has one order more."""
    sales(segments)[0]["totals"]["orders"] += 1


def move_payment(segments):
    """The time of payment of an order is another one after an update."""
    updates = (event for _, event in events(segments, "order.updated"))
    paid = next(each for each in updates if each.record["paid_at"])
    paid.data["data"]["order"]["paid_at"] = "2026-01-01T00:00:00Z"


def alter_owner(segments):
    """A redemption of an order belongs to somebody else."""
    state = segments[-1].after
    of_orders = [each for each in state["redemptions"].values() if each["order_id"]]
    next(each for each in of_orders if each["order_id"] in state["orders"])["email"] = "x@x"


def erase_address(segments):
    """A use of a guest shows no address, as if an account with it had been deleted."""
    next(
        each
        for segment in segments
        for each in segment.after["redemptions"].values()
        if each["email"]
        and not each["order_id"]
        and not each["customer_id"]
        and each["coupon_id"] in segment.after["coupons"]
    )["email"] = ""


def give_order_to_another(segments):
    """An order belongs to another customer than its events say."""
    state = segments[-1].after
    order = next(each for each in state["orders"].values() if each["customer_id"])
    order["customer_id"] = 0


def alter_address(segments):
    """An account has another address than the last change has given it."""
    id_ = events(segments, "customer.updated")[-1][1].data["resource_id"]
    segments[-1].after["customers"][id_]["email"] = "x@example.com"


def lose_merge(segments):
    """A merge without its event: its uses have an owner that the feed does not explain."""
    segment, event = events(segments, "customer.merged")[-1]
    segment.events.remove(event)


def lose_claim(segments):
    """A claim without the events of its orders."""
    for segment, operation in operations(segments, "claim"):
        theirs = [each for each in segment.events if each.request_id == operation.request_id]
        if theirs:
            segment.events = [each for each in segment.events if each not in theirs]
            return
    raise AssertionError("no claim of an order")


def keep_erased_address(segments):
    """An order of an erased person keeps its address."""
    segment, event = next(
        (segment, event)
        for segment, event in events(segments, "person.erased")
        if event.record["order_ids"]
    )
    order = segment.after["orders"].get(event.record["order_ids"][0])
    order = order or segment.after["trashed_orders"][event.record["order_ids"][0]]
    order["billing_address"]["email"] = "x@example.com"


def use_campaign_more(segments):
    campaign = next(iter(segments[-1].after["campaigns"].values()))
    campaign["uses"] += 1


def skip_event_of_page(segments):
    next(ids for wanted, ids in segments[-1].after["feed"] if not wanted).pop(0)


def lose_coupon_of_batch(segments):
    segment, event = events(segments, "coupon_batch.created")[0]
    segment.events.remove(event)


def write_with_revoked_key(segments):
    sent = [each for segment in segments for each in segment.operations]
    next(
        each for each in reversed(sent) if each.kind == "use_key" and each.status == 401
    ).status = 404


def swap_results(segments):
    for _, operation in operations(segments, "bulk_orders"):
        results = operation.response["orders"]
        results.reverse()


def change_what_was_seen(segments):
    _, operation = operations(segments, "conditional_order")[0]
    operation.args["seen"]["total"] = "0.01"


def replay_what_nobody_sent(segments):
    replayed(segments, "reserve").path = "/another"


def let_live_longer(segments):
    _, operation = next(each for each in operations(segments, "reserve") if each[1].status == 201)
    operation.args["expires_in"] -= 60


def update_later(segments):
    _, event = events(segments, "order.updated")[0]
    event.data["data"]["order"]["updated_at"] = "2036-01-01T00:00:00Z"


def repeat_with_another_body(segments):
    replayed(segments, "reserve").body["redemption"]["reference"] += "-other"


def alter_interval(segments):
    """An order counts in the interval before its own."""
    pairs = (each for report in sales(segments) for each in pairwise(report["intervals"]))
    before, part = next((before, part) for before, part in pairs if part["orders"])
    before["orders"], part["orders"] = before["orders"] + 1, part["orders"] - 1


def alter_restored(segments):
    _, event = events(segments, "order.restored")[0]
    event.record["status"] = event.data["data"]["order"]["status"] = "never"


def leave_coupon_of_batch(segments):
    segment, event = events(segments, "coupon_batch.created")[0]
    trashing = copy.copy(segment.operations[0])
    trashing.kind, trashing.status, trashing.args = (
        "trash_batch",
        200,
        {"batch": event.record["id"]},
    )
    trashing.key, trashing.response = "", {"trashed": event.record["count"] - 1}
    segment.operations.append(trashing)


def ignore_condition(segments):
    _, operation = operations(segments, "evaluate")[0]
    operation.args["codes"] = [*operation.args["codes"], "expired"]
    result = {"code": "expired", "applicable": True, "reasons": []}
    operation.response["evaluation"]["coupons"].append(result)


def alter_sum_of_evaluation(segments):
    _, operation = operations(segments, "evaluate")[0]
    operation.response["evaluation"]["total"] = "0.01"


def drop_metadata(segments):
    kind, id_, _ = next(each for each in segments[-1].after["metadata"] if each[2])
    segments[-1].after["metadata"].append([kind, id_, {}])


def skip_delivery(segments):
    """The second event of a record is delivered, and its first one is not."""
    delivered = [each for segment in segments for each in segment.delivered]
    key = next(key for key, n in Counter(each[1:] for each in delivered).items() if n > 1)
    first = min(each for each in delivered if each[1:] == key)
    for segment in segments:
        segment.delivered = [each for each in segment.delivered if each != first]


def write_with_key_that_may_read(segments):
    sent = (each for segment in segments for each in segment.operations)
    next(each for each in sent if each.kind == "read_only").status = 200


def alter_items(segments):
    made = (each for _, each in operations(segments, "create_order") if each.status == 201)
    next(made).response["order"]["line_items"][0]["quantity"] += 1


def count_other_orders(segments):
    _, operation = operations(segments, "count_orders")[0]
    operation.response["count"] += 50


def change_account_that_was_not_seen(segments):
    _, operation = operations(segments, "conditional_customer")[0]
    operation.args["seen"]["created_at"] = "2020-01-01T00:00:00Z"


def trash_what_was_not_seen(segments):
    _, operation = operations(segments, "conditional_trash")[0]
    operation.args["seen"]["created_at"] = "2020-01-01T00:00:00Z"


def live_longer_after_a_repetition(segments):
    for segment, operation in operations(segments, "reserve"):
        with_events = {event.request_id for event in segment.events}
        shown = operation.response["redemption"]
        if operation.request_id not in with_events and shown["status"] == "reserved":
            shown["expires_at"] = "2036-01-01T00:00:00Z"
    assert with_events


def sell_in_another_currency(segments):
    for segment in segments:
        for order in segment.after["orders"].values():
            order["currency"] = "GBP"


def fail(segments):
    segments[0].operations[0].args["undecided"] = 500


ALTERATIONS = {
    "errors": [fail],
    "sessions": [
        count_other_orders, change_account_that_was_not_seen, trash_what_was_not_seen, alter_read,
        alter_list, keep_tag, write_with_revoked_key, change_what_was_seen,
    ],
    "orders": [
        live_longer_after_a_repetition, alter_restored, alter_sum_of_evaluation, drop_metadata,
        alter_order, alter_status, lose_note, move_payment, alter_owner, let_live_longer,
    ],
    "queries": [sell_in_another_currency, alter_interval, alter_query, alter_report],
    "feed and deliveries": [
        leave_coupon_of_batch, skip_delivery, write_with_key_that_may_read, alter_items,
        lose_event, repeat_event, reorder_deliveries, update_later, skip_event_of_page,
        lose_coupon_of_batch, lose_claim, swap_results,
    ],
    "conditions": [ignore_condition],
    "conservation": [
        alter_limit, alter_usage_count, erase_address, give_order_to_another, alter_address,
        lose_merge, keep_erased_address,
    ],
    "linearizability": [alter_evaluation],
    "statistics": [alter_statistics],
    "idempotency": [alter_repetition, replay_what_nobody_sent, repeat_with_another_body],
    "campaigns": [use_campaign_more],
}  # fmt: skip
"""The functions above, by the checker that rejects their histories."""


@pytest.mark.parametrize(
    ("alter", "checker"),
    [(alter, checker) for checker, some in ALTERATIONS.items() for alter in some],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_altered_history_is_rejected(recorded, alter, checker):
    segments = pickle.loads(pickle.dumps(recorded))  # takes half the time of copy.deepcopy
    alter(segments)
    assert is_rejected(segments, checker)


def test_confirmation_of_a_released_use_is_rejected(recorded):
    """The reservation that takes a released reference again becomes a confirmation."""
    segments, released = copy.deepcopy(recorded), set()
    for segment in segments:
        requests = segment.by_request()
        for event in segment.events:
            operation = requests.get(event.request_id)
            use = event.data["data"].get("redemption", {}).get("id")
            if operation and operation.kind == "release" and event.type == "coupon.released":
                released.add(use)
            elif operation and operation.kind == "reserve" and use in released:
                operation.kind, operation.args = "confirm", {"redemption": use}
                texts = [each.text for each in check_recorded(segments)]
                assert any(
                    f"redemption {use} was released, and is confirmed" in text for text in texts
                )
                return
    raise AssertionError("no reference of a released use was reserved again")


def test_repetition_after_a_segment_without_the_key_is_accepted():
    """Another segment had only a request of another API key with this Idempotency-Key."""
    responses = {0: (1, False), 1: (2, False), 2: (1, True)}  # ID of the order, and if it is stored
    checker = IdempotencyChecker()
    for number, (id_, replayed) in responses.items():
        operation = Operation(
            0, "create_order", "POST", "/orders", {"order": {}}, {}, f"request-{number}", "key-1",
            status=201, response={"order": {"id": id_}}, replayed=replayed, api_key=id_,
        )  # fmt: skip
        event = SimpleNamespace(request_id=None if replayed else operation.request_id)
        segment = SimpleNamespace(number=number, operations=[operation], events=[event])
        assert checker.check(segment) == []


@pytest.mark.parametrize(("position", "violations"), [("1.1.a", 1), ("", 0)])
def test_only_reads_with_a_position_bind_the_next_read_with_one(recorded, position, violations):
    """The primary returns no position for a read without one."""
    segment = copy.deepcopy(recorded[-1])
    event = next(
        each
        for each in segment.events
        if each.type == "order.updated" and each.data["resource_id"] in segment.before["orders"]
    )
    id_ = event.data["resource_id"]
    segment.events = [event]
    segment.operations = [
        Operation(
            99, "read_order", "GET", f"/orders/{id_}", None, {"record": ["order", id_]}, str(time),
            position=sent, invoked=time, returned=time, status=200, response={"order": record},
        )
        for time, sent, record in (
            (segment.ended + 1, position, event.record),
            (segment.ended + 2, "1.1.a", segment.before["orders"][id_]),
        )
    ]  # fmt: skip
    found = [each.text for each in RecordChecker().check(segment)]
    assert len([text for text in found if "the response shows none" in text]) == violations


def test_recorded_history_is_the_same_after_saving(recorded):
    assert list(check_recorded(load(dump(recorded)))) == []


def test_violation_is_shown_with_its_operations_and_its_seed(recorded):
    segments = copy.deepcopy(recorded)
    alter_read(segments)
    violation = next(each for each in check_recorded(segments) if each.checker == "sessions")
    (operation,) = violation.operations[-1:]
    lines = report.text(violation, 3).splitlines()
    assert lines[0].startswith("VIOLATION of sessions, seed 3: order ")
    assert f"  {operation}" in lines
    page = report.html(violation, 3)
    assert "<h1>sessions, seed 3</h1>" in page
    assert page.count('class="done"') == sum(each.is_done for each in violation.operations)


def test_reservation_whose_response_was_lost_expires_by_any_clock():
    checker = CouponChecker()
    checker._segment = SimpleNamespace(wall=1000.0, skew=10.0)
    operation = SimpleNamespace(kind="reserve", status=None, invoked=5.0, args={"expires_in": 3})
    event = SimpleNamespace(data={"data": {"redemption": {"status": "reserved"}}}, latest=5.5)
    expires, slack = checker._expiry(event, operation, {})
    assert expires <= 1005.0 + 3 - 10
    assert expires + slack >= 1005.5 + 3 + 10
