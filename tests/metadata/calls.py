"""Requests for the tests of metadata."""

from itertools import count

KINDS = ("coupon", "customer", "order")
"""The kinds of records that have metadata and are listed."""

_numbers = count(1)


def fields_of_new(kind):
    """The fields that a new record of a kind requires."""
    number = next(_numbers)
    return {
        "coupon": {"code": f"code-{number}"},
        "customer": {"email": f"customer-{number}@example.com"},
        "order": {},
    }.get(kind, {})


def created(client, kind, **fields):
    """Create a record and return it as the response shows it."""
    response = client.post(f"/{kind}s", {kind: fields_of_new(kind) | fields})
    assert response.status_code == 201, response.get_json()
    return response.get_json()[kind]


def updated(client, kind, record_id, **fields):
    """Update a record and return it as the response shows it."""
    response = client.put(f"/{kind}s/{record_id}", {kind: fields})
    assert response.status_code == 200, response.get_json()
    return response.get_json()[kind]


def shown(client, kind, record_id, **query):
    """A record as a read shows it."""
    response = client.get(f"/{kind}s/{record_id}", query)
    assert response.status_code == 200, response.get_json()
    return response.get_json()[kind]


def stored(client, kind, record_id):
    """The metadata of a record."""
    return shown(client, kind, record_id, fields="metadata")["metadata"]


def found(client, kind, **query):
    """The IDs that a list shows, and the number that the count returns."""
    listed = client.get(f"/{kind}s", query)
    assert listed.status_code == 200, listed.get_json()
    number = client.get(f"/{kind}s/count", query).get_json()["count"]
    ids = sorted(record["id"] for record in listed.get_json()[f"{kind}s"])
    assert number == int(listed.headers["X-Total"]) == len(ids)
    return ids


def bracketed(**conditions):
    """The parameters of conditions in the form with brackets."""
    return {f"filter[metadata][{key}]": value for key, value in conditions.items()}
