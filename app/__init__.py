"""The Shop Administration API: coupons, customers and orders of a shop over HTTP.

The functions import what they use, so that ``shop-api --help`` imports nothing of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from flask import Flask

if TYPE_CHECKING:
    from app.observability.logs import Observe


def create_app(config: Mapping[str, object] | None = None) -> Flask:
    """Create and configure an app.

    Args:
        config: settings that override the environment and ``instance/config.py``.
            ``INSTANCE_PATH`` sets the instance folder.

    Raises:
        SettingsError: a setting is invalid.
        PluginError: a plugin cannot be loaded.
    """
    from app import blueprints
    from app.api import replica_reads, representations, request_handling
    from app.api.routing import LazyRule
    from app.api.smorest import Api
    from app.cli import group
    from app.config.files import instance_folder
    from app.config.loading import unknown_settings
    from app.config.secret_key import MIN_LENGTH
    from app.db import session
    from app.observability import logs
    from app.services.coupons import refusals

    overrides = dict(config or {})
    instance = str(overrides.pop("INSTANCE_PATH", None) or instance_folder())
    app = Flask(__name__, instance_relative_config=True, instance_path=instance)
    app.url_rule_class = LazyRule
    _configure(app, overrides)
    session.init_app(app)
    logs.init_app(app, _metrics(app) if app.config["SHOP_METRICS"] else None)
    group.init_app(app)
    request_handling.init_app(app)
    api = Api()
    api.init_app(app)
    blueprints.init_app(app, api)  # the blueprints of the core, then the installed plugins
    representations.init_app(app)
    refusals.init_app(app)
    replica_reads.init_app(app)
    for message in unknown_settings({*app.config, *os.environ}):
        app.logger.warning("%s. docs/configuration.md lists all settings.", message)
    if (length := len(app.config["SECRET_KEY"])) < MIN_LENGTH:
        app.logger.warning(
            "SECRET_KEY has %d characters. Use %d random characters.", length, MIN_LENGTH
        )
    return app


def _configure(app: Flask, overrides: Mapping[str, object]) -> None:
    """Load the settings from the environment, ``instance/config.py`` and the overrides."""
    from werkzeug.middleware.proxy_fix import ProxyFix

    from app.config.loading import SettingsError, load_settings
    from app.config.secret_key import secret_key
    from app.db import engines

    instance = Path(app.instance_path)
    try:
        app.config.from_pyfile("config.py", silent=True)
    except Exception as error:  # the file is Python code and can raise anything
        reason = f"{type(error).__name__}: {error}"
        raise SettingsError(f"{instance / 'config.py'}: {reason}") from error
    load_settings(app.config, overrides)
    engines.check_settings(app.config)
    app.config["SECRET_KEY"] = app.config["SECRET_KEY"] or secret_key(instance)
    app.config["MAX_CONTENT_LENGTH"] = app.config["SHOP_MAX_BODY_BYTES"]
    if hops := app.config["SHOP_TRUSTED_PROXIES"]:
        proxied = ProxyFix(app.wsgi_app, x_for=hops, x_proto=hops, x_host=hops)
        app.wsgi_app = proxied  # type: ignore[method-assign] # as documented by Flask


def _metrics(app: Flask) -> Observe:
    from app.db import session
    from app.db.replicas.routing import current_replicas
    from app.observability import metrics
    from app.services.maintenance.figures import measure

    with app.app_context():
        return metrics.init_app(app, session.db.engines, current_replicas(), measure)
