"""A shop, receivers and requests for the tests of deliveries."""

import pytest
from sqlalchemy import update

from app.db.session import run_in_transaction
from app.services.events.outbox import NewEvent, record
from tests.webhooks.receivers import LOOPBACK, Receiver, until


@pytest.fixture
def receivers():
    """Return a function: a new receiver."""
    made = []

    def make(respond=lambda _: 204):
        made.append(Receiver(respond))
        return made[-1]

    yield make
    for receiver in made:
        receiver.close()


@pytest.fixture
def receiver(receivers):
    return receivers()


@pytest.fixture
def shop(client_with):
    """The administrator's client of an app that may deliver to the loopback interface."""
    return client_with(SHOP_WEBHOOK_ALLOWED_NETWORKS=LOOPBACK)


def make_webhook(shop, receiver, **over):
    body = {"topics": ["*"], "delivery_url": receiver.url} | over
    response = shop.post("/webhooks", {"webhook": body})
    assert response.status_code == 201, response.get_json()
    return response.get_json()["webhook"]


def publish(shop, *ids, event_type="coupon.updated", **over):
    """Write an event for each ID, as a service does."""
    resource = event_type.partition(".")[0]
    events = [NewEvent(event_type, id_, {resource: {"id": id_} | over}) for id_ in ids]
    with shop.app.app_context():
        run_in_transaction(lambda session: record(session, None, events))


def deliveries(shop, webhook, **query):
    path = f"/webhooks/{webhook['id']}/deliveries"
    query = {"filter[order]": "asc", "filter[limit]": "-1", **query}
    return shop.get(path, query).get_json()["webhook_deliveries"]


def in_state(shop, webhook, state, number=1):
    """Return the deliveries in a state, once there are as many."""

    def look():
        found = [each for each in deliveries(shop, webhook) if each["state"] == state]
        return found if len(found) >= number else None

    return until(look, f"{number} deliveries {state}")


def attempted(shop, webhook):
    """Return the deliveries with attempts, once there are some."""
    return until(
        lambda: [each for each in deliveries(shop, webhook) if each["attempts"]], "an attempt"
    )


def show(shop, webhook):
    return shop.get(f"/webhooks/{webhook['id']}").get_json()["webhook"]


def write(shop, model, **columns):
    """Change all rows of a table: what only time does."""
    with shop.app.app_context():
        run_in_transaction(lambda session: session.execute(update(model).values(**columns)))
