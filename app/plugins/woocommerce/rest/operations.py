"""What an operation and a route of this dialect are, and how the indexes describe them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from app.api.responses import json_bytes
from app.auth.principals import Capability, Principal
from app.plugins.woocommerce.rest import parameters
from app.plugins.woocommerce.rest.arguments import described
from app.plugins.woocommerce.rest.schemas import batch_schema, resolved
from app.plugins.woocommerce.rest.site import NAMESPACE, Record, Site
from app.schemas.base import Base
from app.services.common.bulk import Precondition

EDITABLE = ("POST", "PUT", "PATCH")


@dataclass(slots=True)
class Call:
    """A request that has passed all checks."""

    actor: Principal
    ids: Mapping[str, int]  # the variables of the path
    args: Record  # the converted parameters, with defaults. ``null`` is None
    given: Record  # those that the client sent and that are not null
    site: Site
    sent: Record  # all parameters as they were sent, also those that every operation has
    check: Precondition | None = None  # of ``If-Match``, for the record that is written

    @property
    def wanted(self) -> frozenset[str]:
        """The fields of objects that the request asks for, without parts of them; none for all."""
        return frozenset(
            name.partition(".")[0] for name in parameters.names_in(self.sent.get("_fields"))
        )

    def shown(self, body: object) -> Any:
        """Return a body with the fields that the request asks for."""
        if not (wanted := self.wanted):
            return body
        # Before the parts of names: a list has other values for fields that were not made.
        made = [_with(wanted, each) for each in body] if isinstance(body, list) else body
        # Addresses are JSON text, whose parts can be asked for.
        fields = orjson.loads(json_bytes(made))
        picked = parameters.selected(fields, self.sent["_fields"])
        if isinstance(body, dict) and "_links" in body:
            picked = {name: each for name, each in picked.items() if name != "_links"}
            picked["_links"] = body["_links"]
        return picked


def _with(wanted: Collection[str], value: object) -> object:
    """Return an object with the fields that are wanted."""
    if not isinstance(value, dict):
        return value
    return {name: each for name, each in value.items() if name in wanted}


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a route."""

    call: Callable[[Call], object]  # returns a response or its body
    action: str  # what it does, for the error of a missing capability
    needs: Sequence[Capability] = ()  # the capabilities; the operation checks further ones
    args: Base = field(default_factory=Base)  # its parameters, without those of the path
    summary: str = ""  # one sentence for the OpenAPI document
    result: type[Base] | None = None  # the schema of its result, or of the items of a list
    is_list: bool = False
    any_of: bool = False  # whether one of the capabilities suffices
    is_public: bool = False  # whether it needs no key
    name: str = ""  # its name in the OpenAPI document, by default that of its function

    @property
    def status(self) -> int:
        """Return the status of its success."""
        return 201 if self.action == "create" else 200

    def is_open_to(self, principal: Principal | None) -> bool:
        """Return whether a caller has the capabilities, or needs none."""
        if self.is_public or principal is None:
            return self.is_public
        able = map(principal.can, self.needs)
        return any(able) if self.any_of else all(able)


@dataclass(frozen=True, slots=True)
class Route:
    """A path with its operations by ``GET``, ``POST`` (create), ``EDIT`` and ``DELETE``."""

    path: str  # below the namespace
    operations: Mapping[str, Operation]
    also: tuple[str, ...] = ()  # resources that a key must allow in addition to that of the path

    @property
    def resource(self) -> str:
        """Return the first part of the path."""
        return self.path.strip("/").split("/")[0]

    def operation(self, method: str) -> Operation | None:
        """Return the operation of a method, or None."""
        method = "GET" if method == "HEAD" else method
        found = self.operations.get(method)
        return found or (self.operations.get("EDIT") if method in EDITABLE else None)


NOWHERE = Route("", {})
"""The route of an unknown path."""


def methods_of(names: Iterable[str]) -> list[str]:
    """Return the methods of operations in the order of the original."""
    return [method for name in names for method in (EDITABLE if name == "EDIT" else (name,))]


def description(route: Route, site: Site, *, with_schema: bool = False) -> object:
    """Return the description of a route, as the indexes show it, and ``OPTIONS`` with a schema."""
    if route is NOWHERE:
        return []
    endpoints = [
        {"methods": methods_of([name]), "args": described(operation.args)}
        for name, operation in route.operations.items()
    ]
    found: dict[str, object] = {
        "namespace": NAMESPACE,
        "methods": methods_of(route.operations),
        "endpoints": endpoints,
    }
    first = next(iter(route.operations.values()))
    if with_schema and first.action == "batch":
        found["schema"] = batch_schema()
    elif with_schema and first.result is not None:
        found["schema"] = resolved(first.result)
    if "<" not in route.path:
        found["_links"] = {"self": [{"href": f"{site.root}{route.path}"}]}
    return found
