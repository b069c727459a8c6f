"""Requests for the tests of customer lists."""

from decimal import Decimal

from sqlalchemy import update

from app.db.session import run_in_transaction
from app.models import User
from tests.factories import insert_order


def listed(response):
    assert response.status_code == 200, response.get_json()
    assert set(response.get_json()) == {"customers"}
    return response.get_json()["customers"]


def filtered(client, **keys):
    return client.get("/customers", {f"filter[{name}]": value for name, value in keys.items()})


def totals(response):
    return response.headers["X-Total"], response.headers["X-TotalPages"]


def create_many(client, *customers):
    """Create customers in one request and return them as the API does."""
    results = client.post("/customers/bulk", {"customers": customers}).get_json()["customers"]
    assert not [result for result in results if "error" in result]
    return results


def numbered(client, count):
    return create_many(client, *({"email": f"c{number}@example.com"} for number in range(count)))


def positions(response, customers):
    """Where the customers of a list stand among the ones that the test created."""
    places = {customer["id"]: place for place, customer in enumerate(customers)}
    return [places[customer["id"]] for customer in listed(response)]


def set_columns(app, customer, **columns):
    this = update(User).where(User.id == customer["id"])
    with app.app_context():
        run_in_transaction(lambda session: session.execute(this.values(**columns)))


def add_order(app, customer, total):
    insert_order(app, customer_id=customer["id"], total=Decimal(total))
