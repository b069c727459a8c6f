"""Parameters and results that the lists of several resources share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from app.plugins.woocommerce.rest import arguments as arg
from app.plugins.woocommerce.rest.frame import Call, RestPage
from app.plugins.woocommerce.rest.site import Site
from app.plugins.woocommerce.rest.stored import RecordListQuery
from app.services.common.pagination import Total

Q = TypeVar("Q", bound=RecordListQuery)

_BOUNDS = {
    "after": ("created_at", "after"),
    "before": ("created_at", "before"),
    "modified_after": ("updated_at", "after"),
    "modified_before": ("updated_at", "before"),
}
TIMES = tuple(_BOUNDS)
_KEYS: arg.Schema = {"type": "array", "items": arg.TEXT, "default": []}
METADATA_KEYS: arg.Arguments = {"include_meta": _KEYS, "exclude_meta": _KEYS}
"""Which metadata the records of a list show (wc-v3, metadata)."""


def collection(
    *orderby: str, default: str = "date", order: str = "desc", times: Sequence[str] = TIMES
) -> dict[str, arg.Schema]:
    """Return the parameters of a list, by its sort keys and the parameters that compare times."""
    return {
        "context": arg.CONTEXT,
        "page": {"type": "integer", "default": 1, "minimum": 1},
        "per_page": {"type": "integer", "default": 10, "minimum": 1, "maximum": 100},
        "search": arg.TEXT,
        **dict.fromkeys(times, arg.DATE),
        **({"dates_are_gmt": arg.FORCE} if times else {}),
        "exclude": arg.IDS,
        "include": arg.IDS,
        "offset": arg.ABSOLUTE,
        "order": {"type": "string", "default": order, "enum": ["asc", "desc"]},
        "orderby": {"type": "string", "default": default, "enum": list(orderby)},
    }


def query_of(call: Call, kind: Callable[..., Q], **own: object) -> Q:
    """Return the query of a kind of records for the parameters of a list.

    Args:
        own: the values of what only this kind has.
    """
    args = call.args
    is_gmt = args.get("dates_are_gmt", False)
    times = {
        bound: call.site.moment(call.given[name], is_gmt=is_gmt)
        for name, bound in _BOUNDS.items()
        if name in call.given
    }
    return kind(
        page=args["page"],
        size=args["per_page"],
        offset=args.get("offset"),
        order=args["order"],
        orderby=args["orderby"],
        search=(args.get("search") or "").strip(),
        times=times,
        include=tuple(args["include"] or ()),
        exclude=tuple(args["exclude"] or ()),
        **own,
    )


def page(
    call: Call,
    objects: Iterable[object],
    total: Total,
    defaults: Mapping[str, object] | None = None,
) -> RestPage:
    """Return a page of a list. ``_links`` of its objects appear only if they are selected."""
    args = call.args
    return RestPage(list(objects), total, args["per_page"], args["page"], defaults or {})


def site_of(call: Call) -> Site:
    """Return the site with the options of a request that shows orders, refunds or metadata."""
    args, fields = call.args, call.fields
    return replace(
        call.site,
        dp=min(call.given.get("dp", 2), arg.MAX_DECIMALS),
        has_customer=call.site.has_customer and (not fields or "customer" in fields),
        include_meta=frozenset(args.get("include_meta") or ()),
        exclude_meta=frozenset(args.get("exclude_meta") or ()),
    )
