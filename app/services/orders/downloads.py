"""The rules for download permissions of orders (orders 6)."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.orm import Session

from app.db.records import Record
from app.errors import ShopError
from app.models import DOWNLOADS
from app.services.common.bulk import BulkItem, Data
from app.services.orders.item_changes import MAX_ITEMS

DOWNLOAD_PERMISSIONS = "download_permissions"
"""Key of the list in an order of a request."""

Item = Mapping[str, Any]

BLANK: Record = {
    "product_id": 0,
    "download_id": "",
    "download_name": "",
    "download_url": "",
    "file_name": "",
    "file_url": "",
    "downloads_remaining": None,
    "access_expires": None,
}
IDENTIFYING = ("product_id", "download_id", "download_url")
"""Columns that identify a download. At least one of them must not be empty."""


@dataclass(frozen=True, slots=True)
class DownloadPermissions:
    """Download permissions of an order during a create or an update. Does not use the database.

    Attributes:
        stored: existing permissions after the change; ``updated`` has the IDs of those that change.
        created: new permissions, which get an ID when they are written.
    """

    stored: Mapping[int, Record] = field(default_factory=dict)
    created: Sequence[Record] = ()
    updated: frozenset[int] = frozenset()
    removed: frozenset[int] = frozenset()

    def changed(self, data: Data) -> tuple[DownloadPermissions, dict[str, str]]:
        """Return the permissions after the items of a request, and every violated rule.

        Args:
            data: the loaded fields of the order. An item with an ``id`` updates or removes that
                permission. An item without an ``id`` adds a permission.

        Returns:
            The changed permissions, and the reasons for violated rules by their location.

        Raises:
            ShopError: the order would have too many permissions.
        """
        stored, created = dict(self.stored), list(self.created)
        updated, removed = set(self.updated), set(self.removed)
        errors: dict[str, str] = {}
        seen: set[int] = set()
        for index, item in enumerate(data.get(DOWNLOAD_PERMISSIONS) or ()):
            place = f"order.{DOWNLOAD_PERMISSIONS}[{index}]"
            permission_id = item.get("id")
            if permission_id is None:
                record = BLANK | _columns(item)
                if not _violations(record, place, errors):
                    created.append(record)
                continue
            if permission_id in seen or permission_id not in stored:
                unknown = f"is not the ID of an item in {DOWNLOAD_PERMISSIONS}."
                errors[f"{place}.id"] = "occurs twice." if permission_id in seen else unknown
                continue
            seen.add(permission_id)
            if item.get("remove"):
                del stored[permission_id]
                updated.discard(permission_id)
                removed.add(permission_id)
                continue
            record = stored[permission_id] | _columns(item)
            if not _violations(record, place, errors) and record != stored[permission_id]:
                stored[permission_id] = record
                updated.add(permission_id)
        if len(stored) + len(created) > MAX_ITEMS:
            raise ShopError("shop_api_order_too_large", limit=MAX_ITEMS)
        after = replace(
            self,
            stored=stored,
            created=created,
            updated=frozenset(updated),
            removed=frozenset(removed),
        )
        return after, errors


def permissions_of(
    session: Session, items: Sequence[BulkItem], orders: Container[int]
) -> dict[int, DownloadPermissions]:
    """Return the download permissions that the items can change, by order ID, in one statement.

    Args:
        orders: IDs of the orders that can be updated, which are locked.
    """
    order_ids = [
        item.id
        for item in items
        if item.id is not None and item.id in orders and item.data.get(DOWNLOAD_PERMISSIONS)
    ]
    if not order_ids:
        return {}
    found: dict[int, dict[int, Record]] = {order_id: {} for order_id in order_ids}
    rows = session.execute(
        select(DOWNLOADS).where(DOWNLOADS.c.order_id.in_(order_ids)).order_by(DOWNLOADS.c.id)
    ).mappings()
    for row in rows:
        found[row["order_id"]][row["id"]] = {name: row[name] for name in BLANK}
    return {order_id: DownloadPermissions(stored) for order_id, stored in found.items()}


def write_permissions(session: Session, after: Mapping[int, DownloadPermissions]) -> None:
    """Write the permissions of orders, by ID, with one statement for each kind of change."""
    created = [
        {**record, "order_id": order_id}
        for order_id, permissions in after.items()
        for record in permissions.created
    ]
    updated = [
        {**permissions.stored[permission_id], "this": permission_id}
        for permissions in after.values()
        for permission_id in sorted(permissions.updated)
    ]
    removed = [each for permissions in after.values() for each in permissions.removed]
    if removed:
        session.execute(delete(DOWNLOADS).where(DOWNLOADS.c.id.in_(removed)))
    if updated:
        session.execute(update(DOWNLOADS).where(DOWNLOADS.c.id == bindparam("this")), updated)
    if created:
        session.execute(insert(DOWNLOADS), created)


def _columns(item: Item) -> Record:
    """Return the columns that an item sets."""
    columns = {name: item[name] for name in BLANK if name in item}
    file = item.get("file", {})
    if "name" in file:
        columns["file_name"] = file["name"]
    if "file" in file:
        columns["file_url"] = file["file"]
    return columns


def _violations(record: Record, place: str, errors: dict[str, str]) -> bool:
    """Add the rules that a permission violates to the errors, and return whether there are any."""
    known = len(errors)
    if not any(record[name] for name in IDENTIFYING):
        errors[place] = "needs a product_id, a download_id or a download_url."
    if record["product_id"] < 0:
        errors[f"{place}.product_id"] = "must not be negative."
    remaining = record["downloads_remaining"]
    if remaining is not None and remaining < 0:
        errors[f"{place}.downloads_remaining"] = "must not be negative."
    return len(errors) > known
