"""Bulk requests for the tests of customers."""

import hashlib
import json


def bulk(client, *items, method="POST"):
    """Send items and return their results."""
    response = client.request(method, "/customers/bulk", json={"customers": items})
    assert response.status_code == 200, response.get_json()
    body = json.loads(response.data)  # the app's own reader has no integers beyond 64 bits
    assert set(body) == {"customers"}
    return body["customers"]


def outcome(result):
    """The id and the code of a failed item, in the one shape that the specification gives."""
    assert set(result) == {"id", "error"}
    assert set(result["error"]) == {"code", "message"}
    assert result["error"]["message"]
    return result["id"], result["error"]["code"]


def read(client, customer_id):
    return client.get(f"/customers/{customer_id}").get_json()["customer"]


def emails(client):
    listed = client.get("/customers", {"filter[limit]": -1}).get_json()["customers"]
    return [customer["email"] for customer in listed]


def avatar(email):
    digest = hashlib.md5(email.lower().encode()).hexdigest()
    return f"https://secure.gravatar.com/avatar/{digest}?s=96&d=mm&r=g"
