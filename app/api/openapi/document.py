"""Parts of the OpenAPI document that no single operation has. ``api/smorest.py`` builds it."""

import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from app.api.dialect import Dialect
from app.catalog import Catalog
from app.conversions.webhooks import is_delivered
from app.schemas.event_types import EVENTS, PAYLOADS, PluginEventSchema, PluginPayload
from app.schemas.examples.events import event_data
from app.schemas.fields.json_schema import KNOWN, LIMIT
from app.schemas.fields.query import plain

Document = dict[str, Any]

ALIAS = "x-alias"
"""Marks the operation of a further method of a view, until it is removed."""

HEADERS: dict[str, Document] = {
    "X-Request-Id": {
        "description": "ID of the request in the logs: the `X-Request-Id` of the request if it has "
        "1 to 128 characters of `A-Za-z0-9._-`, otherwise a new ID. Every response has this "
        "header, including errors.",
        "required": True,
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"},
    },
    "X-Shop-Version": {
        "description": "Version of the service that has responded. Every response has this header, "
        "including errors.",
        "required": True,
        "schema": {"type": "string"},
    },
    "X-Total": {
        "description": "Number of records that match, on all pages. `X-Total-Complete` says if "
        "there can be more.",
        "required": True,
        "schema": {"type": "integer", "minimum": 0},
    },
    "X-TotalPages": {
        "description": "Number of pages that `X-Total` records fill.",
        "required": True,
        "schema": {"type": "integer", "minimum": 0},
    },
    "X-Total-Complete": {
        "description": "`false` if more records can match than `X-Total` has, otherwise missing. "
        "A page of a search, or with conditions on metadata, a tag or `total_spent`, counts up to "
        "50,000 records. With one or two letters, it counts up to 1,000, and looks for them in the "
        "300,000 newest orders.",
        "schema": {"type": "string", "enum": ["false"]},
    },
    "Link": {
        "description": "URLs of the `first`, `prev`, `next` and `last` page, if they exist "
        "(RFC 8288).",
        "schema": {"type": "string"},
    },
    "ETag": {
        "description": "Entity tag of the resource, which changes with the resource (RFC 9110).",
        "required": True,
        "schema": {"type": "string", "pattern": '^"[0-9a-f]{32}"$'},
    },
    "Idempotent-Replayed": {
        "description": "`true` if this is the stored response to an earlier request with the same "
        "`Idempotency-Key`.",
        "schema": {"type": "string", "enum": ["true"]},
    },
    "X-Shop-Position": {
        "description": "Opaque position of the write, or of a read that a replica of the database "
        "may serve. A read that sends it sees the write, or at least the state that the earlier "
        "read has shown. Other reads, and a service without replicas, omit this header.",
        "schema": {"type": "string"},
    },
    "Retry-After": {
        "description": "Seconds to wait before the request is sent again.",
        "required": True,
        "schema": {"type": "integer", "minimum": 1},
    },
    "WWW-Authenticate": {
        "description": "How to authenticate, with `shop_api_authentication_error`. Responses to "
        "scripts of web pages omit this header, so that the browser shows no login prompt.",
        "schema": {"type": "string"},
    },
}
"""Every header that the document describes."""


def references(*names: str) -> Document:
    """Return response headers as references to HEADERS."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


PAGE_HEADERS = references("X-Total", "X-TotalPages", "X-Total-Complete", "Link")
"""Headers of a page of a list."""

LINK_HEADER = references("Link")
"""Headers of a page of a list without totals."""

COMMON_HEADERS = references("X-Request-Id", "X-Shop-Version")
"""Headers of every response."""

SECURITY_SCHEMES: dict[str, Document] = {
    "basicAuth": {
        "type": "http",
        "scheme": "basic",
        "description": "The username is the consumer key, the password is the consumer secret.",
    },
    "consumerKey": {
        "type": "apiKey",
        "in": "query",
        "name": "consumer_key",
        "description": "Consumer key, together with `consumer_secret`. Over TLS only. OAuth 1.0a "
        "signatures are accepted as well.",
    },
    "consumerSecret": {
        "type": "apiKey",
        "in": "query",
        "name": "consumer_secret",
        "description": "Consumer secret, together with `consumer_key`.",
    },
}


def security(dialect: Dialect) -> list[dict[str, list[str]]]:
    """Return the alternative ways to authenticate a request."""
    basic: dict[str, list[str]] = {"basicAuth": []}
    return [basic, {"consumerKey": [], "consumerSecret": []}] if dialect.key_in_query else [basic]


def move_path_parameters(document: Document) -> None:
    """Make the path parameters the first parameters of each operation (decisions 16)."""
    for operations in document["paths"].values():
        shared = operations.pop("parameters", [])
        for operation in operations.values():
            if shared:
                operation["parameters"] = deepcopy(shared) + operation.get("parameters", [])


def remove_aliases(document: Document) -> None:
    """Remove the operations of further methods of a view, which do the same as the first."""
    for operations in document["paths"].values():
        for method in [method for method in operations if ALIAS in operations[method]]:
            del operations[method]


def move_examples(document: Document) -> None:
    """Move the examples of request bodies to their schemas. Generators for Java ignore others."""
    is_30 = document["openapi"].startswith("3.0")
    schemas = document["components"]["schemas"]
    for operations in document["paths"].values():
        for operation in operations.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
                if name and "example" in content:
                    example = content.pop("example")
                    schemas[name] |= {"example": example} if is_30 else {"examples": [example]}


def describe_known(document: Document, catalog: Catalog) -> None:
    """Add the known coupon types and order statuses, including those of plugins."""
    for schema in list(_with_key(document, KNOWN)):
        known = schema.pop(KNOWN)
        names = list(getattr(catalog, known))
        if "maxLength" in schema:  # a list of them in one text
            # A hyphen needs no escape, and JavaScript allows none.
            one = "|".join(re.escape(name).replace(r"\-", "-") for name in names)
            schema["pattern"] = rf"^({one})(,({one}))*$"
        else:
            component, meaning = _COMPONENTS[known]
            document["components"]["schemas"][component] = {
                "type": "string",
                "enum": names,
                "description": meaning,
            }
            # A reference, so that generated clients have one type for all fields.
            reference = {"$ref": f"#/components/schemas/{component}"}
            del schema["type"]
            is_30 = document["openapi"].startswith("3.0")
            schema.update({"allOf": [reference]} if is_30 else reference)


def describe_limits(document: Document, config: Mapping[str, object]) -> None:
    """Add the maximum number of items of each array that is limited by a setting."""
    for schema in list(_with_key(document, LIMIT)):
        schema["maxItems"] = config[schema.pop(LIMIT)]


_COMPONENTS = {
    "coupon_types": ("CouponType", "Known coupon type."),
    "order_statuses": ("OrderStatus", "Known order status."),
}


def _with_key(part: object, key: str) -> Iterator[Document]:
    if isinstance(part, dict):
        if key in part:
            yield part
        part = list(part.values())
    for inner in part if isinstance(part, list) else ():
        yield from _with_key(inner, key)


def describe_dialect(document: Document, dialect: Dialect) -> None:
    """Change a document to the names of a dialect."""
    for operations in document["paths"].values():
        for operation in operations.values():
            operation["tags"] = [_tag(name, dialect) for name in operation["tags"]]
    for tag in document.get("tags", ()):
        tag["name"] = _tag(tag["name"], dialect)
    if dialect.words:
        _translate(document, dialect.translate)
    if dialect.has_plain_filters:
        _translate(document["paths"], plain)
        _translate(document["components"], plain)


def remove_unused_tags(document: Document) -> None:
    """Remove the tags of blueprints whose operations all have another tag."""
    used = {
        tag
        for operations in document["paths"].values()
        for operation in operations.values()
        for tag in operation["tags"]
    }
    document["tags"][:] = [tag for tag in document["tags"] if tag["name"] in used]


def _tag(name: str, dialect: Dialect) -> str:
    """Return the tag of a blueprint: ``Coupon batches`` of ``coupon_batches``."""
    words = name.removeprefix(f"{dialect.mount}-").replace("_", " ")
    return re.sub("^Api ", "API ", words[:1].upper() + words[1:])


def _translate(part: object, translate: Callable[[str], str]) -> object:
    """Return a part of a document with all texts and keys translated. Changes dicts and lists."""
    if isinstance(part, str):
        return translate(part)
    if isinstance(part, list):
        part[:] = [_translate(inner, translate) for inner in part]
    if isinstance(part, dict):
        items = [(translate(key), _translate(part[key], translate)) for key in part]
        part.clear()
        part.update(items)
    return part


DELIVERIES = {
    "name": "Webhook deliveries",
    "description": "Requests that the service sends to the receivers of webhooks.",
}
"""The tag of the deliveries: not that of webhooks, whose operations a client calls."""

_DELIVERY_HEADERS = {
    "webhook-id": "ID of the event, the same for each attempt: `evt_` and the ID in the feed.",
    "webhook-timestamp": "Time of the attempt, in Unix seconds.",
    "webhook-signature": "`v1,` and the base64 form of the HMAC-SHA256 of "
    "`<webhook-id>.<webhook-timestamp>.<body>`. During a rotation of the secret, two signatures "
    "separated by a space.",
}


def webhooks(converter: object, event_types: Mapping[str, str]) -> Document:
    """Return the section ``webhooks``, with its components: what a receiver gets for each type.

    Its entries refer to components, because openapi-generator writes a client for other entries,
    as if a program could send them.
    """
    meanings = {**event_types, "ping": "Sent on request, to check that the receiver responds."}
    items = {
        name: {"post": _delivery(name, meaning, _body(converter, name))}
        for name, meaning in meanings.items()
        if is_delivered(name)
    }
    return {
        "webhooks": {name: {"$ref": f"#/components/pathItems/{name}"} for name in items},
        "components": {"pathItems": items},
    }


def _delivery(name: str, meaning: str, body: Document) -> Document:
    """Return the operation of a delivery, in the form of Standard Webhooks."""
    words = "".join(part.title() for part in name.replace("_", ".").split("."))
    return {
        "operationId": f"receive{words}",
        "summary": meaning.rstrip("."),
        "description": "Sent to the `delivery_url` of each active webhook with this topic. Verify "
        "the signature before you use the body.",
        "tags": [DELIVERIES["name"]],
        "security": [],
        "parameters": [
            {
                "in": "header",
                "name": header,
                "description": text,
                "required": True,
                "schema": {"type": "string"},
            }
            for header, text in _DELIVERY_HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": {
            "204": {"description": "Any status from 200 to 299 means that the event was received."},
            "410": {"description": "Disables the webhook."},
        },
    }


def _body(converter: Any, name: str) -> Document:
    data = {"webhook_id": 1} if name == "ping" else event_data(name)
    example = {"type": name, "timestamp": "2026-11-20T09:38:00Z", "data": data}
    schema = converter.resolve_nested_schema(PAYLOADS.get(name, PluginPayload))
    return {"schema": schema, "example": example}


def describe_plugin_events(converter: Any, components: Any, event_types: Mapping[str, str]) -> None:
    """Add the event types of plugins to the union of events."""
    added = [name for name in event_types if name not in EVENTS]
    union = components.schemas.get("Event")
    if not added or union is None:
        return
    reference = converter.resolve_nested_schema(PluginEventSchema)
    components.schemas["PluginEvent"]["properties"]["type"]["enum"] = added
    union["oneOf"].append(reference)
    union["discriminator"]["mapping"] |= dict.fromkeys(added, reference["$ref"])
