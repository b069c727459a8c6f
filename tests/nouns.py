"""Coupons, customers and orders, for tests of what is the same for all three."""

from typing import NamedTuple

import pytest
from sqlalchemy import Table, update

from app.db.session import run_in_transaction
from app.models import COUPONS, ORDERS, USERS
from tests.api_client import bulk_results

NOBODY = 999_999
"""An ID that no record has."""


class Noun(NamedTuple):
    """A kind of records."""

    name: str
    text: str  # a field that finds a record, and is not changed when it is stored
    changed: str  # a field of text that everybody can change who may update a record
    wrong: dict  # two fields of a wrong type
    wrong_names: tuple  # what the error names
    unknown: str  # the code for an ID that no record has
    table: Table
    taken: dict  # the fields of a record that has what others must not have

    @property
    def key(self):
        """The wrapper key of several records."""
        return f"{self.name}s"

    @property
    def path(self):
        return f"/{self.key}"

    def new(self, number):
        """The fields of a new record."""
        return {self.text: self.value(number)}

    def value(self, number):
        return f"c{number}@example.com" if self.text == "email" else f"c{number}"

    def send(self, client, *items, method="POST"):
        return bulk_results(client, self.name, *items, method=method)

    def read(self, client, record_id):
        return client.get(f"{self.path}/{record_id}").get_json()[self.name]

    def listed(self, response):
        assert response.status_code == 200, response.get_json()
        assert list(response.get_json()) == [self.key]
        return response.get_json()[self.key]

    def stored(self, client):
        """The texts of up to ten records, by their IDs."""
        query = {"filter[orderby]": "id", "filter[order]": "asc", "fields": f"id,{self.text}"}
        records = self.listed(client.get(self.path, query))
        return {record["id"]: record[self.text] for record in records}

    def store(self, app, record_id, **columns):
        """Write columns of a record past the API: what only time does."""
        statement = update(self.table).where(self.table.c.id == record_id).values(**columns)
        with app.app_context():
            run_in_transaction(lambda session: session.execute(statement))

    def count(self, client):
        return client.get(f"{self.path}/count").get_json()["count"]


NOUNS = (
    Noun(
        "coupon", "code", "description",
        {"amount": "x", "usage_limit": []}, ("amount", "usage_limit"),
        "shop_api_invalid_coupon_id", COUPONS, {"code": "taken"},
    ),
    Noun(
        "customer", "email", "first_name",
        {"first_name": [], "billing_address": {"city": {}}}, ("first_name", "billing_address.city"),
        "shop_api_invalid_customer", USERS, {"email": "taken@example.com", "username": "taken"},
    ),
    Noun(
        "order", "note", "note",
        {"note": [], "billing_address": {"city": {}}}, ("note", "billing_address.city"),
        "shop_api_invalid_order_id", ORDERS, {"order_key": "taken", "note": "taken"},
    ),
)  # fmt: skip
COUPON, CUSTOMER, ORDER = NOUNS


@pytest.fixture(params=NOUNS, ids=lambda noun: noun.name)
def noun(request):
    return request.param
