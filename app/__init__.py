"""The Shop Administration API: coupons and customers over HTTP."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flask import Flask
from werkzeug.middleware.proxy_fix import ProxyFix

from app import cli, logging, plugins
from app.api import security_headers
from app.api.smorest import Api, prepare
from app.config import load_settings, secret_key, unknown_settings
from app.db import session
from app.db.read_pool import reader

DESCRIPTION = """Administer a shop's coupons and customers.

Press *Authorize* and enter a consumer key as user name and its consumer secret as password
(`flask --app wsgi keys create` makes one). Bodies are JSON objects, wrapped in a key named after
the resource. Every error has one shape: `{"errors": [{"code", "message"}]}`.
"""


def create_app(config: Mapping[str, Any] | None = None) -> Flask:
    """Return a new app.

    Args:
        config: settings that win over the environment and ``instance/config.py``. ``INSTANCE_PATH``
            names another instance folder.

    Raises:
        SettingsError: a setting cannot be used.
        PluginError: a plugin cannot be used.
    """
    overrides = dict(config or {})
    app = Flask(
        __name__, instance_relative_config=True, instance_path=overrides.pop("INSTANCE_PATH", None)
    )
    app.config.from_pyfile("config.py", silent=True)
    load_settings(app.config, overrides)
    app.config["SECRET_KEY"] = app.config["SECRET_KEY"] or secret_key(Path(app.instance_path))
    app.config["MAX_CONTENT_LENGTH"] = app.config["SHOP_MAX_BODY_BYTES"]
    if hops := app.config["SHOP_TRUSTED_PROXIES"]:
        proxied = ProxyFix(app.wsgi_app, x_for=hops, x_proto=hops, x_host=hops)
        app.wsgi_app = proxied  # type: ignore[method-assign] # the way that Flask documents
    session.init_app(app)
    logging.init_app(app, _metrics(app) if app.config["SHOP_METRICS"] else None)
    security_headers.init_app(app)
    cli.init_app(app)
    prepare(app)
    api = Api()
    api.init_app(app, description=DESCRIPTION)
    plugins.init_app(app, api)
    for name in unknown_settings({*app.config, *os.environ}):
        app.logger.warning("%s is no setting; docs/configuration.md lists them all", name)
    return app


def _metrics(app: Flask) -> logging.Observe:
    from app import metrics  # noqa: PLC0415  # who has no metrics pays nothing for them

    with app.app_context():
        engines = {name or "write": engine for name, engine in session.db.engines.items()}
        return metrics.init_app(app, engines, reader())
