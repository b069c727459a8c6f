"""Requests and values for the tests of customers."""

import hashlib

from app.db.session import run_in_transaction
from app.models import User, UserRole
from app.models.user import role_of
from tests.api_client import bulk_results

PASSWORD = "Pa55-wôrd <never> shown"
NOBODY = 2**62  # an ID that no test reaches
SHIPPING = {
    "first_name": "Ship",
    "last_name": "Ping",
    "company": "Sea Ltd",
    "address_1": "1 Quay",
    "address_2": "Dock 2",
    "city": "Bergen",
    "state": "Vestland",
    "postcode": "5003",
    "country": "NO",
}
BILLING = {name: f"Billing {value}" for name, value in SHIPPING.items()} | {
    "email": "bill@example.org",
    "phone": "+47 555 01 234",
}
FULL = {
    "email": "Ann.Lee@example.com",
    "username": "ann",
    "first_name": "Ann",
    "last_name": "Lee",
    "billing_address": BILLING,
    "shipping_address": SHIPPING,
}
# Fields that a response contains only on request, with their defaults.
BLANK = {"tags": []}
# A value of each of them, as a request gives it and as a response shows it.
GIVEN = {"tags": ["VIP", "a b", "vip"]}
SHOWN = {"tags": ["vip", "a b"]}


def avatar(email):
    digest = hashlib.md5(email.lower().encode()).hexdigest()
    return f"https://secure.gravatar.com/avatar/{digest}?s=96&d=mm&r=g"


def expected(got, **over):
    """The object of a new customer, with its two generated values."""
    email = over["email"]
    return {
        "id": got["id"],
        "created_at": got["created_at"],
        "email": email,
        "first_name": "",
        "last_name": "",
        "username": email.partition("@")[0],
        "role": "customer",
        "last_order_id": None,
        "last_order_date": None,
        "orders_count": 0,
        "total_spent": "0.00",
        "avatar_url": avatar(email),
        "billing_address": dict.fromkeys(BILLING, ""),
        "shipping_address": dict.fromkeys(SHIPPING, ""),
    } | over


def rejection(response):
    """Return the status of an error response and the code of its only entry."""
    (entry,) = response.get_json()["errors"]
    return response.status_code, entry["code"]


def refusal(response):
    """As ``rejection``, with the parameter."""
    (entry,) = response.get_json()["errors"]
    return response.status_code, entry["code"], entry.get("param")


def create(client, **fields):
    return client.post("/customers", {"customer": {"email": "new@example.com"} | fields})


def read(client, customer_id):
    response = client.get(f"/customers/{customer_id}")
    assert response.status_code == 200, response.get_json()
    return response.get_json()["customer"]


def edit(client, customer_id, **changes):
    return client.put(f"/customers/{customer_id}", {"customer": changes})


def bulk(client, *items, method="POST"):
    """Send items and return their results."""
    return bulk_results(client, "customer", *items, method=method)


def customers_of(client):
    return client.get("/customers", {"filter[role]": "all"}).get_json()["customers"]


def emails(client):
    listed = client.get("/customers", {"filter[limit]": -1}).get_json()["customers"]
    return [customer["email"] for customer in listed]


def shown(response):
    return f"{response.status} {response.headers} {response.get_data(as_text=True)}"


def give_role(app, user_id, role, position):
    with app.app_context():

        def give(session):
            registered_at = session.get_one(User, user_id).created_at
            row = role_of(user_id, role, registered_at)
            session.add(UserRole(**row | {"position": position}))

        run_in_transaction(give)
