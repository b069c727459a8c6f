"""Events: the outbox, its sequencer and the feed (events 1)."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update

from app.db.session import run_in_transaction
from app.models import Event
from app.services.events.outbox import NewEvent, record
from app.services.events.retention import remove_expired_data, remove_expired_events
from app.services.events.sequence import number_events
from tests.api_client import refusal, reply


@pytest.fixture
def publish(app):
    """Return a function: write events, one transaction each, and return their IDs."""

    def write(*events):
        with app.app_context():
            for event in events:
                run_in_transaction(lambda session, event=event: record(session, None, [event]))
            number_events()
            return [
                row[0]
                for row in run_in_transaction(
                    lambda session: session.execute(select(Event.id).order_by(Event.id)).all()
                )
            ][-len(events) :]

    return write


def updated(coupon_id):
    return NewEvent("coupon.updated", coupon_id, {"coupon": {"id": coupon_id}})


def ids(response):
    assert response.status_code == 200, response.get_json()
    return [event["id"] for event in response.get_json()["events"]]


@pytest.mark.parametrize("count", [1, 3, 1100])
@pytest.mark.pooler
def test_events_are_numbered_in_the_order_of_their_transaction(app, count):
    new = [NewEvent("coupon.updated", number, {"n": number}) for number in range(count)]
    with app.app_context():
        run_in_transaction(lambda session: record(session, None, new))
        run_in_transaction(lambda session: record(session, None, new[:1]))
        number_events()
        found = run_in_transaction(
            lambda session: session.execute(
                select(Event.id, Event.resource_id).order_by(Event.id)
            ).all()
        )
    assert [row.resource_id for row in found] == [*range(count), 0]
    assert [row.id for row in found] == list(range(found[0].id, found[0].id + count + 1))


def test_an_unknown_type_is_a_bug(app):
    with app.app_context(), pytest.raises(KeyError, match=r"coupon\.painted"):
        run_in_transaction(
            lambda session: record(session, None, [NewEvent("coupon.painted", 1, {})])
        )


@pytest.mark.pooler
@pytest.mark.parametrize("number", [5, 6], ids=["short last page", "full last page"])
def test_feed_pages(admin, publish, number):
    published = publish(*map(updated, range(number)))
    before = published[0] - 1
    url = f"/events?filter[after]={before}&filter[limit]=2&filter[type]=coupon.updated"
    read = []
    while url:
        response = admin.get(url)
        read.append(ids(response))
        link = response.headers.get("Link")
        assert link is None or link.endswith('>; rel="next"')
        url = link and link[1 : link.index(">")].removeprefix("http://localhost")
    assert read == [published[:2], published[2:4], published[4:]]


def test_an_event_as_the_feed_shows_it(admin, publish):
    (event_id,) = publish(updated(7))
    body = admin.get(f"/events/{event_id}").get_json()
    created_at = datetime.fromisoformat(body["event"].pop("created_at"))
    assert timedelta(0) <= datetime.now(UTC) - created_at < timedelta(minutes=1)
    assert body == {
        "event": {
            "id": event_id,
            "type": "coupon.updated",
            "resource": "coupon",
            "resource_id": 7,
            "data": {"coupon": {"id": 7}},
            "request_id": None,
            "user_id": None,
        }
    }
    assert admin.get("/events", {"fields": "id,data"}).get_json() == {
        "events": [{"id": event_id, "data": {"coupon": {"id": 7}}}]
    }


FILTERS = [
    ({"filter[type]": "customer.updated"}, [1]),
    ({"filter[type]": "customer.updated, coupon.updated"}, [0, 1, 3]),
    ({"filter[resource]": "coupon"}, [0, 2, 3]),
    ({"filter[resource]": "coupon", "filter[resource_id]": "2"}, [2]),
    ({"filter[resource_id]": "1"}, [0, 1]),
    ({"filter[resource_id]": str(10**30)}, []),
    ({"filter[created_at_min]": "2020-01-01"}, [0, 1, 2, 3]),
    ({"filter[created_at_max]": "2020-01-01"}, []),
    ({"filter[after]": str(10**30)}, []),
    ({"filter[limit]": "1"}, [0]),
    ({"filter[limit]": "0"}, [0, 1, 2, 3]),
]


@pytest.mark.parametrize(("query", "expected"), FILTERS)
def test_filters(admin, publish, query, expected):
    published = publish(
        updated(1),
        NewEvent("customer.updated", 1, {}),
        NewEvent("coupon.deleted", 2, {}),
        updated(3),
    )
    assert ids(admin.get("/events", query)) == [published[place] for place in expected]


REFUSED = [
    ("filter[after]", "x"),
    ("filter[after]", "-1"),
    ("filter[limit]", "1001"),
    ("filter[limit]", "-1"),
    ("filter[type]", "coupon.painted"),
    ("filter[resource]", "teapot"),
    ("filter[created_at_min]", "never"),
]


@pytest.mark.parametrize(("parameter", "value"), REFUSED)
def test_rejected_queries(admin, parameter, value):
    response = admin.get("/events", {parameter: value})
    assert response.status_code == 400
    (error,) = response.get_json()["errors"]
    assert (error["code"], error["param"]) == ("shop_api_invalid_param", parameter)


def test_unknown_event(admin):
    assert reply(admin.get("/events/1000000000")) == refusal("shop_api_invalid_event_id")


def test_permissions(client_for, publish):
    (event_id,) = publish(updated(1))
    for role, status in (("shop_manager", 200), ("customer", 401)):
        client = client_for(role)
        assert client.get("/events").status_code == status
        assert client.get(f"/events/{event_id}").status_code == status


@pytest.mark.pooler
def test_expired_events(app, admin, publish):
    published = publish(*map(updated, range(4)))

    def age(session, days=31):
        long_ago = datetime.now(UTC) - timedelta(days=days)
        session.execute(update(Event).where(Event.id <= published[2]).values(created_at=long_ago))

    with app.app_context():
        run_in_transaction(age)
        assert remove_expired_data(Event.id != published[1]) == (2, None)
        assert remove_expired_data(Event.id != published[1], after=0) == (0, None)
    # The second event has a pending delivery. A cursor before the third has missed one event.
    assert ids(admin.get("/events")) == [published[3]]
    assert ids(admin.get("/events", {"filter[order]": "desc"})) == published[::-1]
    contents = [admin.get(f"/events/{each}").get_json()["event"]["data"] for each in published]
    assert [bool(each) for each in contents] == [False, True, False, True]
    assert ids(admin.get("/events", {"filter[after]": published[2]})) == [published[3]]
    expired = refusal("shop_api_events_expired", removed_id=published[2])
    assert reply(admin.get("/events", {"filter[after]": published[1]})) == expired
    with app.app_context():
        assert remove_expired_events() == (0, None)
        run_in_transaction(lambda session: age(session, 91))
        keeps = Event.id != published[1]
        assert remove_expired_events(keeps) == (2, None)
    assert reply(admin.get(f"/events/{published[0]}")) == expired
    with app.app_context():
        assert remove_expired_data(after=0) == (1, None)
        assert remove_expired_events() == (1, None)
    assert publish(updated(9)) == [published[3] + 1]
