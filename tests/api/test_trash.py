"""The trash: what is the same for coupons and orders (orders 1, 4 and 9)."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.api_client import refusal, refused_params, reply
from tests.nouns import COUPON, ORDER


@pytest.fixture(params=[COUPON, ORDER], ids=lambda noun: noun.name)
def noun(request):
    return request.param


def listed(client, noun):
    return [each["id"] for each in noun.listed(client.get(f"{noun.path}/trash"))]


def trashed(admin, noun, number):
    """Records that were created and moved to the trash."""
    records = noun.send(admin, *map(noun.new, range(number)))
    for each in records:
        assert reply(admin.delete(f"{noun.path}/{each['id']}")) == (
            200,
            {"message": f"Deleted {noun.name}"},
        )
    return records


def not_in_trash(noun):
    words = f"No {noun.name} in the trash has this ID."
    return refusal(f"shop_api_invalid_{noun.name}_id", words=words)


def test_the_list_shows_records_and_when_they_were_trashed(admin, noun):
    (record,) = trashed(admin, noun, 1)
    (kept,) = noun.send(admin, noun.new(5))
    response = admin.get(f"{noun.path}/trash")
    (shown,) = noun.listed(response)
    age = datetime.now(UTC) - datetime.fromisoformat(shown["trashed_at"])
    assert timedelta(0) <= age < timedelta(minutes=5)
    changed = {"updated_at": shown["trashed_at"], "trashed_at": shown["trashed_at"]}
    assert shown == record | changed
    assert (response.headers["X-Total"], response.headers["X-TotalPages"]) == ("1", "1")
    assert noun.listed(admin.get(noun.path)) == [kept]


def test_a_restored_record_is_as_it_was(admin, noun):
    (record,) = trashed(admin, noun, 1)
    path = f"{noun.path}/{record['id']}"
    response = admin.post(f"{path}/restore")
    restored = record | {"updated_at": response.get_json()[noun.name]["updated_at"]}
    assert reply(response) == reply(admin.get(path)) == (200, {noun.name: restored})
    assert (listed(admin, noun), noun.count(admin)) == ([], 1)
    assert reply(admin.post(f"{path}/restore")) == not_in_trash(noun)
    # It can be moved to the trash again.
    admin.delete(path)
    assert listed(admin, noun) == [record["id"]]


def test_restore_of_what_is_not_in_the_trash(admin, noun):
    (record,) = noun.send(admin, noun.new(0))
    for record_id in (record["id"], 10**9, 10**30):
        response = admin.post(f"{noun.path}/{record_id}/restore")
        assert reply(response) == not_in_trash(noun)


@pytest.mark.both_databases
def test_the_trash_is_emptied_by_age(app, admin, noun):
    records = trashed(admin, noun, 5)
    (kept,) = noun.send(admin, noun.new(9))
    now = datetime.now(UTC).replace(microsecond=0)
    noun.store(app, kept["id"], created_at=now - timedelta(days=90))
    ids = [each["id"] for each in records]
    for record_id, days in zip(ids, (40, 31, 29, 5, 0), strict=True):
        noun.store(app, record_id, trashed_at=now - timedelta(days=days))
    for query, deleted, left in (
        ({"older_than_days": 10**40}, 0, ids),
        ({"older_than_days": 4_000_000}, 0, ids),
        ({}, 2, ids[2:]),
        ({"older_than_days": 7}, 1, ids[3:]),
        ({"older_than_days": 3}, 1, ids[4:]),
        ({"older_than_days": 0}, 1, []),
    ):
        response = admin.delete(f"{noun.path}/trash", query)
        assert reply(response) == (200, {"deleted": deleted}), query
        assert sorted(listed(admin, noun)) == left, query
    assert [each["id"] for each in noun.listed(admin.get(noun.path))] == [kept["id"]]


def test_an_age_that_is_not_a_number_of_days(admin, noun):
    trashed(admin, noun, 1)
    for days in ("-1", "abc", "1.5"):
        response = admin.delete(f"{noun.path}/trash", {"older_than_days": days})
        assert refused_params(response) == ["older_than_days"], days
    assert len(listed(admin, noun)) == 1


def test_capabilities(admin, client_for, noun):
    (record,), customer = trashed(admin, noun, 1), client_for("customer")
    response = customer.get(f"{noun.path}/trash")
    assert (noun.listed(response), response.headers["X-Total"]) == ([], "0")
    refused = refusal(f"shop_api_user_cannot_edit_{noun.name}")
    assert reply(customer.post(f"{noun.path}/{record['id']}/restore")) == refused
    refused = refusal(f"shop_api_user_cannot_delete_{noun.name}")
    for query in ({}, {"older_than_days": 0}):
        assert reply(customer.delete(f"{noun.path}/trash", query)) == refused
    assert reply(customer.post(f"{noun.path}/1000000/restore")) == not_in_trash(noun)
    assert listed(client_for("shop_manager"), noun) == [record["id"]]
