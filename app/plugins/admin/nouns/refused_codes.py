"""The codes that were refused in the last days, on the pages of coupons and customers."""

from app.api.authentication import current_principal
from app.plugins.admin.calls import Record, can
from app.plugins.admin.tables import Table
from app.plugins.admin.texts import gettext as _
from app.services.reports.refusals import latest_refusals

REASONS = {
    "not_found": "No such code", "usage_limit": "Used up",
    "usage_limit_per_user": "Limit of the customer reached", "expired": "Expired",
    "minimum_amount": "Below the minimum amount", "maximum_amount": "Above the maximum amount",
    "product_not_included": "No eligible product", "product_excluded": "Excluded product",
    "sale_items_excluded": "Only sale items", "email_not_allowed": "E-mail address not allowed",
    "individual_use": "Not with another coupon",
}  # fmt: skip
"""The first reason of a refusal, by its code."""


def reason(row: Record) -> str:
    """Return the text of the reason of a refusal."""
    return _(REASONS.get(row["reason"]) or row["reason"])


def refused_codes(*, code: str = "", customer: tuple[int, str] | None = None) -> Table | None:
    """Return the latest refusals of a coupon or of a customer, if the key may read them."""
    if not (can("list_refusal_reports") and can("list_customers") and can("list_coupons")):
        return None
    found = latest_refusals(current_principal(), code=code, customer=customer)
    return Table(_("Refused in the last days"), [row._asdict() for row in found])


def user_of(use: Record) -> str:
    """Return the e-mail address of who used or tried a code, or what else is known."""
    return use["email"] or (f"#{use['customer_id']}" if use["customer_id"] else _("Guest"))
