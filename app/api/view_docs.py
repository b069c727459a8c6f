"""Documentation of views that other modules read.

The decorators of a blueprint store it on the view, in the attribute ``_apidoc`` of flask-smorest.
"""

from collections.abc import Iterator
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
    documented_view._apidoc = {**getattr(view, "_apidoc", {}), name: value}
    return view


def documented(view: object, name: str, default: object = None) -> Any:
    """Return a part of the documentation of a view."""
    return getattr(view, "_apidoc", {}).get(name, default)


def document_rights(view: object) -> None:
    """Store the error codes of the rights of a view, one of which is enough to run it.

    They are those of ``Blueprint.rights``, or the first of its documented errors that is in
    ``CAPABILITIES``. An operation without rights has none.
    """
    codes = *documented(view, "codes", ()), *(code for code, _ in documented(view, "codes_as", ()))
    found = [code for code in codes if code in CAPABILITIES][:1]
    document(view, "rights", documented(view, "rights", found))


def has_query(view: object) -> bool:
    """Return whether a schema loads the query of a view."""
    parameters = documented(view, "arguments", {}).get("parameters", ())
    return any(parameter["in"] == "query" for parameter in parameters)


def response_schemas(view: object) -> Iterator[type[Schema] | Schema | None]:
    """Yield the schemas of the documented responses of a view."""
    responses = documented(view, "response", {}).get("responses", {})
    for response in responses.values():
        yield from (part.get("schema") for part in response if isinstance(part, dict))
