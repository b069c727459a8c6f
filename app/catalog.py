"""The shop's own enumerations: coupon types and order statuses. Plugins add to both."""

from __future__ import annotations

from dataclasses import dataclass, field

from flask import current_app

EXTENSION = "shop_api"
"""Key in ``app.extensions`` under which each app keeps its catalog and plugin registry."""


TRASH = "trash"
"""Status of a record in the trash. It is no known order status, so no list or sum includes it."""


class DuplicateNameError(ValueError):
    """The catalog already has an entry with this name."""


@dataclass(slots=True)
class Catalog:
    """Known coupon types and order statuses of one app.

    Attributes:
        coupon_types: names accepted as a coupon's ``type`` (spec 2.1, decisions 4).
        order_statuses: label of each known order status by its name (decisions 7).
    """

    coupon_types: list[str] = field(
        default_factory=lambda: ["fixed_cart", "percent", "fixed_product", "percent_product"]
    )
    order_statuses: dict[str, str] = field(
        default_factory=lambda: {
            "pending": "Pending payment",
            "processing": "Processing",
            "on-hold": "On hold",
            "completed": "Completed",
            "cancelled": "Cancelled",
            "refunded": "Refunded",
            "failed": "Failed",
        }
    )

    def add_coupon_type(self, name: str) -> None:
        """Add a coupon type. Raises DuplicateNameError if it exists."""
        if name in self.coupon_types:
            raise DuplicateNameError(f"the coupon type {name!r} already exists")
        self.coupon_types.append(name)

    def add_order_status(self, name: str, label: str) -> None:
        """Add an order status. Raises DuplicateNameError if it exists."""
        if name in self.order_statuses or name == TRASH:
            raise DuplicateNameError(f"the order status {name!r} already exists")
        self.order_statuses[name] = label


def current_catalog() -> Catalog:
    """Return the catalog of the current app."""
    catalog: Catalog = current_app.extensions[EXTENSION]
    return catalog
