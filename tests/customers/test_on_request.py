"""Fields of customers that a response contains only on request, by the table in ``calls``."""

import pytest

from app.schemas.customers import CustomerSchema
from app.schemas.fields.output import on_request
from tests.customers.calls import BLANK, GIVEN, SHOWN, bulk, edit
from tests.persons.test_merge import merge

NAMES = ",".join(BLANK)


def shown(client, customer_id):
    return client.get(f"/customers/{customer_id}", {"fields": NAMES}).get_json()["customer"]


def test_the_table_names_every_field():
    for table in (BLANK, GIVEN, SHOWN):
        assert list(table) == [*on_request(CustomerSchema)]
    assert [name for name in BLANK if BLANK[name] == SHOWN[name]] == []


@pytest.mark.both_databases
def test_a_response_contains_only_what_the_request_wrote_or_named(admin, make_customer):
    plain = make_customer(email="plain@example.com")
    full = make_customer(email="full@example.com", metadata={"a": 1}, **GIVEN)
    assert not BLANK.keys() & plain.keys()
    assert list(full)[-len(SHOWN) - 1 :] == [*SHOWN, "metadata"]
    assert full.items() >= SHOWN.items()
    assert [shown(admin, each["id"]) for each in (plain, full)] == [BLANK, SHOWN]
    changed = edit(admin, full["id"], first_name="Ann").get_json()["customer"]
    assert not BLANK.keys() & changed.keys()
    emptied, written, new = bulk(
        admin,
        {"id": full["id"], **BLANK},
        {"id": plain["id"], **GIVEN},
        {"email": "c@d.io", **GIVEN},
    )
    assert emptied.items() >= BLANK.items()
    assert written.items() >= SHOWN.items()
    assert new.items() >= SHOWN.items()
    found = [shown(admin, each["id"]) for each in (emptied, written, new)]
    assert found == [BLANK, SHOWN, SHOWN]


def test_a_merge_fills_what_the_kept_account_lacks(admin, make_customer):
    kept, full = make_customer(email="kept@example.com"), make_customer(**GIVEN)
    assert merge(admin, kept["id"], full["id"]).status_code == 200
    assert shown(admin, kept["id"]) == SHOWN
    event = admin.get("/events", {"type": "customer.updated"}).get_json()["events"][-1]
    assert event["data"]["customer"].items() >= SHOWN.items()
