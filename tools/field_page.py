"""The page of all fields, which is generated from ``openapi.json`` when the site is built."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_START = """# Fields

Every field of every object, generated from the OpenAPI document. Objects whose name ends in
`Create` are what a request sends; an update sends any of their fields. All others are what
responses contain. [The API](api.md) describes how values are converted, and
[its section on filters](api.md#lists-filters-and-pages) the parameters of lists.
"""

Schema = Mapping[str, Any]

_PART_OF_ANOTHER = re.compile(
    r"(Request|Response|List|BulkItem|BulkResult|Payload|Event|EventData|Update)$"
)
_AMOUNT = ("^-?[0-9]+\\.", "^(-?[0-9]{1,16}")
"""Beginnings of the patterns of amounts."""

_GROUPS = {
    "Coupons": r"Coupon|Trashed?Coupon|GeneratedCoupon|Cart|Evaluat|Redemption",
    "Customers": r"Customer|GuestCustomer|BillingAddress|ShippingAddress|Download",
    "Orders": r"Order|Trashed?Order|LineItem|Line|ShippingLine|TaxLine|FeeLine|Item|Payment|Refund",
    "API keys": r"ApiKey",
    "Events and webhooks": r"Webhook|Event|Import|Deleted|Plugin|Ping",
    "Other": r"",
}


def fields_page() -> str:
    """Return the page of all fields, from the OpenAPI document of the repository."""
    document = json.loads((ROOT / "openapi.json").read_text(encoding="utf-8"))
    schemas = document["components"]["schemas"]
    left = {name: each for name, each in schemas.items() if _is_object(name, each)}
    lines = [_START]
    for group, pattern in _GROUPS.items():
        names = [name for name in left if re.match(pattern, name)]
        lines.append(f"## {group}\n")
        for name in names:
            lines += _object(name, left.pop(name), schemas)
    return "\n".join(lines)


def _is_object(name: str, schema: Schema) -> bool:
    return bool(schema.get("properties")) and not _PART_OF_ANOTHER.search(name)


def _object(name: str, schema: Schema, schemas: Mapping[str, Schema]) -> Iterator[str]:
    required = set(schema.get("required", ())) if name.endswith("Create") else set()
    rows = [
        _row(field, each, schemas, is_required=field in required)
        for field, each in schema["properties"].items()
    ]
    # A column without values is left out, so that tables fit on a screen.
    titles = [title for title in _COLUMNS if any(row[title] for row in rows)]
    yield f"### {name}\n"
    yield f"{schema['description']}\n"
    yield f"| {' | '.join(titles)} |"
    yield "|---" * len(titles) + "|"
    for row in rows:
        cells = (row[title].replace("|", "\\|").replace("\n", " ") for title in titles)
        yield f"| {' | '.join(cells)} |"
    yield ""


_COLUMNS = ("Field", "Type", "Meaning", "Default", "Example")


def _row(
    field: str, schema: Schema, schemas: Mapping[str, Schema], *, is_required: bool
) -> dict[str, str]:
    """Return the cells of a field by the titles of their columns."""
    resolved = _resolved(schema, schemas)
    text = schema.get("description", resolved.get("description", ""))
    meaning, _, default = text.partition(" Default: ")
    limits = _limits(resolved, schemas)
    return {
        "Field": f"`{field}`" + (" (required)" if is_required else ""),
        "Type": _type(schema, schemas) + (f", {limits}" if limits else ""),
        "Meaning": meaning,
        "Default": default.removesuffix("."),
        "Example": _example(resolved, schemas),
    }


def _resolved(schema: Schema, schemas: Mapping[str, Schema]) -> Schema:
    name = schema.get("$ref", "").rpartition("/")[2]
    return schemas[name] if name else schema


def _type(schema: Schema, schemas: Mapping[str, Schema]) -> str:
    """Return the type of a value, with a link to the object that it contains."""
    if name := schema.get("$ref", "").rpartition("/")[2]:
        known = schemas[name]
        if not _is_object(name, known):
            return _type(known, schemas) if "type" in known else f"`{name}`"
        return f"[{name}](#{name.lower()})"
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(_type(each, schemas) for each in choices)
    kinds = schema.get("type", "any")
    names = kinds if isinstance(kinds, list) else [kinds]
    if schema.get("format") in {"date-time", "date"}:
        names = [schema["format"] if name == "string" else name for name in names]
    if "array" in names:
        return f"array of {_type(schema.get('items', {}), schemas)}"
    return " or ".join(names)


def _limits(schema: Schema, schemas: Mapping[str, Schema]) -> str:
    found = []
    if "enum" in schema or "const" in schema:
        found.append(", ".join(f"`{each}`" for each in schema.get("enum", [schema.get("const")])))
    for key, words in (
        ("minimum", "at least {:,}"),
        ("maximum", "at most {:,}"),
        ("minLength", "at least {:,} characters"),
        ("maxLength", "at most {:,} characters"),
        ("maxItems", "at most {:,} entries"),
    ):
        if key in schema:
            found.append(words.format(schema[key]))
    if schema.get("pattern", "").startswith("^-?[0-9]+\\.") or "[0-9]{1,16}" in schema.get(
        "pattern", ""
    ):
        found.append("2 decimal places")
    if "items" in schema:
        inner = _limits(_resolved(schema["items"], schemas), schemas)
        found += [f"each: {inner}"] if inner else []
    return "; ".join(found)


def _example(schema: Schema, schemas: Mapping[str, Schema]) -> str:
    examples = schema.get("examples") or _resolved(schema, schemas).get("examples")
    return f"`{json.dumps(examples[0], ensure_ascii=False)}`" if examples else ""
