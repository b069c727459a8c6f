"""Concurrent requests: an e-mail address and a username belong to one account (decisions 5)."""

from collections import Counter

import pytest

from tests.api_client import at_the_same_time

pytestmark = pytest.mark.both_databases

CALLERS = 50


def at_once(client, send, count=CALLERS):
    """Return the responses to ``send(client, number)``, called by threads at the same time."""

    def call(number):
        return send(type(client)(client.app, client.key), number)

    return at_the_same_time(call, range(count))


def counts_of(answers):
    """Return the number of responses by status and code."""
    codes = [answer.get_json().get("errors", [{}])[0].get("code") for answer in answers]
    return Counter(zip([answer.status_code for answer in answers], codes, strict=True))


def listed(client):
    return client.get("/customers", {"filter[limit]": -1}).get_json()["customers"]


def create(client, **fields):
    return client.post("/customers", {"customer": fields})


def test_create_of_one_email_by_many_succeeds_once(admin):
    def send(client, number):
        email = "ann@example.com" if number % 2 else "ANN@example.com"
        return create(client, email=email, username=f"user{number}")

    answers = at_once(admin, send)
    assert counts_of(answers) == {(201, None): 1, (400, "registration-error-email-exists"): 49}
    (winner,) = (answer.get_json()["customer"] for answer in answers if answer.status_code == 201)
    assert listed(admin) == [winner]


def test_create_of_one_username_by_many_succeeds_once(admin):
    def send(client, number):
        return create(
            client, email=f"c{number}@example.com", username="ann" if number % 2 else "Ann"
        )

    answers = at_once(admin, send)
    assert counts_of(answers) == {(201, None): 1, (400, "registration-error-username-exists"): 49}
    (winner,) = (answer.get_json()["customer"] for answer in answers if answer.status_code == 201)
    assert listed(admin) == [winner]


@pytest.mark.slow
def test_create_of_one_local_part_by_many_gives_each_a_username(admin):
    answers = at_once(admin, lambda client, number: create(client, email=f"ann@{number}.example"))
    assert counts_of(answers) == {(201, None): CALLERS}
    names = {answer.get_json()["customer"]["username"] for answer in answers}
    assert names == {"ann", *(f"ann{number}" for number in range(2, CALLERS + 1))}
    assert len(listed(admin)) == CALLERS


def test_bulk_create_of_the_same_customers_by_many_creates_each_once(admin):
    items = [{"email": f"c{number}@example.com"} for number in range(5)]

    def send(client, number):
        return client.post("/customers/bulk", {"customers": items[:: 1 if number % 2 else -1]})

    answers = at_once(admin, send, count=10)
    assert counts_of(answers) == {(200, None): 10}
    results = [result for answer in answers for result in answer.get_json()["customers"]]
    codes = Counter(result.get("error", {}).get("code") for result in results)
    assert codes == {None: 5, "registration-error-email-exists": 45}
    assert sorted(customer["email"] for customer in listed(admin)) == [
        item["email"] for item in items
    ]


def test_update_to_one_email_by_many_succeeds_once(admin):
    """decisions 5: the address of another account leaves the stored one, and is no error."""
    items = [{"email": f"c{number}@example.com"} for number in range(CALLERS)]
    customers = admin.post("/customers/bulk", {"customers": items}).get_json()["customers"]

    def send(client, number):
        path = f"/customers/{customers[number]['id']}"
        return client.put(path, {"customer": {"email": "one@example.com", "last_name": "x"}})

    answers = at_once(admin, send)
    assert counts_of(answers) == {(200, None): CALLERS}
    edited = [answer.get_json()["customer"] for answer in answers]
    assert listed(admin) == edited
    stayed = [
        after for before, after in zip(customers, edited, strict=True)
        if after == before | {"last_name": "x"}
    ]  # fmt: skip
    assert len(stayed) == CALLERS - 1
    assert [row["email"] for row in edited if row not in stayed] == ["one@example.com"]


def test_updates_of_one_customer_by_many_lose_nothing(admin, make_customer):
    customer = make_customer()
    parts = ["first_name", "last_name", "company", "city", "state", "postcode", "country", "phone"]

    def send(client, number):
        change = {"billing_address": {parts[number]: str(number)}}
        return client.put(f"/customers/{customer['id']}", {"customer": change})

    assert counts_of(at_once(admin, send, count=len(parts))) == {(200, None): len(parts)}
    billing = customer["billing_address"] | {part: str(n) for n, part in enumerate(parts)}
    assert listed(admin) == [customer | {"billing_address": billing}]


def test_delete_of_one_customer_by_many_succeeds_once(admin, make_customer):
    path = f"/customers/{make_customer()['id']}"
    answers = at_once(admin, lambda client, _: client.delete(path), count=10)
    assert counts_of(answers) == {(200, None): 1, (404, "shop_api_invalid_customer"): 9}
    assert listed(admin) == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("wanted", ["ann@example.com", "new@example.com"])
def test_creates_and_updates_with_one_email_give_it_to_one_account(admin, make_customer, wanted):
    """One half edits an account from ann@ to new@, the other creates with one of the two."""
    customer = make_customer(email="ann@example.com", username="ann")

    def send(client, number):
        if number % 2:
            return create(client, email=wanted, username=f"user{number}")
        changes = {"email": "new@example.com"}
        return client.put(f"/customers/{customer['id']}", {"customer": changes})

    counted = counts_of(at_once(admin, send, count=10))
    created = counted[201, None]
    exists = (400, "registration-error-email-exists")
    assert created in {0, 1}
    assert counted == Counter({(200, None): 5, (201, None): created, exists: 5 - created})
    emails = [row["email"] for row in listed(admin)]
    assert len(emails) == len(set(emails)) == 1 + created
