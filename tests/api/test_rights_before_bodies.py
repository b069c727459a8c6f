"""A large body of a caller without the right is rejected before any byte of it is read."""

import re
from base64 import b64encode
from io import BytesIO

from app.auth.principals import ROLES, Capability

LARGEST = 64 * 1024
MOUNTS = ("", "/wc-api/v2", "/wc-api/v3", "/wp-json/wc/v3")
HTTPS = "https://shop.example"


class Unread(BytesIO):
    """A body that fails the test if it is read."""

    def read(self, *_):
        raise AssertionError("the body was read")

    readinto = readline = readlines = read


def operations(app):
    """The operations with a body: method, path, and the part of the path without the mount."""
    apis = app.extensions["flask-smorest"]["apis"].values()
    documents = {each["ext_obj"].path.rstrip("/"): each["ext_obj"].spec for each in apis}
    response = app.test_client().get("/wp-json/wc/v3/openapi.json", base_url=HTTPS)
    documents["/wp-json/wc/v3"] = response.get_json()
    assert set(documents) == set(MOUNTS)
    for mount, document in documents.items():
        paths = document["paths"] if isinstance(document, dict) else document._paths
        for path, methods in paths.items():
            own = path if path.startswith(mount) else mount + path
            for method, operation in methods.items():
                if isinstance(operation, dict) and "requestBody" in operation:
                    yield mount, method.upper(), re.sub(r"\{\w+\}", "1", own)


def send(app, method, path, key=None, body=None, **headers):
    """The response to a body that is too large, or to a small one."""
    if key:
        pair = b64encode(f"{key.consumer_key}:{key.consumer_secret}".encode()).decode()
        headers["Authorization"] = f"Basic {pair}"
    large = {
        "input_stream": Unread(),
        "content_type": "application/json",
        "environ_overrides": {"CONTENT_LENGTH": str(LARGEST + 1)},
    }
    sent = large if body is None else {"json": body}
    return app.test_client().open(path, method=method, base_url=HTTPS, headers=headers, **sent)


def code(response):
    body = response.get_json()
    return response.status_code, body["code"] if "code" in body else body["errors"][0]["code"]


def test_large_bodies_of_strangers_are_not_read(app):
    seen = set()
    for mount, method, path in operations(app):
        status, reason = code(send(app, method, path))
        assert status == 401, (method, path)
        assert re.search("_authentication_error|_rest_cannot_", reason), (method, path, reason)
        seen.add(mount)
    assert seen == set(MOUNTS)


def test_large_bodies_without_the_capability_are_not_read(app, client_for, monkeypatch):
    monkeypatch.setitem(ROLES, "subscriber", frozenset({Capability.READ_EVENTS}))
    for role in "customer", "subscriber":
        key = client_for(role).key
        for _mount, method, path in operations(app):
            if (
                path == "/imports"
            ):  # says in the query what it writes, so its right is checked first
                status, reason = code(send(app, method, f"{path}?kind=coupons", key))
                assert (status, reason) == (401, "shop_api_user_cannot_import")
                continue
            status, reason = code(send(app, method, path, key))
            assert (status, reason.partition("_request_")[2]) == (413, "entity_too_large"), path


def test_the_largest_body_without_the_capability_gets_the_specified_error(app, client_for):
    key = client_for("customer").key
    long = {"other": "x" * (LARGEST - 100)}
    for mount, missing, denied in (
        ("", "shop_api_missing_coupon_data", "shop_api_user_cannot_create_coupon"),
        (
            "/wc-api/v3",
            "woocommerce_api_missing_coupon_data",
            "woocommerce_api_user_cannot_create_coupon",
        ),
    ):
        assert code(send(app, "POST", f"{mount}/coupons", key, long)) == (400, missing)
        assert code(send(app, "POST", f"{mount}/coupons", key, {"coupon": long})) == (401, denied)
    path = "/wp-json/wc/v3/coupons"
    assert code(send(app, "POST", path, key, long)) == (400, "rest_missing_callback_param")
    named = {"code": "x", **long}
    assert code(send(app, "POST", path, key, named)) == (403, "woocommerce_rest_cannot_create")
    assert code(send(app, "POST", path, None, named)) == (401, "woocommerce_rest_cannot_create")


def test_a_large_body_is_read_with_one_of_the_capabilities(app, client_for, monkeypatch):
    monkeypatch.setitem(ROLES, "subscriber", frozenset({Capability.PROCESS_SHOP_ORDERS}))
    key = client_for("subscriber").key
    long = "x" * 2 * LARGEST
    for path, body in (
        ("/orders/bulk", {"orders": [{"id": 9, "other": long}]}),
        ("/wp-json/wc/v3/orders/batch", {"update": [{"id": 9, "other": long}]}),
    ):
        assert send(app, "POST", path, key, body).status_code == 200
    refused = send(app, "POST", "/orders", key, {"order": {"other": long}})
    assert code(refused) == (413, "shop_api_request_entity_too_large")
