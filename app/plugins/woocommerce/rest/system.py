"""What programs ask for before they begin: the version, the currency, the tools (wc-v3)."""

from __future__ import annotations

import html
from html.entities import codepoint2name

from flask import Response, current_app

from app.auth.principals import Capability
from app.plugins.woocommerce.rest import arguments as arg
from app.plugins.woocommerce.rest import schemas
from app.plugins.woocommerce.rest.errors import RestError
from app.plugins.woocommerce.rest.lists import collection, page
from app.plugins.woocommerce.rest.operations import Call, Operation, Route
from app.plugins.woocommerce.rest.order_objects import KNOWN_CURRENCIES
from app.plugins.woocommerce.rest.site import VERSION, Object
from app.services.common.pagination import Total

WORDPRESS = "6.6"
"""The version of WordPress that belongs to ``VERSION``."""


def get_status(call: Call) -> Object:
    """Return the parts of the status that programs check."""
    environment = {
        "home_url": call.site.home,
        "site_url": call.site.home,
        "version": VERSION,
        "wp_version": WORDPRESS,
    }
    settings = {"currency": current_app.config["SHOP_CURRENCY"]}
    return {"environment": environment, "settings": settings}


def list_tools(_call: Call) -> list[Object]:
    """Return no tools. A connector asks for them to check its connection."""
    return []


def get_currency(call: Call) -> Object:
    """Return the currency of the shop."""
    code = current_app.config["SHOP_CURRENCY"]
    if code not in KNOWN_CURRENCIES:
        message = "There are no currencies matching these parameters."
        raise RestError("woocommerce_rest_data_invalid_currency", message, 404)
    name, symbol = KNOWN_CURRENCIES[code]
    links = call.site.links("data/currencies", code, methods=("GET",))
    shown = "".join(map(_entity, symbol))
    return {"code": code, "name": name, "symbol": shown, "_links": links}


def _entity(char: str) -> str:
    """Return a sign as an HTML entity, as the original does."""
    if char.isascii() and (char.isalnum() or char in " ."):
        return char
    if ord(char) in codepoint2name and ord(char) > 127:
        return f"&{codepoint2name[ord(char)]};"
    return f"&#{ord(char)};" if not char.isalpha() else html.escape(char)


def list_nothing(call: Call) -> Response:
    """Return the first page of records that this service does not have."""
    return page(call, [], Total(0))


_MANAGER, _READER = (Capability.MANAGE_WEBHOOKS,), (Capability.READ_PRIVATE_SHOP_ORDERS,)
_PAGES = arg.query({name: collection("")[name] for name in ("context", "page", "per_page")})
_EMPTY = {
    "/products": "products",
    "/products/categories": "product categories",
    "/products/tags": "product tags",
    "/products/attributes": "product attributes",
    "/taxes": "taxes",
    "/taxes/classes": "tax classes",
    "/shipping/zones": "shipping zones",
    "/payment_gateways": "payment gateways",
    "/data": "data",
    "/data/continents": "continents",
    "/data/countries": "countries",
    "/data/currencies": "currencies",
}
"""Lists that are empty, because programs ask for one of them to check their connection."""

_STATUS = Operation(
    get_status, "list", _MANAGER, summary="Get the status", result=schemas.RestSystemStatus
)
_TOOLS = Operation(
    *(list_tools, "list", _MANAGER, arg.query({}), "List the tools", schemas.RestSystemStatusTool),
    is_list=True,
)
_CURRENCY = Operation(
    *(get_currency, "view", _READER, arg.query({}), "Get the currency of the shop"),
    result=schemas.RestCurrency,
)
ROUTES = (
    Route("/system_status", {"GET": _STATUS}),
    Route("/system_status/tools", {"GET": _TOOLS}),
    Route("/data/currencies/current", {"GET": _CURRENCY}),
    *(
        Route(
            path,
            {
                "GET": Operation(
                    list_nothing,
                    "list",
                    _READER,
                    _PAGES,
                    f"List no {words}",
                    schemas.RestAbsentRecord,
                    name=f"list_{words.replace(' ', '_')}",
                    is_list=True,
                )
            },
        )
        for path, words in _EMPTY.items()
    ),
)
