"""The plugin door: the core's own blueprints and a stranger's enter the same way.

A plugin is a module, or any object, with ``init_app(app, api)``, named by an entry point of the
group ``shop_api.plugins``. There it registers blueprints with ``api.register_blueprint`` and adds
to the registry of the app. ``docs/plugins.md`` tells the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import marshmallow as ma
from flask import Flask, current_app

from app.catalog import EXTENSION, Catalog, DuplicateNameError
from app.config import check_order_statuses

GROUP = "shop_api.plugins"

BUILTIN = tuple(
    EntryPoint(name=name, value=f"app.blueprints.{name}", group=GROUP)
    for name in (
        "coupons",
        "coupon_evaluation",
        "coupon_trash",
        "customers",
        "orders",
        "order_notes",
        "redemptions",
        "order_extensions",
        "system",
        "legacy",
    )
)


class PluginError(Exception):
    """A plugin cannot be used; the message names it and says why."""


@dataclass(frozen=True, slots=True)
class OrderExtension:
    """A key that every order of every response gets (spec 2.3).

    Args:
        key: its name in the order.
        field: describes its value in the OpenAPI document.
        values: takes the orders of a response, as the API shows them, and returns a value for
            each of them, in their order.
    """

    key: str
    field: ma.fields.Field[Any]
    values: Callable[[Sequence[dict[str, Any]]], Sequence[Any]]


@dataclass(slots=True)
class Registry(Catalog):
    """What plugins add to one app, kept in ``app.extensions["shop_api"]``.

    Attributes:
        order_extensions: extensions of order responses by their key.
        plugins: names of the loaded plugins, in the order in which they were loaded.
    """

    order_extensions: dict[str, OrderExtension] = field(default_factory=dict)
    plugins: list[str] = field(default_factory=list)

    def add_order_extension(self, extension: OrderExtension) -> None:
        """Add a key to every order response (spec 2.3). Raises DuplicateNameError if it exists."""
        if extension.key in self.order_extensions:
            raise DuplicateNameError(f"the order extension {extension.key!r} already exists")
        self.order_extensions[extension.key] = extension


def registry() -> Registry:
    """Return the registry of the current app."""
    found: Registry = current_app.extensions[EXTENSION]
    return found


def init_app(app: Flask, api: Any) -> None:
    """Let every plugin in: the built-in ones first, then the installed ones by name.

    Raises:
        PluginError: two plugins have one name, one cannot be imported, has no ``init_app``, or
            fails in it. The message says which.
        SettingsError: a setting names an order status that nobody has added.
    """
    app.extensions[EXTENSION] = found = Registry()
    doors = [*BUILTIN, *sorted(entry_points(group=GROUP), key=lambda door: door.name)]
    twice = [name for name, times in Counter(door.name for door in doors).items() if times > 1]
    if twice:
        raise PluginError(f"Two plugins are called {twice[0]!r}; uninstall or rename one of them.")
    for door in doors:
        try:
            plugin = door.load()
        except Exception as error:
            raise PluginError(
                f"The plugin {door.name!r} cannot be imported from {door.value!r}: {error}"
            ) from error
        if not callable(getattr(plugin, "init_app", None)):
            raise PluginError(
                f"The plugin {door.name!r} ({door.value!r}) has no init_app(app, api)."
            )
        try:
            plugin.init_app(app, api)
        except Exception as error:
            raise PluginError(f"The plugin {door.name!r} failed at start: {error}") from error
        found.plugins.append(door.name)
    check_order_statuses(app.config, found.order_statuses)
    api.describe(found)
