"""Several coupons at once: trash, expiry date, CSV (admin 2 and 5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any
from urllib.parse import parse_qs

from flask import Response, request, url_for

from app.admin import selection
from app.admin.calls import call
from app.admin.files import csv_response
from app.admin.frame import AdminBlueprint
from app.admin.texts import gettext as _
from app.api.authentication import current_principal
from app.api.representations import COUPON
from app.errors import InvalidParams
from app.schemas.loading import instance_of
from app.schemas.queries import CouponListQuery
from app.services.coupons import queries

blp = AdminBlueprint("admin_coupon_selection", __name__)

CSV_PART = 1000


def _query() -> tuple[dict[str, Any], bool]:
    """Return the loaded filter of the table, and whether it showed the trash."""
    given = {name: values[0] for name, values in parse_qs(request.form.get("query", "")).items()}
    state = given.get("state", "")
    wanted = {
        "filter[q]": given.get("q", ""),
        "filter[type]": given.get("type", ""),
        "filter[batch]": given.get("batch", ""),
        "filter[state]": "" if state == "trash" else state,
    }
    loaded: dict[str, Any] = instance_of(CouponListQuery).load(
        {name: value for name, value in wanted.items() if value}
    )
    return loaded, state == "trash"


def _ids_after(after: int, limit: int) -> list[int]:
    query, trashed = _query()
    return queries.ids_after(current_principal(), query, after, limit, trashed=trashed)


def _back() -> str:
    query = request.form.get("query", "")
    return url_for("admin_coupons.show_list") + (f"?{query}" if query else "")


@blp.action("/coupons/selected", "list_coupons")
def act() -> Response:
    """Run the chosen action for the selected coupons."""
    action = request.form.get("action", "")
    if action == "csv":
        return _download()
    if action == "trash":
        return selection.process(
            selection.next_part(_ids_after),
            lambda coupon_id: call("delete_coupon", coupon_id=coupon_id),
            title=_("Moving coupons to the trash"),
            back=_back(),
        )
    if action == "restore":
        return selection.process(
            selection.next_part(_ids_after),
            lambda coupon_id: call("restore_coupon", coupon_id=coupon_id),
            title=_("Restoring coupons"),
            back=_back(),
        )
    if action == "expiry":
        return _set_expiry()
    raise InvalidParams({"action": "must be trash, restore, expiry or csv."})


def _set_expiry() -> Response:
    text = request.form.get("expiry_date", "")
    try:
        expiry = date.fromisoformat(text).isoformat() if text else ""
    except ValueError:
        raise InvalidParams({"expiry_date": "must be a date in the form 2026-11-29."}) from None
    body = {"coupon": {"expiry_date": expiry}}
    return selection.process(
        selection.next_part(_ids_after),
        lambda coupon_id: call("update_coupon", body=body, coupon_id=coupon_id),
        title=_("Setting the expiry date"),
        back=_back(),
    )


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
