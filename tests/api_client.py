"""A client of the API for tests, and short forms of its responses."""

import json
import re
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from werkzeug.exceptions import HTTPException

from app.config import VERSION
from app.errors.codes import ERRORS


class Client:
    """Talks HTTP as one API key; checks each answer against the OpenAPI document.

    An app with other settings has the same operations, so the document of one app is enough.
    Operations of plugins are looked up in the document of their own app, if the test has read it: to
    build a document takes as long as a hundred requests.
    """

    described = None  # the first app of this process

    def __init__(self, app, key=None):
        self.app = app
        self.key = key
        self.http = app.test_client()

    def request(self, method, path, **kwargs):
        headers = dict(kwargs.pop("headers", {}))
        if self.key:
            pair = f"{self.key.consumer_key}:{self.key.consumer_secret}"
            headers.setdefault("Authorization", f"Basic {b64encode(pair.encode()).decode()}")
        # A stream that nobody reads would end its session when the garbage collector finds it, in the
        # middle of another statement of this thread. Tests of streams use ``http`` or close them.
        kwargs.setdefault("buffered", True)
        response = self.http.open(path, method=method, headers=headers, **kwargs)
        self._check(method, response)
        return response

    def _check(self, method, response):
        assert response.headers["X-Request-Id"]
        assert response.headers.getlist("X-Shop-Version") == [VERSION]
        if not response.is_json or method == "HEAD":
            return
        body = response.get_json()
        if response.status_code >= 400:
            assert set(body) == {"errors"}
            assert all({"code", "message"} <= set(entry) for entry in body["errors"])
        operation = self._operation(response.request)
        if operation:
            documented = operation["responses"].get(str(response.status_code))
            assert documented, f"{response.status_code} is not documented"
            if response.status_code >= 400:
                examples = documented["content"]["application/json"]["examples"]
                assert {entry["code"] for entry in body["errors"]} <= set(examples)

    def _operation(self, request):
        override = request.headers.get("X-HTTP-Method-Override", "").strip()
        method = request.args.get("_method", override or request.method).upper()
        adapter = self.app.create_url_adapter(None) or self.app.url_map.bind("localhost")
        try:
            rule, _ = adapter.match(request.path, method=method, return_rule=True)
        except HTTPException:
            return None
        prefix = self.app.config["SHOP_URL_PREFIX"]
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule.removeprefix(prefix))
        for app, shown in (self.described, path), (self.app, prefix + path):
            apis = app.extensions["flask-smorest"]["apis"].values() if app else ()
            # The native one is at no path, so that the longest path that fits is the mount's.
            api = max(
                (each["ext_obj"] for each in apis if path.startswith(each["ext_obj"].path)),
                key=lambda each: len(each.path),
                default=None,
            )
            if api is None or (app is not self.described and api._pending):
                continue
            if operation := api.spec._paths.get(shown, {}).get(method.lower()):
                return operation
        return None

    def get(self, path, query=None, **kwargs):
        return self.request("GET", path, query_string=query, **kwargs)

    def post(self, path, json=None, **kwargs):
        return self.request("POST", path, **({"json": json} if json is not None else {}), **kwargs)

    def put(self, path, json=None, **kwargs):
        return self.request("PUT", path, **({"json": json} if json is not None else {}), **kwargs)

    def delete(self, path, query=None, **kwargs):
        return self.request("DELETE", path, query_string=query, **kwargs)


def without_key(statements):
    """The statements without the lookup of the key, which is cached for a second."""
    return [statement for statement in statements if "api_keys" not in statement]


def reply(response):
    """The status and the body of a response."""
    return response.status_code, response.get_json()


def refusal(code, param=None, *, words=None, **details):
    """The reply that the table of errors fixes for a code, or with a more precise message."""
    status, message = ERRORS[code]
    entry = {"code": code, "message": words or message.format(param=param, **details)}
    return status, {"errors": [entry | ({"param": param} if param else {})]}


def without_suggestion(response):
    """The reply without a suggestion at the end of its only message."""
    status, body = reply(response)
    (error,) = body["errors"]
    error["message"] = error["message"].partition(" Did you mean ")[0]
    return status, body


def failure(code, coupon_id=0, **details):
    """The result of a bulk item that the table of errors fixes for a code."""
    message = ERRORS[code][1].format(**details)
    return {"id": coupon_id, "error": {"code": code, "message": message}}


def bulk_results(client, name, *items, method="POST"):
    """Send the items of a bulk request and return their results."""
    key = f"{name}s"
    response = client.request(method, f"/{key}/bulk", json={key: list(items)})
    assert response.status_code == 200, response.get_json()
    body = json.loads(response.data)  # keeps the digits of an ID beyond 64 bits
    assert list(body) == [key]
    return body[key]


def failed_item(result):
    """The ID and the code of a failed item of a bulk request, in the form of the specification."""
    assert set(result) == {"id", "error"}
    assert set(result["error"]) == {"code", "message"}
    assert isinstance(result["error"]["message"], str)
    assert result["error"]["message"]
    return result["id"], result["error"]["code"]


def codes(response):
    """The status and the codes of an error whose words are nobody's promise."""
    return response.status_code, *(entry["code"] for entry in response.get_json()["errors"])


def refused_params(response):
    """The inputs that a response refuses to understand, in order."""
    assert response.status_code == 400, response.get_json()
    entries = response.get_json()["errors"]
    assert {entry["code"] for entry in entries} == {"shop_api_invalid_param"}
    return [entry["param"] for entry in entries]


def at_the_same_time(send, given):
    """The answers to ``send(each)`` in their order, each called by a thread of its own, together."""
    barrier = Barrier(len(given))

    def call(each):
        barrier.wait()
        return send(each)

    with ThreadPoolExecutor(len(given)) as pool:
        return list(pool.map(call, given))
