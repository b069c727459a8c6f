"""What is open to everyone: the index, health, and the documentation (decisions 2, 10, 11)."""

from __future__ import annotations

from flask import Flask, Response, current_app, url_for
from flask_swagger_ui import get_swaggerui_blueprint

from app.api.responses import json_response
from app.api.smorest import Api, Blueprint
from app.config import VERSION
from app.db.session import schema_is_current
from app.errors import SCHEMA_IS_BEHIND, unavailable
from app.schemas.system import ApiRootSchema, Health

index = Blueprint("index", __name__, public=True, description="Where things are.")
health = Blueprint("health", __name__, public=True, description="For operators.")


def init_app(app: Flask, api: Api) -> None:
    """Register the open routes: the index and the docs under the prefix, health at the root."""
    prefix = app.config["SHOP_URL_PREFIX"]
    api.register_blueprint(index)
    api.register_blueprint(health, prefixed=False)
    app.register_blueprint(
        get_swaggerui_blueprint(
            f"{prefix}/docs",
            f"{prefix}/openapi.json",
            # The other layout asks a validator on the internet for its opinion.
            config={
                "app_name": app.config["SHOP_NAME"],
                "layout": "BaseLayout",
                "validatorUrl": None,
                "tryItOutEnabled": True,
                # Not used; else the page would repeat the address of the request in its script.
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
        "links": {"coupons": "http://127.0.0.1:8000/coupons"},
    },
)
def get_index() -> Response:
    """Say what this is: name, version and links.

    Open to everyone.
    """
    links = {
        "coupons": url_for("coupons.list_coupons", _external=True),
        "customers": url_for("customers.list_customers", _external=True),
        "docs": url_for("swagger_ui.show", _external=True),
        "openapi": url_for("api-docs.openapi_json", _external=True),
    }
    return json_response(
        {"name": current_app.config["SHOP_NAME"], "version": VERSION, "links": links}
    )


@health.route("/healthz")
@health.response(200, Health, example={"status": "ok"})
def get_health() -> Response:
    """Say that the process lives.

    Open to everyone. Says nothing of the database.
    """
    return json_response({"status": "ok"})


@health.route("/readyz")
@health.response(200, Health, example={"status": "ok"})
def get_readiness() -> Response:
    """Say whether requests can be served: the database answers and its schema is current.

    Open to everyone. 503 while the database does not answer or its schema is not current.
    """
    if not schema_is_current():
        raise unavailable(SCHEMA_IS_BEHIND)
    return json_response({"status": "ok"})
