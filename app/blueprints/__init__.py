"""The endpoints, and loading of plugins. A blueprint of the core is a plugin, too.

A plugin is a module or another object with a function ``init_app(app, api)``, referenced by an
entry point in the group ``shop_api.plugins``. The function registers blueprints with
``api.register_blueprint`` and adds to the catalog of the app. See ``docs/plugins.md``.
"""

from collections import Counter
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any

from flask import Flask

from app.catalog import EVENT_TYPES, EXTENSION, Catalog, RedemptionEffect
from app.config import PLUGINS
from app.config.loading import check_order_statuses

BUILTIN = (
    *(
        EntryPoint(name=name.rpartition(":")[2], value=f"app.blueprints.{name}", group=PLUGINS)
        for name in (
            "campaigns",
            "coupons",
            "coupon_batches",
            "coupon_evaluation",
            "trash:coupon_trash",
            "customers",
            "customer_orders",
            "customer_merges",
            "persons",
            "orders",
            "trash:order_trash",
            "order_notes",
            "order_refunds",
            "redemptions",
            "reports",
            "events",
            "imports",
            "api_keys",
            "webhooks",
            "order_extensions",
            "system",
            "guides",
        )
    ),
    *(
        EntryPoint(name=name, value=f"app.plugins.{name}", group=PLUGINS)
        for name in ("admin", "woocommerce")
        if find_spec(f"app.plugins.{name}")  # the service also runs without its folder
    ),
)


class PluginError(Exception):
    """A plugin cannot be loaded. The message contains its name and the reason."""


def init_app(app: Flask, api: Any) -> None:
    """Load every plugin: first the built-in plugins, then the installed plugins by name.

    Raises:
        PluginError: two plugins have the same name, or a plugin cannot be imported, has no
            ``init_app`` or fails in it. The message contains the name.
        SettingsError: a setting contains an unknown order status.
    """
    app.extensions[EXTENSION] = found = Catalog()
    if app.config["SHOP_REFUNDED_RELEASES_COUPONS"]:
        found.redemption_effects["refunded"] = RedemptionEffect.RELEASE
    plugins = [*BUILTIN, *sorted(entry_points(group=PLUGINS), key=lambda entry: entry.name)]
    counts = Counter(entry.name for entry in plugins)
    if duplicates := [name for name, count in counts.items() if count > 1]:
        raise PluginError(
            f"Two plugins are named {duplicates[0]!r}. Uninstall or rename one of them."
        )
    for entry in plugins:
        try:
            plugin = entry.load()
        except Exception as error:
            raise PluginError(
                f"The plugin {entry.name!r} cannot be imported from {entry.value!r}: {error}"
            ) from error
        if not callable(getattr(plugin, "init_app", None)):
            raise PluginError(
                f"The plugin {entry.name!r} ({entry.value!r}) has no init_app(app, api)."
            )
        try:
            plugin.init_app(app, api)
        except Exception as error:
            raise PluginError(f"The plugin {entry.name!r} failed at start: {error}") from error
        found.plugins.append(entry.name)
        added = found.event_types.keys() - EVENT_TYPES.keys() - found.event_plugins.keys()
        found.event_plugins |= dict.fromkeys(added, entry.name)
    check_order_statuses(app.config, found.order_statuses)
    api.describe(found)
