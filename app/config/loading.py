"""Loading of settings from the environment, ``instance/config.py`` and their defaults."""

import os
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

import marshmallow as ma

from app.config.fields import OrderStatusNames
from app.config.settings import SettingsSchema
from app.conversions.text import did_you_mean

_FIELDS = SettingsSchema().fields


class SettingsError(Exception):
    """Raised when a setting has an invalid value. The message contains its name and the reason."""


def load_settings(
    config: MutableMapping[str, object], overrides: Mapping[str, object] | None
) -> None:
    """Load every setting into a Flask configuration.

    Args:
        config: an app's configuration, with ``instance/config.py`` already loaded.
        overrides: settings passed to ``create_app``. They take precedence.

    Raises:
        SettingsError: values have the wrong type or are out of range. The message lists them all.
    """
    known = _FIELDS.keys()
    given = {name: config[name] for name in known if config.get(name) is not None}
    given |= {name: os.environ[name] for name in known if os.environ.get(name)}
    given |= overrides or {}
    try:
        config.update(SettingsSchema(unknown=ma.INCLUDE).load(given))
    except ma.ValidationError as error:
        reasons = [
            f"{name}: {' '.join(messages)}{_shown(name, given[name])}"
            for name, messages in _messages(error)
        ]
        raise SettingsError("; ".join(reasons)) from None


def _shown(name: str, value: object) -> str:
    """Return the value of a setting that is a number, for a message. Others can be secret."""
    is_number = isinstance(_FIELDS[name], ma.fields.Integer | ma.fields.Float)
    return f" The value is {value!r}." if is_number else ""


def database_url(url: str) -> str:
    """Return a database URL in the form of the setting, or raise SettingsError."""
    try:
        loaded = SettingsSchema(only=("DATABASE_URL",)).load({"DATABASE_URL": url})
    except ma.ValidationError as error:
        ((_, reasons),) = _messages(error)
        raise SettingsError(" ".join(reasons)) from None
    return str(loaded["DATABASE_URL"])


def _messages(error: ma.ValidationError) -> Iterable[tuple[str, list[str]]]:
    messages: dict[str, list[str]] = error.normalized_messages()  # type: ignore[no-untyped-call] # marshmallow's
    return messages.items()


def check_order_statuses(config: Mapping[str, Any], known: Iterable[str]) -> None:
    """Check the settings that contain order statuses, once plugins have added their own.

    Raises:
        SettingsError: a setting contains unknown statuses. The message lists them all.
    """
    known = list(known)
    problems = [
        f"{name}: unknown order status {status!r}{did_you_mean(status, known)}"
        for name, field in _FIELDS.items()
        if isinstance(field, OrderStatusNames)
        for status in config[name]
        if status not in known
    ]
    if problems:
        raise SettingsError(f"{'; '.join(problems)}. Known statuses: {', '.join(known)}.")


def unknown_settings(names: Iterable[str]) -> list[str]:
    """Return a message for each unknown name with the prefix ``SHOP_``."""
    known = list(_FIELDS)
    return [
        f"unknown setting {name}{did_you_mean(name, known)}"
        for name in sorted(set(names))
        if name.startswith("SHOP_") and name not in known
    ]
