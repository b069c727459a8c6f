"""WooCommerce: its REST APIs for existing programs, and the import of its database."""

from flask import Flask

from app.api.smorest import Api
from app.plugins.woocommerce.legacy import reports, store, webhooks
from app.plugins.woocommerce.rest import plugin as rest


def init_app(app: Flask, api: Api) -> None:
    """Register the routes of the legacy API and of ``/wp-json/wc/v3``."""
    for part in (store, webhooks, reports, rest):
        part.init_app(app, api)
