"""Settings of the current app that need no service: limits and time zones."""

from zoneinfo import ZoneInfo

from flask import current_app


def current_limit(setting: str) -> int:
    """Return the value of a setting of the current app, such as ``SHOP_CART_ITEM_LIMIT``."""
    limit: int = current_app.config[setting]
    return limit


def shop_zone() -> ZoneInfo:
    """Return the time zone of the shop."""
    return ZoneInfo(current_app.config["SHOP_TIMEZONE"])  # cached


def expiry_zone() -> ZoneInfo | None:
    """Return the zone in which expiry dates are last days; None for midnight UTC (spec 2.1)."""
    return shop_zone() if current_app.config["SHOP_EXPIRY_IN_TIMEZONE"] else None
