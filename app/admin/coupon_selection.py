"""Several coupons at once: trash, expiry date, CSV (admin 2 and 5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from flask import Response, request

from app.admin import selection
from app.admin.calls import call, loaded_query
from app.admin.files import csv_response
from app.admin.frame import AdminBlueprint
from app.admin.selection import Action
from app.api.authentication import current_principal
from app.api.representations import COUPON
from app.errors import InvalidParams
from app.schemas.queries import CouponListQuery
from app.services.coupons import queries

blp = AdminBlueprint("admin_coupon_selection", __name__)

CSV_PART = 1000


def _query() -> tuple[dict[str, Any], bool]:
    """Return the loaded filter of the table, and whether it showed the trash."""
    given = selection.shown_query()
    trashed = given.get("state") == "trash"
    names = ("q", "type", "batch") if trashed else ("q", "type", "batch", "state")
    return loaded_query(CouponListQuery, {name: given.get(name, "") for name in names}), trashed


def _ids_after(after: int, limit: int) -> list[int]:
    query, trashed = _query()
    return queries.ids_after(current_principal(), query, after, limit, trashed=trashed)


def _set_expiry(coupon_id: int) -> None:
    text = request.form.get("expiry_date", "")
    try:
        expiry = date.fromisoformat(text).isoformat() if text else ""
    except ValueError:
        raise InvalidParams({"expiry_date": "must be a date in the form 2026-11-29."}) from None
    call("update_coupon", body={"coupon": {"expiry_date": expiry}}, coupon_id=coupon_id)


ACTIONS = {
    "trash": Action(
        "Moving coupons to the trash", lambda each: call("delete_coupon", coupon_id=each), "restore"
    ),
    "restore": Action("Restoring coupons", lambda each: call("restore_coupon", coupon_id=each)),
    "expiry": Action("Setting the expiry date", _set_expiry),
}


@blp.action("/coupons/selected", "list_coupons")
def act() -> Response:
    """Run the chosen action for the selected coupons."""
    if request.form.get("action") == "csv":
        return _download()
    return selection.act(ACTIONS, _ids_after, "admin_coupons.show_list")


def _download() -> Response:
    actor = current_principal()
    ids: Sequence[int] = sorted(selection.selected_ids())
    if selection.is_everything():
        ids, part = [], _ids_after(0, CSV_PART)
        while part:
            ids = [*ids, *part]
            part = _ids_after(part[-1], CSV_PART) if len(part) == CSV_PART else []
    rows: list[dict[str, Any]] = []
    for start in range(0, len(ids), CSV_PART):
        found = queries.coupons_with_ids(actor, ids[start : start + CSV_PART], COUPON.columns)
        rows += COUPON.rows(found)
    return csv_response("coupons.csv", rows)
