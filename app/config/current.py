"""Limits of the current app that schemas check."""

from flask import current_app


def current_limit(setting: str) -> int:
    """Return the value of a setting of the current app, such as ``SHOP_CART_ITEM_LIMIT``."""
    limit: int = current_app.config[setting]
    return limit
