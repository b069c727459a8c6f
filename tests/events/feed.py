"""The feed and orders for the tests of events."""

import pytest

LINE = {"name": "Teapot", "price": "8.00"}


@pytest.fixture
def feed(admin):
    """Return a function: the events since the last call, or since the test began."""
    position = 0

    def read():
        nonlocal position
        response = admin.get("/events", {"filter[after]": position, "filter[limit]": 1000})
        events = response.get_json()["events"]
        position = events[-1]["id"] if events else position
        return events

    read()
    return read


def types(events):
    return [(event["type"], event["resource_id"]) for event in events]


@pytest.fixture
def make_order(admin):
    def make(**order):
        response = admin.post("/orders", {"order": {"line_items": [LINE]} | order})
        assert response.status_code == 201, response.get_json()
        return response.get_json()["order"]

    return make
