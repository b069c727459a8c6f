"""The time zone in which coupons of this shop expire."""

from zoneinfo import ZoneInfo

from flask import current_app


def expiry_zone() -> ZoneInfo | None:
    """Return the zone in which expiry dates are last days; None for midnight UTC (spec 2.1)."""
    if not current_app.config["SHOP_EXPIRY_IN_TIMEZONE"]:
        return None
    return ZoneInfo(current_app.config["SHOP_TIMEZONE"])  # cached
