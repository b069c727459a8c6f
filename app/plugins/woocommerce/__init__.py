"""WooCommerce: its REST APIs for existing programs, and the import of its database."""

from flask import Flask

from app.api.smorest import Api
from app.plugins.woocommerce import commands, webhook_forms
from app.plugins.woocommerce.legacy import store
from app.plugins.woocommerce.rest import plugin as rest

__all__ = ["commands", "init_app"]  # importing the commands adds them to their group


def init_app(app: Flask, api: Api) -> None:
    """Register the routes of the legacy API and of ``/wp-json/wc/v3``, and their webhooks."""
    webhook_forms.init_app(app)
    store.init_app(app, api)
    rest.init_app(app, api)
