"""The WooCommerce legacy REST API: the same blueprints in another dialect (decisions 12).

It serves programs written for ``/wc-api/v2`` and ``/wc-api/v3``. The case of a path and an
overridden method are normalised before routing. Names, statuses and what else differs are data of
the dialect. ``docs/legacy.md`` lists the endpoints, the clients that were tried and what differs.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qs

from flask import Flask, Response, current_app, request

from app.api.responses import json_response, request_address
from app.api.smorest import Api, Blueprint
from app.api.versions import IN_ENVIRON, OTHER_VERSION, WOOCOMMERCE, current_api_version
from app.auth.credentials import ORIGINAL_REQUEST
from app.config import VERSION
from app.schemas.legacy import StoreResponse

MOUNTED = "coupons", "customers", "orders", "order_notes"
WC_VERSION = "2.6.14"
"""The generation of WooCommerce that the specification describes; clients compare it."""

API_VERSIONS = {"wc-api-v3": "3.1.0"}

DESCRIPTION = """The WooCommerce legacy REST API {version}, for programs written for it.

New programs use the API without a version in its paths. `docs/legacy.md` lists what a request may
do otherwise than it is written here, and every difference from the server that is gone.
"""

_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_STRAY = re.compile(
    r"%3F(?=&oauth_consumer_key=[^&]*&oauth_timestamp=[^&]*&oauth_nonce=[^&]*"
    r"&oauth_signature_method=[^&]*&oauth_signature=[^&]*$)"
)
"""What the Python client writes behind an address that has parameters in it, as it signs it."""

_VARIABLE = re.compile(r"<(?:\w+:)?(?:\w+_)?(\w+)>")
"""A variable of a rule. The legacy server had shorter names: ``id`` for ``coupon_id``."""

_METHODS = "HEAD", "GET", "POST", "PUT", "PATCH", "DELETE"

store = Blueprint("index", __name__, public=True, description="The shop and its routes.")


def init_app(app: Flask, api: Api) -> None:
    """Mount the blueprints once more for each version, unless ``SHOP_LEGACY_API`` is off."""
    if not app.config["SHOP_LEGACY_API"]:
        return
    for version, dialect in WOOCOMMERCE.items():
        path = f"/wc-api/{version}"
        mount = api.mount(dialect, path, DESCRIPTION.format(version=version))
        for name in MOUNTED:
            mount.register_blueprint(app.blueprints[name])
        mount.register_blueprint(store)
    app.wsgi_app = LegacyRequests(  # type: ignore[method-assign] # the way that Flask documents
        app.wsgi_app, app.config["SHOP_URL_PREFIX"]
    )


class LegacyRequests:
    """WSGI middleware: gives the requests below ``/wc-api/`` their dialect, and a usual form.

    Args:
        app: what answers.
        prefix: ``SHOP_URL_PREFIX``.
    """

    def __init__(self, app: Any, prefix: str) -> None:
        self._app = app
        self._start = f"{prefix}/wc-api/".lower()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer a request."""
        path = "/" + environ["PATH_INFO"].lstrip("/")  # as it is routed
        start = len(self._start)
        if f"{path}/"[:start].translate(_LOWER) == self._start:
            query = environ.get("QUERY_STRING", "")
            environ[ORIGINAL_REQUEST] = environ["REQUEST_METHOD"], path, query
            environ["QUERY_STRING"] = _STRAY.sub("", query)
            # Codes and addresses have no case either; a letter beyond ASCII is several bytes.
            rest = path[start:].translate(_LOWER)
            environ["PATH_INFO"] = path[: start - len("/wc-api/")] + "/wc-api/" + rest
            environ[IN_ENVIRON] = WOOCOMMERCE.get(rest.partition("/")[0], OTHER_VERSION)
            if method := _override(environ):
                environ["REQUEST_METHOD"] = method
        return self._app(environ, start_response)  # type: ignore[no-any-return] # WSGI


def _override(environ: dict[str, Any]) -> str:
    """Return the method that a request asks for beside its own, empty for none.

    HEAD is heard as GET: the server, which knows the request's own method only, would announce a
    body that never comes.
    """
    query = environ.get("QUERY_STRING", "")
    given = parse_qs(query).get("_method") if "_method=" in query else None
    method = given[-1] if given else environ.get("HTTP_X_HTTP_METHOD_OVERRIDE", "")
    method = method.strip().upper()
    if method == "HEAD":
        return "GET"
    return method if method.isalpha() and method.isascii() else ""


@store.route("/")
@store.response(
    200,
    StoreResponse,
    example={
        "store": {
            "name": "Shop Administration API",
            "description": "Coupons, customers and orders",
            "URL": "http://127.0.0.1:8000",
            "wc_version": WC_VERSION,
            "routes": {
                "/coupons": {
                    "supports": ["HEAD", "GET", "POST"],
                    "accepts_data": True,
                    "meta": {"self": "http://127.0.0.1:8000/wc-api/v2/coupons"},
                }
            },
        }
    },
)
def get_store() -> Response:
    """Say what this shop is, and which routes it has.

    Open to everyone.
    """
    dialect = current_api_version()
    here = request_address().rstrip("/")
    version = API_VERSIONS.get(dialect.name)
    about = {
        "name": current_app.config["SHOP_NAME"],
        "description": f"Shop Administration API {VERSION}",
        "URL": here[: here.rindex("/wc-api/")],
        "wc_version": WC_VERSION,
        **({"version": version} if version else {}),
        "routes": _routes(here),
        "meta": {
            "timezone": "UTC",
            "currency": current_app.config["SHOP_CURRENCY"],
            "currency_format": current_app.config["SHOP_CURRENCY"],
            "currency_position": "left",
            "thousand_separator": ",",
            "decimal_separator": ".",
            "price_num_decimals": 2,
            "tax_included": False,
            "weight_unit": "kg",
            "dimension_unit": "cm",
            "ssl_enabled": request.is_secure,
            "permalinks_enabled": True,
            "generate_password": True,
            "links": {"help": f"{here}/openapi.json"},
        },
    }
    return json_response({"store": about})


def _routes(here: str) -> dict[str, Any]:
    """Return what can be done at each path of the mount that a request came to."""
    mount = f"{current_app.config['SHOP_URL_PREFIX']}/wc-api/{here.rpartition('/')[2]}"
    methods: dict[str, set[str]] = {}
    for rule in current_app.url_map.iter_rules():
        if rule.rule.startswith(f"{mount}/") and not rule.rule.endswith(".json"):
            path = _VARIABLE.sub(r"<\1>", rule.rule.removeprefix(mount))
            methods.setdefault(path, set()).update(rule.methods or ())
    return {
        path: {
            "supports": [method for method in _METHODS if method in supported],
            "accepts_data": not {"POST", "PUT", "PATCH"}.isdisjoint(supported),
            "meta": {} if "<" in path else {"self": here + path.rstrip("/")},
        }
        for path, supported in methods.items()
    }
