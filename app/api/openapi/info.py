"""The introduction of the OpenAPI document: ``info`` and the links to the guides."""

from collections.abc import Mapping

from flask import Config

from app.config.files import folder_of

GUIDES = folder_of("docs")
"""Folder of the guides. An installation without it has no links to guides."""

_INTRODUCTION = """Administer the coupons, customers and orders of a shop.

**Authentication.** Every request needs an API key: the consumer key is the username and the
consumer secret is the password of HTTP Basic authentication. Click *Authorize* to enter a key.
Create one with `shop-api keys create --login NAME --role ROLE --permission read_write`.

**Bodies.** Request and response bodies are JSON objects. A record is wrapped in a key with its
name: `{"coupon": {…}}`. An update changes the fields that it contains and keeps all others.

**Errors.** Every error has the body `{"errors": [{"code": "…", "message": "…"}]}`. `code` is for
programs and does not change; `message` is for people. Errors in an input have a `param` with its
name. The header `Link` with `rel="help"` leads to the description of the code. A rejected request
changes nothing.

**Pages.** Lists are paginated. `page` selects a page, and the response headers `X-Total`,
`X-TotalPages` and `Link` describe the pages.

**Filters.** `q=ada` and `filter[q]=ada` mean the same, and so on for all filters, limits and sort
orders of lists and counts. This document uses the short names. If a request contains both, the
parameter with brackets applies.

**Fields.** `fields=id,code` limits the fields of the records in a response. Without `fields`,
records have all documented fields.

**Retries.** An `Idempotency-Key` makes a request that accepts it safe to retry. `ETag` and
`If-Match` prevent lost updates. Wait for the seconds in `Retry-After` after 429 and 503. After 504,
it is unknown whether a change was stored: repeat the request only with the same `Idempotency-Key`.

**Strictness.** This document describes the input to send. The service accepts more: unknown fields
and parameters are ignored, `null` means that a field is absent, and values are converted. With the
header `Prefer: handling=strict`, it rejects such input and suggests the nearest known name.
Requests to `/campaigns`, `/imports`, `/keys` and `/persons`, those that generate coupons, and
merges and claims of customers are always strict.

**Versions.** The version follows semantic versioning: a release that removes or changes something
in this document has a new major version, additions have a new minor version.
"""
_GUIDES = "\n**Guides.** {links}, and [all guides]({index}).\n"
_API_GUIDES = (
    "quickstart",
    "admin",
    "api",
    "endpoints",
    "permissions",
    "retries",
    "errors",
    "coupons",
    "orders",
    "customers",
    "events",
    "webhooks",
    "export",
    "clients",
    "configuration",
    "legacy",
)
"""The guides for users of the API, in the order of the links."""


def info(config: Config, description: str | None) -> dict[str, object]:
    """Return ``info`` without title and version, by default with the native introduction."""
    is_30 = config["SHOP_OPENAPI_VERSION"].startswith("3.0")
    licence = {"url": "https://opensource.org/license/mit"} if is_30 else {"identifier": "MIT"}
    return {
        "description": _introduction(config) if description is None else description,
        "license": {"name": "MIT", **licence},
        "contact": contact(config),
    }


def _introduction(config: Mapping[str, object]) -> str:
    links = ", ".join(
        f"[{guide_title(path.read_text(encoding='utf-8'))}]({guide_url(config, name)})"
        for name in _API_GUIDES
        if (path := GUIDES / f"{name}.md").is_file()
    )
    index = guides_url(config)
    return _INTRODUCTION + (_GUIDES.format(links=links, index=index) if links else "")


def contact(config: Config) -> dict[str, str]:
    """Return the contact for users of the API: the operator, or otherwise the authors."""
    given = config["SHOP_CONTACT"]
    if not given:
        return {"name": "The Shop Administration API authors"}
    key = "email" if "@" in given and "://" not in given else "url"
    return {"name": config["SHOP_NAME"], key: given}


def guides_url(config: Mapping[str, object]) -> str:
    """Return the URL path of the index of the guides."""
    return f"{config['SHOP_URL_PREFIX']}/docs/guides/"


def guide_url(config: Mapping[str, object], name: str) -> str:
    """Return the URL path of a guide."""
    return f"{guides_url(config)}{name}.md"


def guide_title(text: str) -> str:
    """Return the title of a guide, which is its first line."""
    return text.partition("\n")[0].lstrip("# ")
