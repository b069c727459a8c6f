"""Tables and requests for the tests of coupon input."""

import json

import pytest

from tests.api_client import refused_params, reply

MAX = 2**63 - 1
COUNTS = ["usage_limit", "usage_limit_per_user", "limit_usage_to_x_items", "usage_count"]
AMOUNTS = ["amount", "minimum_amount", "maximum_amount"]


class Raw(str):
    """JSON text as it goes over the wire, where Python would write another."""

    __slots__ = ()


def table(*rows):
    """Parameters of (given, ...) rows; each one is called what JSON calls the given value."""
    return [pytest.param(*row, id=_name(row[0])) for row in rows]


def values(*given):
    return [pytest.param(value, id=_name(value)) for value in given]


def _name(value):
    written = str(value) if isinstance(value, Raw) else json.dumps(value)
    return written if len(written) <= 40 else f"{written[:30]}...{len(written)}"


def send(client, method, path, fields, value):
    written = str(value) if isinstance(value, Raw) else json.dumps(value)
    members = [f'"{field}": {written}' for field in fields]
    if method == "POST" and "code" not in fields:
        members.append('"code": "new"')
    body = '{"coupon": {' + ", ".join(members) + "}}"
    return client.request(method, path, data=body)


def both(client, make_coupon, fields, value, before):
    """Send a value in fields of an update and of a create, and return the stored values."""
    old = make_coupon(**dict.fromkeys(fields, before))
    response = send(client, "PUT", f"/coupons/{old['id']}", fields, value)
    assert response.status_code == 200, response.get_json()
    edited = response.get_json()["coupon"]
    assert reply(client.get(f"/coupons/{old['id']}")) == (200, {"coupon": edited})
    if "code" in fields:
        client.delete(f"/coupons/{old['id']}")  # the create shall have the same code
    response = send(client, "POST", "/coupons", fields, value)
    assert response.status_code == 201, response.get_json()
    created = response.get_json()["coupon"]
    assert reply(client.get(f"/coupons/{created['id']}")) == (200, {"coupon": created})
    return [{field: coupon[field] for field in fields} for coupon in (edited, created)]


def twice(fields, value):
    """Return the result of ``both`` if each of the fields has a value."""
    return [dict.fromkeys(fields, value)] * 2


def assert_rejected(client, make_coupon, fields, value):
    """Send an invalid value in fields of an update and of a create. Each field is named, and nothing is stored."""
    old = make_coupon()
    names = sorted(f"coupon.{field}" for field in fields)
    edit = send(client, "PUT", f"/coupons/{old['id']}", fields, value)
    create = send(client, "POST", "/coupons", fields, value)
    assert sorted(refused_params(edit)) == names
    assert sorted(refused_params(create)) == names
    assert reply(client.get("/coupons")) == (200, {"coupons": [old]})
