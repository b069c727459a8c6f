"""Requests and values for the tests of customers."""

import hashlib

from app.db.session import run_in_transaction
from app.models import User, UserRole
from app.models.user import role_of

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
BILLING = {
    "first_name": "Bill",
    "last_name": "Ing",
    "company": "Land Ltd",
    "address_1": "3 Road",
    "address_2": "Floor 4",
    "city": "Oslo",
    "state": "Viken",
    "postcode": "0150",
    "country": "NO",
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


def read(client, customer_id):
    response = client.get(f"/customers/{customer_id}")
    assert response.status_code == 200, response.get_json()
    return response.get_json()["customer"]


def edit(client, customer_id, **changes):
    return client.put(f"/customers/{customer_id}", {"customer": changes})


def give_role(app, user_id, role, position):
    with app.app_context():

        def give(session):
            registered_at = session.get_one(User, user_id).created_at
            row = role_of(user_id, role, registered_at)
            session.add(UserRole(**row | {"position": position}))

        run_in_transaction(give)
