"""Refused codes, with the likely repair of each (admin 2 and 5)."""

import string
from collections.abc import Sequence

from flask import Response
from markupsafe import Markup

from app.plugins.admin import html
from app.plugins.admin.calls import Record, call, can
from app.plugins.admin.frame import AdminBlueprint, render
from app.plugins.admin.nouns.coupons import COUPONS
from app.plugins.admin.nouns.refused_codes import reason
from app.plugins.admin.reports import (
    PERIODS,
    chosen_days,
    from_replica,
    period_query,
    refusal_plots,
)
from app.plugins.admin.tables import Column, Table, page_number
from app.plugins.admin.texts import gettext as _
from app.services.coupons.queries import ids_of_codes

blp = AdminBlueprint("admin_refusals", "Refused codes", "ban", 120)

MAX_COMPARED = 10
"""Number of unknown codes of a page that are compared with existing codes."""
MAX_LENGTH = 24
"""Longer codes are not typed by hand."""
LETTERS = string.ascii_lowercase + string.digits + "-_"


@blp.page("/refusals", "list_refusal_reports")
def show() -> Response:
    """Show the codes that were refused in a period, most often first."""
    days = chosen_days()
    query = period_query(days, with_interval=False)
    query |= {"page": str(page_number()), "limit": "25"}
    reply = from_replica(lambda: call("list_refusal_reports", query=query))
    rows = reply.content
    unknown = [row["code"] for row in rows if row["code"] and not row["coupon_id"]]
    similar = similar_codes(unknown[:MAX_COMPARED]) if can("list_coupons") else {}
    table = Table.of_reply(_("Refused codes"), columns(similar), reply)
    return render(
        "list.html",
        plots=refusal_plots(days) if rows else [],
        title=_("Refused codes"),
        table=table,
        days=days,
        periods=PERIODS,
        intro=_(
            "Codes that customers tried and that were not applied, most often first. They show "
            "misspelt, expired and used up codes."
        ),
        empty=("No refused codes", "No code was refused in this period."),
    )


def columns(similar: dict[str, tuple[str, int]]) -> list[Column]:
    """Return the columns of refused codes. ``similar``: existing codes and their coupons."""

    def code(row: Record) -> Markup | str:
        return COUPONS.link_to(row["coupon_id"], row["code"] or _("Other codes"))

    def repair(row: Record) -> Markup | str:
        if row["reason"] == "expired" and row["coupon_id"] and can("create_coupon"):
            href = COUPONS.url("create", **{"from": row["coupon_id"]})
            return html.link(href, _("Duplicate with a new date"))
        if found := similar.get(row["code"]):
            return html.joined([_("Did they mean"), COUPONS.link_to(found[1], found[0])], " ")
        return html.NONE

    return [
        Column(_("Code"), code),
        Column(_("Reason"), reason, on_phone=True),
        Column(_("Repair"), repair, on_phone=True),
        Column.of(_("First"), "first_at", html.time),
        Column.of(_("Last"), "last_at", html.time),
        Column.of(_("Refused"), "count", on_phone=True),
    ]


def similar_codes(codes: Sequence[str]) -> dict[str, tuple[str, int]]:
    """Return an existing code that differs by one character, and its coupon, for refused codes.

    All codes at this distance are looked up in the index of codes with one statement.
    """
    candidates = {code: _neighbours(code) for code in codes if len(code) <= MAX_LENGTH}
    existing = ids_of_codes(sorted(set().union(*candidates.values())))
    return {
        code: (min(found), existing[min(found)])
        for code, near in candidates.items()
        if (found := near & existing.keys())
    }


def _neighbours(code: str) -> set[str]:
    """Return the codes that differ from a code by one character, or by two swapped ones."""
    cuts = [(code[:at], code[at:]) for at in range(len(code) + 1)]
    removed = {a + b[1:] for a, b in cuts if b}
    swapped = {a + b[1] + b[0] + b[2:] for a, b in cuts if len(b) > 1}
    replaced = {a + letter + b[1:] for a, b in cuts if b for letter in LETTERS}
    added = {a + letter + b for a, b in cuts for letter in LETTERS}
    return (removed | swapped | replaced | added) - {code, ""}
