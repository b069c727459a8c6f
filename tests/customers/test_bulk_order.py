"""Items of a bulk request that affect later items: e-mail addresses and usernames (spec 4.3)."""

import pytest

from tests.api_client import failed_item
from tests.customers.calls import avatar, bulk, emails, read

# --- items that meet ---


@pytest.mark.both_databases
def test_bulk_create_sees_the_email_of_an_earlier_item(admin):
    first, again, upper = bulk(
        admin,
        {"email": "ann@example.com", "username": "one"},
        {"email": "ann@example.com", "username": "two"},
        {"email": "ANN@EXAMPLE.COM", "username": "three"},
    )
    assert first["username"] == "one"
    assert failed_item(again) == failed_item(upper) == (0, "registration-error-email-exists")
    assert emails(admin) == ["ann@example.com"]


def test_bulk_create_sees_the_username_of_an_earlier_item(admin):
    first, again = bulk(
        admin,
        {"email": "one@example.com", "username": "ann"},
        {"email": "two@example.com", "username": "ANN"},
    )
    assert first["username"] == "ann"
    assert failed_item(again) == (0, "registration-error-username-exists")
    assert emails(admin) == ["one@example.com"]


def test_bulk_create_that_failed_takes_neither_email_nor_username(admin):
    failed, created = bulk(
        admin,
        {"email": "ann@example.com", "username": "ann", "first_name": []},
        {"email": "ann@example.com", "username": "ann"},
    )
    assert failed_item(failed) == (0, "shop_api_invalid_param")
    assert (created["email"], created["username"]) == ("ann@example.com", "ann")


@pytest.mark.parametrize("freed_by", ["", "other@example.com"])
def test_bulk_create_takes_the_email_that_an_earlier_item_gave_up(admin, make_customer, freed_by):
    ann = make_customer(email="ann@example.com", username="ann")
    edited, created = bulk(
        admin, {"id": ann["id"], "email": freed_by}, {"email": "Ann@example.com", "username": "new"}
    )
    assert (edited["id"], edited["email"]) == (ann["id"], freed_by)
    assert (created["email"], created["username"]) == ("Ann@example.com", "new")
    assert read(admin, created["id"]) == created


def test_bulk_create_does_not_get_the_email_that_a_later_item_frees(admin, make_customer):
    ann = make_customer(email="ann@example.com")
    failed, edited = bulk(
        admin,
        {"email": "ann@example.com", "username": "new"},
        {"id": ann["id"], "email": "other@example.com"},
    )
    assert failed_item(failed) == (0, "registration-error-email-exists")
    assert edited["email"] == "other@example.com"
    assert emails(admin) == ["other@example.com"]


def test_bulk_update_leaves_the_email_that_an_earlier_item_took(admin, make_customer):
    ann = make_customer(email="ann@example.com")
    created, edited = bulk(
        admin, {"email": "new@example.com"}, {"id": ann["id"], "email": "NEW@example.com"}
    )
    assert created["email"] == "new@example.com"
    assert edited == ann == read(admin, ann["id"])


@pytest.mark.both_databases
def test_bulk_updates_swap_two_emails_by_way_of_a_third(admin, make_customer):
    ann, bob = make_customer(email="ann@example.com"), make_customer(email="bob@example.com")
    bulk(
        admin,
        {"id": ann["id"], "email": "third@example.com"},
        {"id": bob["id"], "email": "ann@example.com"},
        {"id": ann["id"], "email": "bob@example.com"},
    )
    assert read(admin, ann["id"])["email"] == "bob@example.com"
    assert read(admin, bob["id"])["email"] == "ann@example.com"


def test_bulk_update_to_the_email_of_an_account_that_keeps_it_changes_nothing(admin, make_customer):
    ann, bob = make_customer(email="ann@example.com"), make_customer(email="bob@example.com")
    results = bulk(
        admin,
        {"id": ann["id"], "email": "bob@example.com"},
        {"id": bob["id"], "email": "ann@example.com"},
    )
    assert results == [ann, bob]
    assert emails(admin) == ["ann@example.com", "bob@example.com"]


@pytest.mark.both_databases
def test_bulk_updates_of_one_customer_add_up_in_their_order(admin, make_customer):
    customer = make_customer(first_name="0", last_name="0")
    _, last = bulk(
        admin,
        {"id": customer["id"], "first_name": "1", "billing_address": {"city": "1"}},
        {"id": str(customer["id"]), "first_name": "2", "billing_address": {"state": "2"}},
    )
    billing = customer["billing_address"] | {"city": "1", "state": "2"}
    assert last == customer | {"first_name": "2", "billing_address": billing}
    assert read(admin, customer["id"]) == last


def test_bulk_results_of_one_customer_are_each_whole(admin, make_customer):
    """decisions 5: the avatar is the one of the e-mail address beside it."""
    customer = make_customer()
    results = bulk(
        admin,
        {"id": customer["id"], "email": "one@example.com"},
        {"id": customer["id"], "email": "two@example.com"},
    )
    assert results[1] == read(admin, customer["id"])
    for result in results:
        assert result["avatar_url"] == avatar(result["email"])


def test_bulk_update_that_fails_keeps_the_other_update_of_the_customer(admin, make_customer):
    customer = make_customer()
    edited, failed = bulk(
        admin,
        {"id": customer["id"], "first_name": "Ann"},
        {"id": customer["id"], "first_name": []},
    )
    assert failed_item(failed) == (customer["id"], "shop_api_invalid_param")
    assert edited == customer | {"first_name": "Ann"} == read(admin, customer["id"])


# --- generated usernames ---


@pytest.mark.both_databases
def test_bulk_generates_usernames_that_differ(admin, make_customer):
    make_customer(email="sam@example.com")
    results = bulk(
        admin,
        {"email": "sam@a.example"},
        {"email": "SAM@b.example"},
        {"email": "sam@c.example", "username": "sam4"},
        {"email": "sam@d.example", "username": ""},
        {"email": "sam@e.example", "username": None},
    )
    names = [result["username"] for result in results]
    assert names == ["sam2", "SAM3", "sam4", "sam5", "sam6"]


def test_bulk_username_of_an_earlier_generated_one_is_taken(admin):
    generated, failed = bulk(
        admin, {"email": "sam@a.example"}, {"email": "other@example.com", "username": "SAM"}
    )
    assert generated["username"] == "sam"
    assert failed_item(failed) == (0, "registration-error-username-exists")


@pytest.mark.both_databases
def test_bulk_of_a_hundred_equal_local_parts_generates_a_hundred_usernames(admin):
    results = bulk(admin, *({"email": f"sam@{number}.example"} for number in range(100)))
    numbers = ["", *map(str, range(2, 101))]
    assert [result["username"] for result in results] == [f"sam{number}" for number in numbers]
