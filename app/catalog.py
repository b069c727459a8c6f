"""What plugins add to: coupon types, order statuses, and hooks that are notified of changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from flask import current_app

from app.discounts import COUPON_TYPES, CouponType, Rule, no_discount

EXTENSION = "shop_api"
"""Key in ``app.extensions`` under which each app keeps its catalog and plugin registry."""


class RedemptionEffect(StrEnum):
    """What a status of an order does to the uses of the coupons of the order (redemptions 4)."""

    RESERVE = "reserve"
    CONFIRM = "confirm"
    RELEASE = "release"
    UNCHANGED = "unchanged"


TRASH = "trash"
"""Status of a record in the trash. It is no known order status, so no list or sum includes it."""


class DuplicateNameError(ValueError):
    """The catalog already has an entry with this name."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a record, as plugins are notified of it.

    Attributes:
        event: ``<resource>.<what happened>``: ``order.created``, ``order.updated``,
            ``order.deleted`` or ``order.restored``.
        before: the record by its column names before the change; None for a new record.
        after: the record after the change; None if it was deleted permanently.
        user_id: the user that made the change.
    """

    event: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    user_id: int

    @property
    def resource(self) -> str:
        """Return the kind of the record: ``order``."""
        return self.event.partition(".")[0]


@dataclass(frozen=True, slots=True)
class ChangeHook:
    """Functions that are called when records of a resource change.

    Each function gets all changes of a request at once, in their order.

    Args:
        resource: kind of the records, for example ``order``.
        before_commit: called in the transaction, after the changes are written. It can raise
            ShopError, which rejects the request and rolls the transaction back. It is called again
            when the transaction is retried.
        after_commit: called once, after the commit. Its exceptions are logged and change nothing.
    """

    resource: str
    before_commit: Callable[[Sequence[Change]], None] | None = None
    after_commit: Callable[[Sequence[Change]], None] | None = None


@dataclass(slots=True)
class Catalog:
    """Known coupon types and order statuses of one app.

    Attributes:
        coupon_types: rule of each known coupon type by its name (spec 2.1, redemptions 3).
        order_statuses: label of each known order status by its name (decisions 7).
        redemption_effects: effect of each order status on uses of coupons (redemptions 4).
        change_hooks: what is notified of changes, in the order in which it was added.
    """

    coupon_types: dict[str, CouponType] = field(default_factory=lambda: dict(COUPON_TYPES))
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

    change_hooks: list[ChangeHook] = field(default_factory=list)

    redemption_effects: dict[str, RedemptionEffect] = field(
        default_factory=lambda: {
            "pending": RedemptionEffect.RESERVE,
            "processing": RedemptionEffect.CONFIRM,
            "on-hold": RedemptionEffect.CONFIRM,
            "completed": RedemptionEffect.CONFIRM,
            "cancelled": RedemptionEffect.RELEASE,
            "refunded": RedemptionEffect.UNCHANGED,
            "failed": RedemptionEffect.RELEASE,
        }
    )

    def add_change_hook(self, hook: ChangeHook) -> None:
        """Notify a hook of the changes of its resource."""
        self.change_hooks.append(hook)

    def add_coupon_type(
        self, name: str, rule: Rule | None = None, *, discounts_cart: bool = False
    ) -> None:
        """Add a coupon type.

        Args:
            rule: computes its discounts (see ``app.discounts.Rule``); None gives no discount.
            discounts_cart: whether it discounts the whole cart, not only the eligible items.

        Raises:
            DuplicateNameError: the type exists.
        """
        if name in self.coupon_types:
            raise DuplicateNameError(f"the coupon type {name!r} already exists")
        self.coupon_types[name] = CouponType(rule or no_discount, discounts_cart=discounts_cart)

    def add_order_status(
        self,
        name: str,
        label: str,
        *,
        redemption_effect: RedemptionEffect | str = RedemptionEffect.UNCHANGED,
    ) -> None:
        """Add an order status.

        Args:
            redemption_effect: what an order that gets this status does to the uses of its coupons:
                ``reserve``, ``confirm``, ``release`` or ``unchanged``.

        Raises:
            DuplicateNameError: the status exists.
            ValueError: the effect is unknown.
        """
        if name in self.order_statuses or name == TRASH:
            raise DuplicateNameError(f"the order status {name!r} already exists")
        effect = RedemptionEffect(redemption_effect)
        self.order_statuses[name] = label
        self.redemption_effects[name] = effect


def current_catalog() -> Catalog:
    """Return the catalog of the current app."""
    catalog: Catalog = current_app.extensions[EXTENSION]
    return catalog
