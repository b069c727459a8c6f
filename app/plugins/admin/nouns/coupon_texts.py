"""What pages say about a coupon: its state, uses and fields, and warnings (admin 2 and 5)."""

from decimal import Decimal

from markupsafe import Markup

from app.db.session import now
from app.plugins.admin import html, texts
from app.plugins.admin.calls import Record
from app.plugins.admin.form_fields import COUPON_TYPES, is_percent
from app.plugins.admin.forms import Form
from app.plugins.admin.texts import gettext as _

STATES = {
    "active": ("Active", "ok"),
    "expired": ("Expired", ""),
    "paused": ("Paused", "warning"),
    "scheduled": ("Scheduled", ""),
    "used_up": ("Used up", "warning"),
    "trash": ("Trash", ""),
}
"""Word and tone of each state of a coupon."""

CAMPAIGN_STATES = {
    "active": ("Active", "ok"),
    "scheduled": ("Scheduled", ""),
    "paused": ("Paused", "warning"),
    "used_up": ("Used up", "warning"),
    "ended": ("Ended", ""),
}
"""Word and tone of each state of a campaign."""

USE_STATES = {
    "reserved": ("Reserved", "warning"),
    "confirmed": ("Used", "ok"),
    "released": ("Released", ""),
}
"""Word and tone of each status of a redemption."""


def use_badge(use: Record) -> Markup:
    """Return the badge of the status of a redemption."""
    return html.state_badge(USE_STATES, use["status"])


def type_of(coupon: Record) -> str:
    """Return the label of the type of a coupon."""
    name: str = coupon["type"]
    return _(COUPON_TYPES.get(name, name))


def amount_of(coupon: Record) -> str:
    """Return the discount of a coupon: ``10%`` or an amount of money."""
    if is_percent(coupon["type"]):
        return f"{texts.decimal(Decimal(coupon['amount']), 2, trimmed=True)}%"
    return html.money(coupon["amount"])


def state_of(coupon: Record) -> str:
    """Return the state of a prepared coupon (``filter[state]`` of the API)."""
    expiry, limit = coupon["expiry_date"], coupon["usage_limit"]
    if coupon.get("trashed_at"):
        return "trash"
    if expiry and html.end_of(expiry) <= now():
        return "expired"
    if not coupon["active"]:
        return "paused"
    if coupon["starts_at"] and coupon["starts_at"] > now():
        return "scheduled"
    return "used_up" if limit and coupon["usage_count"] + coupon["reserved"] >= limit else "active"


def uses_of(coupon: Record) -> str:
    """Return the uses of a coupon: ``50 of 50``."""
    taken, limit = html.number(coupon["usage_count"] + coupon["reserved"]), coupon["usage_limit"]
    return _("%(uses)s of %(limit)s", uses=taken, limit=html.number(limit)) if limit else taken


def reserved_of(coupon: Record) -> str:
    """Return how many uses of a coupon are reserved, or an empty string."""
    count = coupon["reserved"]
    return _("%(count)s of them reserved", count=html.number(count)) if count else ""


def uses_and_reserved(coupon: Record) -> str:
    """Return the uses of a coupon and how many of them are reserved."""
    return ", ".join(filter(None, (uses_of(coupon), reserved_of(coupon))))


def last_day(coupon: Record) -> str:
    """Return the last day on which a coupon works, or that it has none."""
    day = html.last_day(coupon["expiry_date"])
    return html.short_date(day) if day else html.NONE


def coupon_warnings(form: Form, prefix: str = "") -> list[str]:
    """Return what is rarely meant in the form of a coupon.

    Args:
        form: the form, also with texts that are not valid.
        prefix: what the names of its fields begin with.
    """
    typed = {name.removeprefix(prefix): text for name, text in form.texts.items()}

    def is_new(*names: str) -> bool:
        return form.has_new(*(f"{prefix}{name}" for name in names))

    amount = _decimal(typed["amount"] or "0")
    try:
        expiry = html.end_of(typed["expiry_date"])
    except ValueError:
        expiry = None
    start = html.moment_of(typed["starts_at"])
    gives_nothing = amount == 0 and not typed["enable_free_shipping"]
    is_exact = typed["usage_limit_per_user"] or typed["campaign_id"] or prefix
    found = {
        _("The discount is 0."): gives_nothing and is_new("amount", "type", "enable_free_shipping"),
        _("The discount is more than 100%."): is_percent(typed["type"])
        and amount > 100
        and is_new("amount", "type"),
        _("The expiry date is not in the future, so the coupon does not work."): expiry
        and expiry <= now()
        and is_new("expiry_date"),
        _("It starts after it expires, so it never works."): expiry
        and start
        and start >= expiry
        and is_new("starts_at", "expiry_date"),
        _(
            "Without a limit of 1 use per customer, it can be used for several unpaid orders."
        ): typed["first_order_only"]
        and not is_exact
        and is_new("first_order_only", "usage_limit_per_user"),
    }
    return [text for text, is_rare in found.items() if is_rare]


def _decimal(text: str) -> Decimal:
    """Return a number, or 1 for an invalid text, whose error the form shows."""
    try:
        found = Decimal(text)
    except ArithmeticError:
        found = Decimal("NaN")
    return found if found.is_finite() else Decimal(1)
