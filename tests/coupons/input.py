"""Requests with one value in fields of a coupon, sent to a create and an update."""

import json

from tests.api_client import refused_params, reply
from tests.coupons.calls import read

MAX = 2**63 - 1
COUNTS = ["usage_limit", "usage_limit_per_user", "limit_usage_to_x_items", "usage_count"]
AMOUNTS = ["amount", "minimum_amount", "maximum_amount"]
IDS = ["product_ids", "exclude_product_ids", "product_category_ids", "exclude_product_category_ids"]
FLAGS = ["individual_use", "enable_free_shipping", "exclude_sale_items"]
TEXTS = ["code", "type", "description"]


class Raw(str):
    """JSON text as it goes over the wire, where Python would write another."""

    __slots__ = ()


def send(client, method, path, fields, value):
    written = str(value) if isinstance(value, Raw) else json.dumps(value)
    members = [f'"{field}": {written}' for field in fields]
    if method == "POST" and "code" not in fields:
        members.append('"code": "new"')
    return client.request(method, path, data=f'{{"coupon": {{{", ".join(members)}}}}}')


def stored(client, make_coupon, fields, before, value):
    """Send a value in fields of an update and of a create, and return the two coupons."""
    path = f"/coupons/{make_coupon(**dict.fromkeys(fields, before))['id']}"
    coupons = []
    for method, target, status in (("PUT", path, 200), ("POST", "/coupons", 201)):
        response = send(client, method, target, fields, value)
        assert response.status_code == status, (value, response.get_json())
        coupons.append(response.get_json()["coupon"])
        assert read(client, coupons[-1]["id"]) == coupons[-1]
        client.delete(f"/coupons/{coupons[-1]['id']}")  # the next one shall have the same code
    return coupons


def assert_stored(client, make_coupon, expected, before, given):
    """Each of the given values is stored in the fields as expected."""
    for value in given:
        for coupon in stored(client, make_coupon, list(expected), before, value):
            assert {name: coupon[name] for name in expected} == expected, value


def assert_rejected(client, make_coupon, fields, given):
    """Each of the given values is refused. Each field is named, and nothing is stored."""
    old = make_coupon()
    names = sorted(f"coupon.{field}" for field in fields)
    for value in given:
        for method, path in (("PUT", f"/coupons/{old['id']}"), ("POST", "/coupons")):
            response = send(client, method, path, fields, value)
            assert sorted(refused_params(response)) == names, (method, value)
    assert reply(client.get("/coupons")) == (200, {"coupons": [old]})
