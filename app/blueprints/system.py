"""Routes that need no API key: the index, health checks and the documentation.

Source: decisions 2, 10 and 11.
"""

from pathlib import Path
from typing import cast

from flask import Flask, Response, current_app, redirect, url_for
from flask_swagger_ui import get_swaggerui_blueprint

from app.api.blueprint import Blueprint
from app.api.error_handlers import schema_error
from app.api.error_pages import prefers_html
from app.api.responses import json_response
from app.api.smorest import Api
from app.config import VERSION
from app.db import deadline
from app.db.replicas.routing import current_replicas
from app.errors import unavailable
from app.schemas.system import ApiRootSchema, Health, Readiness

ICON = Path(__file__).parents[1] / "templates" / "favicon.ico"
DRAINING = "draining"
"""File in the instance folder. While it exists, load balancers send new requests elsewhere."""

READINESS_SECONDS = 2.0
"""How long the check of the readiness waits for the database."""

index = Blueprint(
    "index", __name__, public=True, description="Name, version and links of the service."
)
health = Blueprint(
    "health", __name__, public=True, description="Liveness and readiness checks for operators."
)


def init_app(app: Flask, api: Api) -> None:
    """Register the index and the documentation, and the health checks without the prefix."""
    prefix = app.config["SHOP_URL_PREFIX"]
    api.register_blueprint(index)
    api.register_blueprint(health, prefixed=False)
    app.add_url_rule("/favicon.ico", "favicon", show_icon)
    app.register_blueprint(
        get_swaggerui_blueprint(
            f"{prefix}/docs",
            f"{prefix}/openapi.json",
            # The standalone layout would send the document to a validator on the internet.
            config={
                "app_name": app.config["SHOP_NAME"],
                "layout": "BaseLayout",
                "validatorUrl": None,
                "tryItOutEnabled": True,
                "persistAuthorization": True,
                "filter": True,
                "displayRequestDuration": True,
                # Not used. Otherwise the script of the page would contain the URL of the request.
                "oauth2RedirectUrl": None,
            },
        )
    )


@index.route("/")
@index.response(
    200,
    ApiRootSchema,
    example={
        "name": "Shop Administration API",
        "version": VERSION,
        "links": {
            "coupons": "http://127.0.0.1:8000/coupons",
            "customers": "http://127.0.0.1:8000/customers",
            "orders": "http://127.0.0.1:8000/orders",
            "docs": "http://127.0.0.1:8000/docs/",
            "openapi": "http://127.0.0.1:8000/openapi.json",
        },
    },
)
def get_index() -> Response:
    """Retrieve the name, version and links of the service.

    Needs no API key. A browser, which prefers `text/html`, is redirected to `/docs`.
    """
    if prefers_html():
        response = cast("Response", redirect(url_for("swagger_ui.show")))
        response.vary.add("Accept")
        return response
    links = {
        "coupons": url_for("coupons.list_coupons", _external=True),
        "customers": url_for("customers.list_customers", _external=True),
        "orders": url_for("orders.list_orders", _external=True),
        "docs": url_for("swagger_ui.show", _external=True),
        "openapi": url_for("api-docs.openapi_json", _external=True),
    }
    body = {"name": current_app.config["SHOP_NAME"], "version": VERSION, "links": links}
    return json_response(body, headers={"Vary": "Accept"})


@health.route("/healthz")
@health.response(200, Health, example={"status": "ok"})
def get_health() -> Response:
    """Check liveness.

    Returns 200 while the process runs. Does not use the database and needs no API key.
    """
    return json_response({"status": "ok"})


@health.route("/readyz")
@health.response(200, Readiness, example={"status": "ok"})
def get_readiness() -> Response:
    """Check readiness.

    Returns 200 while the database responds within two seconds, its schema is current and the
    machine is not being drained, otherwise 503. Needs no API key.
    """
    if Path(current_app.instance_path, DRAINING).exists():
        raise unavailable("The machine is being drained.")
    deadline.shorten(READINESS_SECONDS)
    if unusable := schema_error():
        raise unusable
    replicas = current_replicas()
    if replicas is None:
        return json_response({"status": "ok"})
    replicas.start()
    states = [
        {
            "replica": replica.number,
            "state": str(replica.monitor.state),
            "lag_seconds": None if (lag := replica.monitor.lag) is None else round(lag, 3),
        }
        for replica in replicas.all
    ]
    return json_response({"status": "ok", "replicas": states})


def show_icon() -> Response:
    """Return the icon that browsers show beside the title of a page."""
    headers = {"Cache-Control": "public, max-age=86400"}
    return Response(ICON.read_bytes(), mimetype="image/vnd.microsoft.icon", headers=headers)
