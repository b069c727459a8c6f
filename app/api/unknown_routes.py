"""The error for a path without a route, with a suggestion."""

from __future__ import annotations

import re
from collections import defaultdict

from flask import current_app, request

from app.conversions.text import nearest_name
from app.errors import ShopError

_ID = re.compile(r"<id:\w+>")
_VARIABLE = re.compile(r"<(?:\w+:)?(\w+)>")


def unknown_route() -> ShopError:
    """Return the error for the path of the current request."""
    error = ShopError("shop_api_no_route")
    suggestion = "" if request.url_rule else _suggestion(request.path)
    return error.with_message(f"{error.message} {suggestion}") if suggestion else error


def _suggestion(path: str) -> str:
    """Return a sentence about the paths that exist, or an empty string if none is similar."""
    prefix = current_app.config["SHOP_URL_PREFIX"]
    if path.removeprefix(prefix).split("/")[1:2] == ["wp-json"]:
        legacy = f", and the legacy API at {prefix}/wc-api/v3"
        return (
            f"The API is located at {prefix or '/'}, for example {prefix}/orders"
            f"{legacy if current_app.config['SHOP_LEGACY_API'] else ''}."
        )
    # Templates such as /orders/{id}, as in the OpenAPI document, that differ in one part.
    parts = re.sub(r"(?<=/)[0-9]+(?=/|$)", "{id}", path.rstrip("/")).split("/")
    similar: dict[int, dict[str, str]] = defaultdict(dict)
    for rule in current_app.url_map.iter_rules():
        if rule.rule.count("/") == len(parts) - 1:
            template = _VARIABLE.sub(r"{\1}", _ID.sub("{id}", rule.rule))
            known = template.split("/")
            different = [number for number, part in enumerate(known) if part != parts[number]]
            if not different:
                return ""  # the route exists for other values or methods
            if len(different) == 1:
                similar[different[0]][known[different[0]]] = template
    for number, templates in similar.items():
        if nearest := nearest_name(parts[number], templates):
            return f"Did you mean {templates[nearest]}?"
    return ""
