"""The mount of this dialect: its routes, its index and its version of the API."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any
from urllib.parse import unquote_plus, urlencode

from flask import Blueprint, Flask, Response, current_app, redirect, request
from werkzeug.wrappers import Response as BaseResponse

from app.api.dialect import Dialect
from app.api.routing import MountedRequests
from app.api.smorest import Api
from app.config import VERSION as SHOP_VERSION
from app.errors import ShopError
from app.plugins.woocommerce.credentials import from_header_or_query
from app.plugins.woocommerce.rest import (
    coupons,
    customers,
    downloads,
    order_parts,
    orders,
    reports,
    system,
    webhooks,
)
from app.plugins.woocommerce.rest.errors import as_rest_error
from app.plugins.woocommerce.rest.frame import respond
from app.plugins.woocommerce.rest.openapi import document
from app.plugins.woocommerce.rest.operations import NOWHERE, Call, Operation, Route, description
from app.plugins.woocommerce.rest.parameters import form_of
from app.plugins.woocommerce.rest.site import NAMESPACE, Object, Site, current_site

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


def _body_of(error: ShopError) -> object:
    """Return the body of an error that was raised before a view. Set its status and headers."""
    error.headers = {**error.headers, "Link": current_site().index_link}
    if error.code == "shop_api_no_route" and request.method not in METHODS:
        response = respond(NOWHERE, {})  # rejects the method, unless the request is anonymous
        error.status = response.status_code
        return response.get_json()
    shown = as_rest_error(error)
    error.status = shown.status
    return shown.body


WP_JSON = Dialect(
    "wp-json",
    credentials=partial(from_header_or_query, form_of=form_of),
    key_in_query=True,
    hides_methods=True,
    has_strict_requests=True,
    error_body=_body_of,
)

ROUTES = tuple(
    route
    for module in (coupons, customers, downloads, orders, order_parts, webhooks, reports, system)
    for route in module.ROUTES
)


def init_app(app: Flask, _api: Api) -> None:
    """Register the routes, unless ``SHOP_WC_V3`` is off."""
    prefix = app.config["SHOP_URL_PREFIX"]
    is_served = app.config["SHOP_WC_V3"]
    for start in {"", prefix} - ({prefix} if is_served else set()):
        for rule in ("/wp-json", "/wp-json/<path:unknown>"):
            path = start + rule
            app.add_url_rule(path, path, _suggest, methods=METHODS, provide_automatic_options=False)
    if not is_served:
        return
    if app.config["SHOP_ADMIN"]:
        app.add_url_rule(f"{prefix}/wc-auth/v1/authorize", "wc-auth", _authorize)
    blueprint = Blueprint("wp-json", __name__, url_prefix=f"{prefix}/wp-json")
    blueprint.extends_orders = True  # type: ignore[attr-defined]  # read by app.api.order_extensions
    made = cache(partial(document, ROUTES))  # when it is first asked for, with all plugins

    def describe(call: Call) -> Object:
        return {**made(), "servers": [{"url": call.site.root}]}

    described = Operation(describe, "view", is_public=True)
    own = (Route("", {"GET": _NAMESPACE}), Route("/openapi.json", {"GET": described}))
    for route in (*ROUTES, *own):
        _add(blueprint, f"/{NAMESPACE}{route.path}", route)
    _add(blueprint, "/", Route("/", {"GET": _SITE}))
    _add(blueprint, "/<path:unknown>", NOWHERE)
    app.register_blueprint(blueprint)
    app.wsgi_app = MountedRequests(  # type: ignore[method-assign] # as documented by Flask
        app.wsgi_app,
        prefix,
        "/wp-json/",
        lambda _: WP_JSON,
        located=partial(_located, prefix),
        elsewhere=rf"{re.escape(prefix)}(/?|/index\.php|(?i:/index\.php/wp-json).*)",
    )


def _suggest(**_: str) -> Response:
    """Reject a request, and suggest the APIs that the service has."""
    prefix = current_app.config["SHOP_URL_PREFIX"]
    legacy = f", and the legacy API at {prefix}/wc-api/v3"
    raise ShopError(
        "shop_api_no_route",
        more=f"The API is located at {prefix or '/'}, for example {prefix}/orders"
        f"{legacy if current_app.config['SHOP_LEGACY_API'] else ''}.",
    )


def _authorize() -> BaseResponse:
    """Lead a service that asks for a key to the page where a person approves it."""
    query = urlencode(list(request.args.items(multi=True)))
    return redirect(f"{current_app.config['SHOP_URL_PREFIX']}/admin/authorize?{query}")


def _located(prefix: str, path: str, query: str) -> tuple[str, str]:
    """Return path and query below ``/wp-json/`` of a request to a shop without permalinks.

    Its addresses are below ``/index.php``, or in the parameter ``rest_route`` of its first page.
    """
    if below := path[len(f"{prefix}/index.php") :]:
        return prefix + below, query
    others, routes = [], []
    for part in query.split("&"):
        name, _, value = part.partition("=")
        if unquote_plus(name) == "rest_route":
            # As in PATH_INFO, whose octets are letters of Latin-1 (PEP 3333).
            routes.append(unquote_plus(value, "latin-1"))
        else:
            others.append(part)
    if not routes or not routes[-1]:
        return path, query
    return f"{prefix}/wp-json/{routes[-1].strip('/')}", "&".join(others)


def _add(blueprint: Blueprint, rule: str, route: Route) -> None:
    endpoint = rule.strip("/").replace("/", "-").replace(".", "-") or "index"
    view: Callable[..., Response] = partial(_view, route)
    blueprint.add_url_rule(rule, endpoint, view, methods=METHODS, provide_automatic_options=False)


def _view(route: Route, **ids: Any) -> Response:
    ids.pop("unknown", None)
    return respond(route, ids)


_VARIABLE, _PATTERN = re.compile(r"<id:(\w+)>"), r"(?P<\1>[\\d]+)"
"""A variable of a path, and how the index writes it."""


def _routes(site: Site) -> dict[str, object]:
    """Return the description of every route of the namespace."""
    return {
        f"/{NAMESPACE}{_VARIABLE.sub(_PATTERN, route.path)}": description(route, site)
        for route in (Route("", {"GET": _NAMESPACE}), *ROUTES)
    }


def _namespace(call: Call) -> Object:
    links = {"up": [{"href": f"{call.site.home}/wp-json/"}]}
    return {"namespace": NAMESPACE, "routes": _routes(call.site), "_links": links}


def _site(call: Call) -> Object:
    config = current_app.config
    home = call.site.home
    return {
        "name": config["SHOP_NAME"],
        "description": f"Shop Administration API {SHOP_VERSION}",
        "url": home,
        "home": home,
        "gmt_offset": call.site.offset,
        "timezone_string": str(config.get("SHOP_TIMEZONE", "UTC")),
        "namespaces": [NAMESPACE],
        "authentication": {},
        "routes": _routes(call.site),
    }


_NAMESPACE = Operation(_namespace, "view", is_public=True, summary="Describe the namespace")
_SITE = Operation(_site, "view", is_public=True, summary="Describe the shop")
