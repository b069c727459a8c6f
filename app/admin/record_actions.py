"""Actions that end a record and bring it back: trash, restore and delete (admin 2)."""

from __future__ import annotations

from typing import Any

from werkzeug.wrappers import Response as BaseResponse

from app.admin import frame
from app.admin.calls import call
from app.admin.frame import AdminBlueprint, see_other


def add_actions(blp: AdminBlueprint, noun: str, *, has_trash: bool) -> None:
    """Add the endpoints ``delete``, and with a trash also ``trash`` and ``restore``.

    Args:
        blp: a blueprint with the endpoints ``show_list`` and ``show``.
        noun: the record in addresses, variables and operations of the API: ``coupon``.
        has_trash: whether deleting a record moves it to the trash at first.
    """
    operation, address = f"delete_{noun}", f"/{noun}s/<int:{noun}_id>"
    forced = {"force": "true"} if has_trash else {}

    @blp.action(f"{address}/delete", operation)
    def delete(**path: Any) -> BaseResponse:
        """Delete a record permanently."""
        call(operation, query=forced, **path)
        return see_other(f"{blp.name}.show_list", done="deleted")

    if not has_trash:
        return

    @blp.action(f"{address}/trash", operation)
    def trash(**path: Any) -> BaseResponse:
        """Move a record to the trash."""
        call(operation, **path)
        return see_other(f"{blp.name}.show_list", done="trashed", **frame.undo(*path.values()))

    @blp.action(f"{address}/restore", f"restore_{noun}")
    def restore(**path: Any) -> BaseResponse:
        """Restore a record from the trash."""
        call(f"restore_{noun}", **path)
        return see_other(f"{blp.name}.show", done="restored", **path)
