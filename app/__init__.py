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
from app.config import SettingsError, load_settings, secret_key, unknown_settings
from app.db import session

DESCRIPTION = """Administer a shop's coupons and customers.

Press *Authorize* and enter a consumer key as the user name and its consumer secret as the password
(create a key with `flask --app wsgi keys create`). Bodies are JSON objects, wrapped in a key named
after the resource. All errors have the same format: `{"errors": [{"code", "message"}]}`.
"""


def create_app(config: Mapping[str, Any] | None = None) -> Flask:
    """Create and configure an app.

    Args:
        config: settings that override the environment and ``instance/config.py``.
            ``INSTANCE_PATH`` sets the instance folder.

    Raises:
        SettingsError: a setting is invalid.
        PluginError: a plugin cannot be loaded.
    """
    overrides = dict(config or {})
    app = Flask(
        __name__, instance_relative_config=True, instance_path=overrides.pop("INSTANCE_PATH", None)
    )
    try:
        app.config.from_pyfile("config.py", silent=True)
    except Exception as error:  # the file is Python code and can raise anything
        path = Path(app.instance_path) / "config.py"
        raise SettingsError(f"{path}: {type(error).__name__}: {error}") from error
    load_settings(app.config, overrides)
    app.config["SECRET_KEY"] = app.config["SECRET_KEY"] or secret_key(Path(app.instance_path))
    app.config["MAX_CONTENT_LENGTH"] = app.config["SHOP_MAX_BODY_BYTES"]
    if hops := app.config["SHOP_TRUSTED_PROXIES"]:
        proxied = ProxyFix(app.wsgi_app, x_for=hops, x_proto=hops, x_host=hops)
        app.wsgi_app = proxied  # type: ignore[method-assign] # as documented by Flask
    session.init_app(app)
    logging.init_app(app, _metrics(app) if app.config["SHOP_METRICS"] else None)
    security_headers.init_app(app)
    cli.init_app(app)
    prepare(app)
    api = Api()
    api.init_app(app, description=DESCRIPTION)
    plugins.init_app(app, api)
    for message in unknown_settings({*app.config, *os.environ}):
        app.logger.warning("%s. docs/configuration.md lists all settings.", message)
    return app


def _metrics(app: Flask) -> logging.Observe:
    from app import metrics  # noqa: PLC0415  # slow import, needed only with SHOP_METRICS

    with app.app_context():
        return metrics.init_app(app, session.db.engines)
