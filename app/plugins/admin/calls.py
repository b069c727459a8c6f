"""Calls of the API within a page, and the same requests as curl and as Python.

A page is a caller of the API with the principal of its session. ``call`` runs the view of an
operation as a strict request, without a connection: the same checks, schemas, services and
representations, so the pages have no rules of their own.
"""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from pprint import pformat
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import orjson
from flask import Response, current_app, g, request, url_for
from flask.ctx import RequestContext
from marshmallow import ValidationError
from werkzeug.datastructures import Headers

from app.api.authentication import current_principal, require_operation
from app.api.blueprint import Blueprint
from app.api.idempotency import idempotent
from app.api.request_parser import apply_strict_handling
from app.api.responses import SENTENCES
from app.api.view_docs import documented
from app.auth.api_keys import require_permission
from app.errors import Sentence, ShopError
from app.plugins.admin import texts
from app.schemas.base import Base
from app.schemas.coupons.coupon import CouponSchema
from app.schemas.customers import CustomerSchema
from app.schemas.fields.output import on_request
from app.schemas.loading import instance_of, invalid_params

Record = dict[str, Any]
"""A record as a response contains it."""

_OPERATIONS = "shop_api_admin_operations"  # on app.extensions


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """An operation of the API."""

    endpoint: str
    method: str  # the first of several
    variables: set[str]  # in its path
    blueprint: Blueprint
    view: Any

    def require(self) -> None:
        """Raise ShopError unless the key of the session allows the operation."""
        blueprint = self.blueprint
        require_operation(
            current_principal(),
            self.method,
            blueprint.resource or "",
            self.view,
            any_permission=blueprint.any_permission,
        )


def operations() -> dict[str, ApiOperation]:
    """Return the operations of the native API and of plugins by the names of their views."""
    found: dict[str, ApiOperation] | None = current_app.extensions.get(_OPERATIONS)
    if found is None:
        found = {}
        for rule in current_app.url_map.iter_rules():
            mount, _, name = rule.endpoint.rpartition(".")
            blueprint = current_app.blueprints.get(mount)
            # The native API comes first; other dialects have views with the same names.
            if isinstance(blueprint, Blueprint) and blueprint.name == mount and name not in found:
                view: object = current_app.view_functions[rule.endpoint]
                method = documented(view, "methods", ["GET"])[0]
                found[name] = ApiOperation(rule.endpoint, method, rule.arguments, blueprint, view)
        current_app.extensions[_OPERATIONS] = found
    return found


def require(*names: str | tuple[str, ...]) -> None:
    """Raise ShopError unless the session may run operations, in the order of the API's checks.

    Args:
        names: the names of their views. Of several in a tuple, one is enough.
    """
    for each in names:
        operation = operations()[
            each if isinstance(each, str) else next(filter(can, each), each[0])
        ]
        operation.require()
        for code in documented(operation.view, "rights")[:1]:
            current_principal().require(code)


def can(*names: str | tuple[str, ...]) -> bool:
    """Return whether the session may run operations, as ``require`` checks it."""
    try:
        require(*names)
    except ShopError:
        return False
    return True


def require_reading() -> None:
    """Raise ShopError unless the key of the session may read, since its rights can be reduced."""
    require_permission(current_principal(), "GET")


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request to the API, as *As a request* shows it."""

    method: str
    url: str  # absolute, with its query
    body: object = None
    file: str = ""  # name of a CSV file in place of the body

    @property
    def label(self) -> str:
        """The method and the path."""
        return f"{self.method} {urlsplit(self.url).path}"


@dataclass(frozen=True, slots=True)
class Reply:
    """The response to a call."""

    request: ApiRequest
    body: Any
    headers: Headers = field(repr=False)

    @property
    def content(self) -> Any:
        """The value of its wrapper key: a record or a list."""
        return next(iter(self.body.values()))

    @property
    def total(self) -> int:
        return int(self.headers.get("X-Total", 0))

    @property
    def pages(self) -> int:
        return int(self.headers.get("X-TotalPages", 1))

    @property
    def is_complete(self) -> bool:
        """Whether no more records match than ``total``."""
        return "X-Total-Complete" not in self.headers


def api_request(
    name: str,
    *,
    query: Mapping[str, object] | None = None,
    body: object = None,
    file: str = "",
    **path: Any,
) -> ApiRequest:
    """Return the request that ``call`` sends for the same arguments, without sending it.

    Args:
        file: name of a CSV file that is sent in place of the body.
    """
    operation = operations()[name]
    path = {key: value for key, value in path.items() if key in operation.variables}
    sent = {key: value for key, value in (query or {}).items() if value is not None and value != ""}
    url = url_for(operation.endpoint, **path, _external=True)
    return ApiRequest(operation.method, f"{url}?{urlencode(sent)}" if sent else url, body, file)


def loaded_query(schema: type[Base], wanted: Mapping[str, str]) -> dict[str, object]:
    """Return the parameters of a list as a service expects them. Empty text is omitted.

    Raises:
        InvalidParams: a value is invalid.
    """
    sent = {f"filter[{name}]": value for name, value in wanted.items() if value}
    try:
        loaded: dict[str, object] = instance_of(schema).load(sent)
    except ValidationError as error:
        raise invalid_params(error, depth=1) from None
    return loaded


def call(
    name: str,
    *,
    query: Mapping[str, object] | None = None,
    body: object = None,
    headers: Mapping[str, str] | None = None,
    shown: Callable[[str | Sentence], str] = texts.of_api,
    once: bool = False,
    **path: Any,
) -> Reply:
    """Run an operation of the API for the session, and return its response.

    Args:
        name: the name of its view, such as ``update_coupon``.
        query: its parameters. None and empty text are omitted.
        body: its JSON body, or the content of a CSV file.
        headers: further headers, such as ``If-Match`` and ``Idempotency-Key``.
        shown: returns the text of a sentence with values in the response.
        once: whether an ``Idempotency-Key`` applies to the operation, although the API ignores it.
        path: the variables in its path. Others are ignored.

    Raises:
        ShopError: the error of the API.
    """
    operation = operations()[name]
    if once:
        operation = replace(operation, view=idempotent(operation.view))
    sent = api_request(name, query=query, body=body, **path)
    response = _response(operation, sent, headers, shown)
    data = response.get_data()
    return Reply(sent, orjson.loads(data) if data else None, response.headers)


def _response(
    operation: ApiOperation,
    sent: ApiRequest,
    headers: Mapping[str, str] | None = None,
    shown: Callable[[str | Sentence], str] = str,
) -> Response:
    is_file = isinstance(sent.body, bytes)
    context = current_app.test_request_context(
        sent.url,
        method=sent.method,
        headers={"Prefer": "handling=strict", **(headers or {})},
        data=sent.body if is_file else None,
        json=None if is_file else sent.body,
        content_type="text/csv" if is_file else None,
        environ_overrides={"REMOTE_ADDR": request.remote_addr, SENTENCES: shown},
    )
    # A copy of the context, so that the request of the page is the current one again afterwards.
    response: Response = copy_context().run(_run, operation, context, texts.language())
    return response


def download(name: str, query: Mapping[str, str]) -> Response:
    """Return the response of a report of the API as a CSV file."""
    return _response(operations()[name], api_request(name, query={**query, "format": "csv"}))


def _run(operation: ApiOperation, context: RequestContext, language: str) -> Response:
    context.push()
    g.admin_language = language
    operation.require()
    apply_strict_handling()
    response: Response = operation.view(**(context.request.view_args or {}))
    return response


_SHOWN: Mapping[str, type[Base]] = {"get_coupon": CouponSchema, "get_customer": CustomerSchema}
"""Schemas with fields that a response contains only on request, by the operation."""


def absent_from_lists(name: str) -> Sequence[str]:
    """Return the fields that ``record_of`` reads in addition to those that a list shows."""
    return on_request(_SHOWN[name]) if name in _SHOWN else ()


def record_of(name: str, *, with_metadata: bool = False, **path: Any) -> tuple[Record, str]:
    """Return the record that a read returns, with all fields of its form, and its entity tag."""
    reply = call(name, **path)
    content, tag = reply.content, reply.headers.get("ETag", "")
    if schema := _SHOWN.get(name):
        # A second read, because a write compares the tag with that of a read without ``fields``.
        names = ",".join(each for each in schema().fields if with_metadata or each != "metadata")
        query = {"fields": names, "meta": "true" if with_metadata else ""}
        content = call(name, query=query, **path).content
    return content, tag


def form_headers(etag: str = "") -> dict[str, str]:
    """Return the headers of a write of the submitted form: its ID and the entity tag."""
    sent = {"Idempotency-Key": request.form.get("_form", ""), "If-Match": etag}
    # A header contains no line breaks.
    return {name: " ".join(value.split()) for name, value in sent.items() if value}


def curl(sent: ApiRequest) -> str:
    """Return a command for a shell. ``$KEY`` is the consumer key and the secret."""
    parts = ['curl -u "$KEY"']
    if sent.method != "GET":
        parts.append(f"-X {sent.method}")
    parts.append(shlex.quote(sent.url))
    if sent.file:
        parts.append("-H 'Content-Type: text/csv'")
        parts.append(f"--data-binary {shlex.quote(f'@{sent.file}')}")
    if sent.body is not None:
        parts.append("-H 'Content-Type: application/json'")
        parts.append(f"-d {shlex.quote(json.dumps(sent.body, ensure_ascii=False))}")
    return " \\\n  ".join(parts)


def python(sent: ApiRequest) -> str:
    """Return a program with ``requests``. KEY and SECRET are in the environment."""
    url = urlsplit(sent.url)
    arguments = [repr(url._replace(query="").geturl())]
    if query := parse_qsl(url.query, keep_blank_values=True):
        # A list of pairs, if a parameter is repeated.
        params = dict(query) if len(dict(query)) == len(query) else query
        arguments.append(f"params={params!r}")
    if sent.file:
        arguments.append(f'data=open({sent.file!r}, "rb")')
        arguments.append('headers={"Content-Type": "text/csv"}')
    if sent.body is not None:
        arguments.append(f"json={pformat(sent.body, width=88, sort_dicts=False)}")
    arguments.append('auth=(os.environ["KEY"], os.environ["SECRET"])')
    inner = "".join(f"    {each},\n" for each in arguments)
    return (
        f"import os\n\nimport requests\n\nresponse = requests.{sent.method.lower()}(\n{inner})\n"
        "response.raise_for_status()\nprint(response.json())"
    )
