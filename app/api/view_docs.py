"""Documentation of views that other modules read.

The decorators of a blueprint store it on the view, in the attribute ``_apidoc`` of flask-smorest.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from flask import current_app, request
from marshmallow import Schema

from app.auth.principals import CAPABILITIES

View = TypeVar("View")
"""A view, which decorators return."""


def current_view() -> object:
    """Return the view of the current request."""
    return current_app.view_functions[request.endpoint or ""]


def document(view: View, name: str, value: object) -> View:
    """Store a part of the documentation of a view, and return the view."""
    documented_view: Any = view
    # A new dict, because flask-smorest shares it with the undecorated view.
    documented_view._apidoc = {**_documentation(view), name: value}
    return view


def documented(view: object, name: str, default: object = None) -> Any:
    """Return a part of the documentation of a view."""
    return _documentation(view).get(name, default)


def resources_of(view: object) -> Sequence[str]:
    """Return the resources that a key must allow, in addition to that of the blueprint."""
    resources: Sequence[str] = documented(view, "resources", ())
    return resources


def rights_of(view: object) -> Sequence[str]:
    """Return the error codes of the rights of a view, one of which is enough to run it.

    They are those of ``Blueprint.rights``, or the first of its documented errors that is in
    ``CAPABILITIES``. An operation without rights has none.
    """
    rights: Sequence[str] = documented(view, "rights", ())
    codes = [
        *documented(view, "codes", ()),
        *(code for code, _ in documented(view, "codes_as", ())),
    ]
    return rights or [code for code in codes if code in CAPABILITIES][:1]


def has_query(view: object) -> bool:
    """Return whether a schema loads the query of a view."""
    parameters = documented(view, "arguments", {}).get("parameters", ())
    return any(parameter["in"] == "query" for parameter in parameters)


def response_schemas(view: object) -> Iterator[type[Schema] | Schema | None]:
    """Yield the schemas of the documented responses of a view."""
    responses = documented(view, "response", {}).get("responses", {})
    for response in responses.values():
        yield from (part.get("schema") for part in response if isinstance(part, dict))


def _documentation(view: object) -> dict[str, object]:
    documentation: dict[str, object] = getattr(view, "_apidoc", {})
    return documentation
