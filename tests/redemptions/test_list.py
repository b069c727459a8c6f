"""Lists and counts of redemptions, and their filters (redemptions 4 and 6)."""

from datetime import UTC, datetime
from itertools import product
from operator import ge, le

import pytest
from sqlalchemy import update

from app.db.session import run_in_transaction
from app.models import REDEMPTIONS
from tests.api_client import refused_params
from tests.redemptions.calls import move, reserve


@pytest.fixture
def ledger(admin, make_coupon, make_customer, expire):
    """Three redemptions by name: a confirmed, a reserved and an expired one."""
    summer, winter = make_coupon(code="summer"), make_coupon(code="winter")
    ada = make_customer(email="ada@example.com")
    confirmed = reserve(admin, reference="a", customer_id=ada["id"], email="Ada@example.com")
    reserved = reserve(admin, "winter", "b", email="bob@example.com")
    expired = reserve(admin, "winter", "c", expires_in=7200)
    timestamp = expire(expired, 60)
    return {
        "ada": ada,
        "summer": summer,
        "winter": winter,
        "confirmed": move(admin, confirmed, "confirm"),
        "reserved": reserved,
        "expired": expired
        | {"status": "released", "expires_at": timestamp, "updated_at": timestamp},
    }


def listed(client, **query):
    response = client.get("/redemptions", query)
    assert response.status_code == 200, response.get_json()
    rows = response.get_json()["redemptions"]
    assert response.headers["X-Total"] == str(len(rows))
    filters = {name: value for name, value in query.items() if name.startswith("filter")}
    assert client.get("/redemptions/count", filters).get_json() == {"count": len(rows)}
    return rows


@pytest.mark.both_databases
def test_newest_first(admin, ledger):
    expected = [ledger[name] for name in ("expired", "reserved", "confirmed")]
    assert listed(admin) == expected
    assert listed(admin, **{"filter[order]": "asc", "filter[orderby]": "id"}) == expected[::-1]
    by_expiry = listed(admin, **{"filter[orderby]": "expires_at", "filter[order]": "asc"})
    assert by_expiry == expected


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"code": "SUMMER"}, ["confirmed"]),
        ({"reference": "b"}, ["reserved"]),
        ({"email": "ADA@example.com"}, ["confirmed"]),
        ({"customer_id": 0}, ["expired", "reserved"]),
        ({"order_id": 1}, []),
        ({"status": "reserved"}, ["reserved"]),
        ({"status": "released"}, ["expired"]),
        ({"status": "confirmed, released"}, ["expired", "confirmed"]),
        ({"created_at_min": "2020-01-01", "updated_at_min": "2020-01-01"}, None),
        ({"created_at_max": "2020-01-01"}, []),
        ({"coupon_id": "9" * 30}, []),
    ],
)
def test_filters(admin, ledger, query, names):
    names = ["expired", "reserved", "confirmed"] if names is None else names
    found = listed(admin, **{f"filter[{name}]": value for name, value in query.items()})
    assert found == [ledger[name] for name in names]


@pytest.mark.both_databases
def test_filters_by_ids_and_live_time_of_update(admin, ledger):
    assert listed(admin, **{"filter[coupon_id]": ledger["summer"]["id"]}) == [ledger["confirmed"]]
    assert listed(admin, **{"filter[customer_id]": ledger["ada"]["id"]}) == [ledger["confirmed"]]
    until = ledger["expired"]["updated_at"]
    assert listed(admin, **{"filter[updated_at_max]": until}) == [ledger["expired"]]


@pytest.mark.both_databases
def test_reservations_that_expire_are_in_a_period_by_the_time_that_is_shown(admin, ledger):
    """Also beside changes that are found by their stored times, whatever the order."""
    shown = {each["id"]: each for each in listed(admin)}
    times = sorted({each["updated_at"] for each in shown.values()})
    for time, name, order in product(times, ("date", "id", "expires_at"), ("asc", "desc")):
        sort = {"filter[orderby]": name, "filter[order]": order}
        ids = [each["id"] for each in listed(admin, **sort)]
        since = listed(admin, **sort, **{"filter[updated_at_min]": time})
        until = listed(admin, **sort, **{"filter[updated_at_max]": time})
        assert since == [shown[each] for each in ids if shown[each]["updated_at"] >= time]
        assert until == [shown[each] for each in ids if shown[each]["updated_at"] <= time]


@pytest.mark.both_databases
@pytest.mark.parametrize("few", [0, 20_000])
def test_changes_are_sorted_by_any_key(admin, app, make_coupon, monkeypatch, few):
    """If they are the fewer, they are found first, and otherwise while the list is read."""
    monkeypatch.setattr("app.services.common.plans.FEW", few)
    make_coupon(code="summer")
    ids = [reserve(admin, reference=f"{number}", expires_in=3600)["id"] for number in range(9)]
    with app.app_context():
        for number, redemption_id in enumerate(ids):
            at = datetime(2026, 1, 1 + number % 3, tzinfo=UTC)
            run_in_transaction(
                lambda session, redemption_id=redemption_id, at=at: session.execute(
                    update(REDEMPTIONS)
                    .where(REDEMPTIONS.c.id == redemption_id)
                    .values(updated_at=at, created_at=at, status="released", holds_slot=False)
                )
            )
    for name, order, day in product(("date", "id", "expires_at"), ("asc", "desc"), (1, 2, 3)):
        every = listed(admin, **{"filter[orderby]": name, "filter[order]": order})
        for bound, is_in in (("updated_at_min", ge), ("updated_at_max", le)):
            time = f"2026-01-0{day}T00:00:00Z"
            query = {"filter[orderby]": name, "filter[order]": order, f"filter[{bound}]": time}
            assert listed(admin, **query) == [
                each for each in every if is_in(each["updated_at"], time)
            ]


@pytest.mark.both_databases
def test_page_and_fields(admin, ledger):
    response = admin.get("/redemptions", {"filter[limit]": 1, "page": 2, "fields": "id,status"})
    assert response.get_json() == {
        "redemptions": [{"id": ledger["reserved"]["id"], "status": "reserved"}]
    }
    assert (response.headers["X-Total"], response.headers["X-TotalPages"]) == ("3", "3")
    streamed = admin.get("/redemptions", {"filter[limit]": -1}).get_json()["redemptions"]
    assert streamed == [ledger[name] for name in ("expired", "reserved", "confirmed")]
    path = f"/redemptions/{ledger['expired']['id']}?fields=status,amount"
    assert admin.get(path).get_json() == {"redemption": {"status": "released", "amount": None}}


@pytest.mark.parametrize(
    ("name", "value"),
    [("status", "used"), ("orderby", "amount"), ("coupon_id", "a"), ("limit", -2)],
)
def test_values_that_cannot_be_understood(admin, name, value):
    for path in ("/redemptions", "/redemptions/count"):
        assert refused_params(admin.get(path, {f"filter[{name}]": value})) == [f"filter[{name}]"]
