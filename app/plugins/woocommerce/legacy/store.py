"""The WooCommerce legacy REST API at ``/wc-api/v2`` and ``/wc-api/v3`` (decisions 12).

The legacy API uses the same blueprints as the native API. DIALECTS have its names, statuses
and formats, and a WSGI middleware normalizes paths and overridden methods before routing.
``docs/legacy.md`` lists the endpoints, the tested clients and the differences to WooCommerce.
"""

import re

from flask import Flask, Response, current_app, request

from app.api.blueprint import Blueprint
from app.api.dialect import Dialect, Schemas, current_dialect
from app.api.responses import json_response, request_address
from app.api.routing import CodeConverter, MountedRequests
from app.api.smorest import Api
from app.config import VERSION
from app.plugins.woocommerce.credentials import from_header_or_query
from app.plugins.woocommerce.legacy.reports import blp as reports
from app.plugins.woocommerce.legacy.schemas.orders import ORDERS, REFUNDS, LegacyOrderRefundV3Schema
from app.plugins.woocommerce.legacy.schemas.records import RECORDS, CustomerV3Schema
from app.plugins.woocommerce.legacy.schemas.requests import (
    QUERIES,
    CustomerOrdersV3Query,
    StoreResponse,
    native_object,
)
from app.plugins.woocommerce.legacy.webhooks import blp as webhooks
from app.schemas.customers import CustomerSchema
from app.schemas.orders.refund import OrderRefundSchema
from app.schemas.queries import CustomerOrdersQuery


class PlusCodeConverter(CodeConverter):
    """``{code}`` in the legacy API: a plus is a space (decisions 14)."""

    def to_python(self, value: str) -> str:
        """Return the code, or raise ValidationError if the path does not match."""
        return super().to_python(value.replace("+", " "))


def _dialect(version: str, schemas: Schemas) -> Dialect:
    return Dialect(
        f"wc-api-{version}",
        words={
            # The code of the legacy server has a plural here, unlike those of other records.
            "shop_api_user_cannot_create_webhook": "woocommerce_api_user_cannot_create_webhooks",
            "shop_api_user_cannot_view_reports": "woocommerce_api_user_cannot_read_report",
            "shop_api_": "woocommerce_api_",
            "X-Total": "X-WC-Total",
        },
        credentials=from_header_or_query,
        key_in_query=True,
        hides_methods=True,
        authenticates_first=True,
        statuses={"trashed": 202, "bulk_created": 201},
        like_put=("POST", "PATCH"),
        schemas={**QUERIES, **RECORDS, **ORDERS, **REFUNDS, **schemas},
        converters={"code": PlusCodeConverter},
        native_object=native_object,
        removes_trashed=True,
    )


DIALECTS = {
    "v2": _dialect("v2", {}),
    "v3": _dialect(
        "v3",
        {
            CustomerSchema: CustomerV3Schema,
            CustomerOrdersQuery: CustomerOrdersV3Query,
            OrderRefundSchema: LegacyOrderRefundV3Schema,
        },
    ),
}
"""The dialects by the version in the request path."""


def dialect_of(path: str) -> Dialect:
    """Return the dialect of a path below ``/wc-api/``: that of v3 if the version is unknown."""
    return DIALECTS.get(path.partition("/")[0], DIALECTS["v3"])


WC_VERSION = "2.6.14"
"""The WooCommerce version of the specification, which some clients check."""

API_VERSIONS = {"wc-api-v3": "3.1.0"}

MOUNTED = "coupons", "customers", "orders", "customer_orders", "order_notes", "order_refunds"
"""The blueprints of the core that both versions have."""

DESCRIPTION = """The WooCommerce legacy REST API {version}, for existing programs.

New programs should use the API without a version in its paths, which this service describes at
`/docs`. The guide to the legacy API lists its endpoints, the input that is tolerated, and every
difference from WooCommerce.

**Authentication.** The consumer key and the consumer secret are sent by HTTP Basic authentication,
over TLS as `consumer_key` and `consumer_secret` in the query, or as an OAuth 1.0a signature.

**Errors.** Every error has the body `{{"errors": [{{"code": "…", "message": "…"}}]}}`.

**Pages.** `page` and `filter[limit]` select a page. The response headers `X-Total`, `X-TotalPages`
and `Link` describe the pages.

**Fields.** `fields=id,code` limits the fields of the records in a response. Without `fields`,
records have all documented fields.
"""

_VARIABLE = re.compile(r"<(?:\w+:)?(?:\w+_(?!id>/(?:notes|refunds|deliveries)))?(\w+)>")
"""A variable of a rule. The legacy API has shorter names, such as ``id`` for ``coupon_id``, except
for the order of a note or refund, and the webhook of a delivery: ``/orders/<order_id>/notes/<id>``.
"""

_METHODS = "HEAD", "GET", "POST", "PUT", "PATCH", "DELETE"

store = Blueprint("index", __name__, public=True, description="Describes the shop and its routes.")


def init_app(app: Flask, api: Api) -> None:
    """Register the blueprints for each legacy version, unless ``SHOP_LEGACY_API`` is off."""
    if not app.config["SHOP_LEGACY_API"]:
        return
    for version, dialect in DIALECTS.items():
        path = f"/wc-api/{version}"
        mount = api.mount(dialect, path, DESCRIPTION.format(version=version))
        for blp in (*(app.blueprints[name] for name in MOUNTED), store, webhooks, reports):
            mount.register_blueprint(blp)
    app.wsgi_app = MountedRequests(  # type: ignore[method-assign] # as documented by Flask
        app.wsgi_app, app.config["SHOP_URL_PREFIX"], "/wc-api/", dialect_of
    )


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
    """Describe the shop and its routes.

    Needs no API key.
    """
    dialect = current_dialect()
    here = request_address().rstrip("/")
    version = API_VERSIONS.get(dialect.mount)
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


def _routes(here: str) -> dict[str, object]:
    """Return the routes of the API version at a URL, by path."""
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
