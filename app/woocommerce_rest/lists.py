"""Parameters and results that the lists of several resources share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from app.api.responses import json_bytes
from app.woocommerce_rest.arguments import Arguments, Schema
from app.woocommerce_rest.frame import Call, Reply

INTEGER: Schema = {"type": "integer"}
ABSOLUTE: Schema = {"type": "integer", "is_absolute": True}
DECIMALS: Schema = {**ABSOLUTE, "default": 2}
MAX_DECIMALS = 8
TEXT: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": "boolean"}
IDS: Schema = {"type": "array", "items": INTEGER, "default": [], "is_checked": False}
INTEGERS: Schema = {"type": "array", "items": INTEGER}
MONEY: Schema = {"type": ["number", "string"], "format": "money"}
DATE: Schema = {"type": "string", "format": "date-time"}
ANYTHING: Schema = {}
CONTEXT: Schema = {"type": "string", "enum": ["view", "edit"], "default": "view"}
FORCE: Schema = {"type": "boolean", "default": False}
METADATA: Schema = {
    "type": "array",
    "items": {"type": "object", "properties": {"id": INTEGER, "key": TEXT, "value": ANYTHING}},
}
ONE: Arguments = {"context": CONTEXT}
VIEW: Arguments = {"context": {**CONTEXT, "enum": ["view"]}}
"""The parameters of records that nobody can change."""
TIMES = ("after", "before", "modified_after", "modified_before")


def collection(
    *orderby: str, default: str = "date", order: str = "desc", times: Sequence[str] = TIMES
) -> dict[str, Schema]:
    """Return the parameters of a list.

    Args:
        orderby: the sort keys.
        default: the default sort key.
        order: the default direction.
        times: names of the parameters that compare times.
    """
    return {
        "context": CONTEXT,
        "page": {"type": "integer", "default": 1, "minimum": 1},
        "per_page": {"type": "integer", "default": 10, "minimum": 1, "maximum": 100},
        "search": TEXT,
        **dict.fromkeys(times, DATE),
        **({"dates_are_gmt": FORCE} if times else {}),
        "exclude": IDS,
        "include": IDS,
        "offset": ABSOLUTE,
        "order": {"type": "string", "default": order, "enum": ["asc", "desc"]},
        "orderby": {"type": "string", "default": default, "enum": list(orderby)},
    }


_BOUNDS = {
    "after": ("created_at", "after"),
    "before": ("created_at", "before"),
    "modified_after": ("updated_at", "after"),
    "modified_before": ("updated_at", "before"),
}


def record_query(call: Call) -> dict[str, Any]:
    """Return the arguments of a ``RecordQuery`` for the parameters of a list."""
    args = call.args
    is_gmt = args.get("dates_are_gmt", False)
    times = {
        bound: call.site.moment(call.given[name], is_gmt=is_gmt)
        for name, bound in _BOUNDS.items()
        if name in call.given
    }
    return {
        "page": args["page"],
        "size": args["per_page"],
        "offset": args.get("offset"),
        "order": args["order"],
        "orderby": args["orderby"],
        "search": (args.get("search") or "").strip(),
        "times": times,
        "include": tuple(args["include"] or ()),
        "exclude": tuple(args["exclude"] or ()),
    }


def page(
    call: Call, objects: Iterable[Any], total: int, defaults: Mapping[str, Any] | None = None
) -> Reply:
    """Return a page of a list. ``_links`` of its objects appear only if they are selected.

    A whole object becomes JSON at once, because collecting the garbage of a page of live objects
    takes longer than writing them.
    """
    args = call.args
    whole = not call.fields
    shown = [orjson.Fragment(json_bytes(each)[:-1]) if whole else each for each in objects]
    return Reply(
        shown, total=total, size=args["per_page"], page=args["page"], defaults=defaults or {}
    )


def decimals(call: Call) -> int:
    """Return the decimals of amounts, ``dp``."""
    given: int = call.given.get("dp", 2)
    return min(given, MAX_DECIMALS)
