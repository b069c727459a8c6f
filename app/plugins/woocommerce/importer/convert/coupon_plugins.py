"""Conversion of what plugins store in the metadata of coupons (campaigns 8).

The keys stay metadata, because programs read them there. A coupon is paused if it would otherwise
give more than at the source. The report has a line for each key.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, time
from decimal import Decimal
from typing import Any

from app.conversions.numbers import money
from app.models.coupon import CouponOptions
from app.plugins.woocommerce.importer.convert import Alterations, is_yes
from app.plugins.woocommerce.importer.source.clock import ShopClock
from app.plugins.woocommerce.importer.source.php_values import UnreadableValue, unserialized
from app.plugins.woocommerce.importer.source.staging import Meta

STARTS = ("_wt_coupon_start_date", "_acfw_schedule_start", "_wc_sc_start_date")
ENDS = ("_acfw_schedule_end",)
MAXIMUMS = (
    "wc_sc_max_discount",
    "_wt_max_discount",
    "_acfw_percentage_discount_cap",
    "maximum_discount",
)
FIRST_ORDERS = ("sc_restrict_to_new_user", "_wjecf_first_purchase_only")
START_TIME = "_wt_coupon_start_time"
"""The time of the day in ``_wt_coupon_start_date``."""

DATE_RANGE = ("_acfw_enable_date_range_schedule", "yes")
PERCENT = ("discount_type", "percent")
NEEDED: Mapping[str, tuple[str, str]] = {
    "_acfw_schedule_start": DATE_RANGE,
    "_acfw_schedule_end": DATE_RANGE,
    "_acfw_percentage_discount_cap": PERCENT,
}
"""Another key, and its value without which a key has no effect."""

CONDITIONS = frozenset(
    {
        "wc_sc_user_role_ids",
        "wc_sc_exclude_user_role_ids",
        "_wt_sc_user_roles",
        "_wt_sc_exclude_user_roles",
        "_wjecf_customer_roles",
        "_wjecf_excluded_customer_roles",
        "_acfw_role_restrictions",
        "_acfw_excluded_coupons",
    }
)
"""Conditions that are not mapped: roles, and codes with which the coupon cannot be combined."""

GIFTS = re.compile(
    "_acfw_bogo_deals|_wt_sc_bogo_.+|_wjecf_free_product_ids|_wc_free_gift_coupon_data"
)
"""Discounts that are not mapped. The coupon gives less without them, so it is not paused."""

_OFF: tuple[object, ...] = ("", "0", "no", "false", "[]", "{}", 0, None, {})
_TIME = re.compile("([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")

Read = Callable[[str, str], object]
"""Return the value of a key and its text, or None for none. Raises ValueError."""


@dataclass(frozen=True, slots=True)
class _Coupon:
    """The metadata of a coupon, and its columns, which are set."""

    values: dict[str, object]
    meta: Meta
    clock: ShopClock
    altered: Alterations

    def field(self, name: str, keys: tuple[str, ...], read: Read) -> Any:
        """Return the value of the first key that has one, and report all keys that have one."""
        counts, found = "", None
        for key in keys:
            if not (text := (self.meta.get(key) or "").strip()):
                continue  # of most coupons
            try:
                value = read(key, text)
            except ValueError as error:
                value = error
            if value is None:
                continue
            other, needed = NEEDED.get(key, ("", ""))
            if counts:
                what = f"has no effect, because {counts} counts"
            elif other and self.meta.get(other) != needed:
                what = f"has no effect, because {other} is not {needed!r}"
            elif isinstance(value, ValueError):
                self.values["active"], counts = False, key
                what = f"{text[:40]!r} {value}, so the coupon was paused"
            else:
                counts, found = key, value
                what = f"{text[:40]!r} was imported as {name}"
            self.altered.keys[key] = what
        return found

    def moment(self, key: str, text: str) -> datetime | None:
        """Return the time in a text, with the time of the day in another key."""
        of_day = (self.meta.get(START_TIME) or "").strip() if key == STARTS[0] else ""
        found = _moment(self.clock, text, of_day)
        if found and of_day:
            what = f"{of_day[:40]!r} was imported as the time of starts_at"
            self.altered.keys[START_TIME] = what
        return found


def add_plugin_fields(
    values: dict[str, object], meta: Meta, clock: ShopClock, altered: Alterations
) -> None:
    """Set the columns of a coupon that plugins store as metadata, and report each key.

    Args:
        values: the columns, of which ``expiry_date``, ``starts_at`` and ``active`` can be set.
    """
    coupon = _Coupon(values, meta, clock, altered)
    starts_at = coupon.field("starts_at", STARTS, coupon.moment)
    values["starts_at"] = max(filter(None, (values["starts_at"], starts_at)), default=None)
    end = coupon.field("expiry_date", ENDS, coupon.moment) if not values["expiry_date"] else None
    if end:
        values["expiry_date"], loses_time = clock.expiry(end)
        if loses_time:
            altered.keys[ENDS[0]] += f", without its time ({end:%Y-%m-%d %H:%M} UTC)"
    values["options"] = CouponOptions(
        first_order_only=coupon.field("first_order_only", FIRST_ORDERS, _flag) or False,
        maximum_discount=coupon.field("maximum_discount", MAXIMUMS, _maximum),
    )
    _report_others(values, meta, altered)


def _report_others(values: dict[str, object], meta: Meta, altered: Alterations) -> None:
    """Report what is not mapped, and pause a coupon with conditions that are not mapped."""
    for key, text in meta.items():
        if key in CONDITIONS and _is_set(text):
            values["active"] = False
            altered.keys[key] = "is a condition that is not mapped, so the coupon was paused"
        elif key and key[0] == "_" and GIFTS.fullmatch(key) and _is_set(text):
            altered.keys[key] = "is not mapped and has no effect here"


def _moment(clock: ShopClock, text: str, of_day: str) -> datetime | None:
    if text == "0" or text.startswith("0000"):
        return None
    if (found := clock.moment(text)) is None:
        raise ValueError("is not a date")
    if not of_day:
        return found
    if not (parts := _TIME.fullmatch(of_day)):
        raise ValueError(f"has the time {of_day[:40]!r}, which is not a time")
    hour, minute, second = (int(part or 0) for part in parts.groups())
    try:
        return clock.on_day(found, time(hour, minute, second))
    except (ValueError, OverflowError):
        raise ValueError(f"has the time {of_day!r}, which is not a time") from None


def _maximum(_key: str, text: str) -> str | None:
    try:
        amount = money(text)
    except ValueError:
        raise ValueError("is not an amount") from None
    if not amount and text and Decimal(text):
        raise ValueError("is less than a cent")
    if amount and amount < 0:
        raise ValueError("is negative")
    return str(amount) if amount else None


def _flag(_key: str, text: str) -> bool | None:
    if text in _OFF:
        return None
    if not is_yes(text):
        raise ValueError("is neither 'yes' nor 'no'")
    return True


def _is_set(text: str | None) -> bool:
    """Return whether a value of a plugin is other than an empty text or list."""
    value: Any = (text or "").strip()
    with suppress(UnreadableValue):  # a plain text
        value = unserialized(value)
    entries = value.values() if isinstance(value, dict) else (value,)
    return any(each not in _OFF for each in entries)
