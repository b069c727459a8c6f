"""The overview (admin 2)."""

from __future__ import annotations

from flask import Response

from app.admin.frame import AdminBlueprint, NavigationItem, render
from app.admin.texts import gettext as _

blp = AdminBlueprint("admin_overview", __name__)

NAVIGATION = NavigationItem("Overview", "admin_overview.show", "home", position=0)


@blp.page("/")
def show() -> Response:
    """Show the overview."""
    return render("overview.html", title=_("Overview"))
