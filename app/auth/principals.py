"""Principals, capabilities and roles (decisions 2)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from app.errors import ShopError


class Capability(StrEnum):
    """A permission of a user (spec 5, decisions 2)."""

    PUBLISH_SHOP_COUPONS = "publish_shop_coupons"
    READ_PRIVATE_SHOP_COUPONS = "read_private_shop_coupons"
    EDIT_SHOP_COUPONS = "edit_shop_coupons"
    EDIT_OTHERS_SHOP_COUPONS = "edit_others_shop_coupons"
    DELETE_SHOP_COUPONS = "delete_shop_coupons"
    DELETE_OTHERS_SHOP_COUPONS = "delete_others_shop_coupons"
    PUBLISH_SHOP_ORDERS = "publish_shop_orders"
    READ_PRIVATE_SHOP_ORDERS = "read_private_shop_orders"
    EDIT_SHOP_ORDERS = "edit_shop_orders"
    PROCESS_SHOP_ORDERS = "process_shop_orders"  # their status and notes only
    EDIT_OTHERS_SHOP_ORDERS = "edit_others_shop_orders"
    DELETE_SHOP_ORDERS = "delete_shop_orders"
    DELETE_OTHERS_SHOP_ORDERS = "delete_others_shop_orders"
    REFUND_SHOP_ORDERS = "refund_shop_orders"
    LIST_USERS = "list_users"
    CREATE_USERS = "create_users"
    EDIT_USERS = "edit_users"
    DELETE_USERS = "delete_users"
    READ_EVENTS = "read_events"
    MANAGE_API_KEYS = "manage_api_keys"
    MANAGE_WEBHOOKS = "manage_webhooks"
    VIEW_REPORTS = "view_reports"


ROLES: dict[str, frozenset[Capability]] = {
    "administrator": frozenset(Capability),
    "shop_manager": frozenset(Capability) - {Capability.DELETE_USERS, Capability.MANAGE_API_KEYS},
    # Changes the status and the notes of orders, and neither refunds nor deletes.
    "shop_assistant": frozenset(
        {
            Capability.READ_PRIVATE_SHOP_COUPONS,
            Capability.READ_PRIVATE_SHOP_ORDERS,
            Capability.PROCESS_SHOP_ORDERS,
            Capability.LIST_USERS,
            Capability.READ_EVENTS,
        }
    ),
    "customer": frozenset(),
    "subscriber": frozenset(),
}


_READ_COUPONS = (Capability.READ_PRIVATE_SHOP_COUPONS,)
_READ_ORDERS = (Capability.READ_PRIVATE_SHOP_ORDERS,)

CAPABILITIES: dict[str, tuple[Capability, ...]] = {
    "shop_api_user_cannot_create_campaign": (Capability.PUBLISH_SHOP_COUPONS,),
    "shop_api_user_cannot_read_campaign": _READ_COUPONS,
    "shop_api_user_cannot_read_campaigns_count": _READ_COUPONS,
    "shop_api_user_cannot_edit_campaign": (
        Capability.EDIT_SHOP_COUPONS,
        Capability.EDIT_OTHERS_SHOP_COUPONS,
    ),
    "shop_api_user_cannot_delete_campaign": (
        Capability.DELETE_SHOP_COUPONS,
        Capability.DELETE_OTHERS_SHOP_COUPONS,
    ),
    "shop_api_user_cannot_create_coupon": (Capability.PUBLISH_SHOP_COUPONS,),
    "shop_api_user_cannot_read_coupon": _READ_COUPONS,
    "shop_api_user_cannot_read_coupons": _READ_COUPONS,
    "shop_api_user_cannot_read_coupons_count": _READ_COUPONS,
    "shop_api_user_cannot_edit_coupon": (Capability.EDIT_SHOP_COUPONS,),
    "shop_api_user_cannot_delete_coupon": (Capability.DELETE_SHOP_COUPONS,),
    "shop_api_user_cannot_create_redemption": (Capability.EDIT_SHOP_ORDERS,),
    "shop_api_user_cannot_read_redemption": _READ_ORDERS,
    "shop_api_user_cannot_read_redemptions_count": _READ_ORDERS,
    "shop_api_user_cannot_edit_redemption": (Capability.EDIT_SHOP_ORDERS,),
    "shop_api_user_cannot_create_customer": (Capability.CREATE_USERS,),
    "shop_api_user_cannot_read_customer": (Capability.LIST_USERS,),
    "shop_api_user_cannot_read_customers_count": (Capability.LIST_USERS,),
    "shop_api_user_cannot_edit_customer": (Capability.EDIT_USERS,),
    "shop_api_user_cannot_delete_customer": (Capability.DELETE_USERS,),
    "shop_api_user_cannot_create_order": (Capability.PUBLISH_SHOP_ORDERS,),
    "shop_api_user_cannot_read_order": _READ_ORDERS,
    "shop_api_user_cannot_read_orders_count": _READ_ORDERS,
    "shop_api_user_cannot_edit_order": (Capability.PROCESS_SHOP_ORDERS,),
    "shop_api_user_cannot_delete_order": (Capability.DELETE_SHOP_ORDERS,),
    "shop_api_user_cannot_create_order_note": (Capability.PROCESS_SHOP_ORDERS,),
    "shop_api_user_cannot_read_order_notes": _READ_ORDERS,
    "shop_api_user_cannot_edit_order_note": (Capability.PROCESS_SHOP_ORDERS,),
    "shop_api_user_cannot_delete_order_note": (Capability.EDIT_SHOP_ORDERS,),
    "shop_api_user_cannot_create_order_refund": (Capability.REFUND_SHOP_ORDERS,),
    "shop_api_user_cannot_read_order_refunds": _READ_ORDERS,
    "shop_api_user_cannot_read_order_refunds_count": _READ_ORDERS,
    "shop_api_user_cannot_edit_order_refund": (Capability.REFUND_SHOP_ORDERS,),
    "shop_api_user_cannot_delete_order_refund": (
        Capability.DELETE_SHOP_ORDERS,
        Capability.REFUND_SHOP_ORDERS,
    ),
    "shop_api_user_cannot_read_event": (Capability.READ_EVENTS,),
    "shop_api_user_cannot_read_events": (Capability.READ_EVENTS,),
    "shop_api_user_cannot_read_person": (
        Capability.LIST_USERS,
        *_READ_ORDERS,
        Capability.READ_EVENTS,
    ),
    "shop_api_user_cannot_erase_person": (
        Capability.LIST_USERS,
        Capability.DELETE_USERS,
        *_READ_ORDERS,
        Capability.EDIT_SHOP_ORDERS,
    ),
    "shop_api_user_cannot_create_webhook": (Capability.MANAGE_WEBHOOKS,),
    "shop_api_user_cannot_read_webhook": (Capability.MANAGE_WEBHOOKS,),
    "shop_api_user_cannot_read_webhooks_count": (Capability.MANAGE_WEBHOOKS,),
    "shop_api_user_cannot_edit_webhook": (Capability.MANAGE_WEBHOOKS,),
    "shop_api_user_cannot_delete_webhook": (Capability.MANAGE_WEBHOOKS,),
    # One of the rights of bulk requests is enough, those of the kind of records.
    "shop_api_user_cannot_import": (Capability.PUBLISH_SHOP_COUPONS, Capability.CREATE_USERS),
    "shop_api_user_cannot_view_reports": (Capability.VIEW_REPORTS,),
    "shop_api_user_cannot_create_key": (Capability.MANAGE_API_KEYS,),
    "shop_api_user_cannot_read_key": (Capability.MANAGE_API_KEYS,),
    "shop_api_user_cannot_edit_key": (Capability.MANAGE_API_KEYS,),
    "shop_api_user_cannot_delete_key": (Capability.MANAGE_API_KEYS,),
}
"""The capabilities that an operation requires, by the error code without them (decisions 2).

Services require them (``Principal.require``). The limit of a body, the pages and bulk requests ask
for the codes that a view documents (``app.api.view_docs``). Coupons of other users,
accounts with capabilities, and fields of orders beside status and note require more."""


class Permission(StrEnum):
    """The permission of an API key."""

    READ = "read"
    WRITE = "write"
    READ_WRITE = "read_write"

    def allows(self, method: str) -> bool:
        """Return whether this permission allows an HTTP method."""
        needed = Permission.READ if method in {"GET", "HEAD"} else Permission.WRITE
        return self in {needed, Permission.READ_WRITE}

    @property
    def parts(self) -> frozenset[Permission]:
        """Return what this permission consists of: READ, WRITE or both."""
        if self is Permission.READ_WRITE:
            return frozenset({Permission.READ, Permission.WRITE})
        return frozenset({self})


ALL_RESOURCES = "all"
"""The entry in the resources of a key that allows every resource, including those of plugins."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The user of a request, with the capabilities of the user and the limits of the key.

    Attributes:
        key_id: ID of the key; None for a command.
        resources: resources that the key allows; None for all.
        expires_at: when the key expires, in UTC; None for never.
        request_id: the ID of the request, for the events of its changes.
        session_id: the session of the admin pages; None for a request to the API.
        undo_of: the event that the request undoes.
    """

    user_id: int
    capabilities: frozenset[Capability]
    key_id: int | None = None
    permission: Permission = Permission.READ_WRITE
    request_id: str | None = None
    resources: frozenset[str] | None = None
    expires_at: datetime | None = None
    session_id: int | None = None
    undo_of: int | None = None

    def can(self, *capabilities: Capability) -> bool:
        """Return whether the user has all of the capabilities."""
        return self.capabilities.issuperset(capabilities)

    def has_right(self, code: str, *more: Capability) -> bool:
        """Return whether the user has the capabilities of an error code, and more."""
        return self.capabilities.issuperset((*CAPABILITIES[code], *more))

    def require(self, code: str, *more: Capability) -> None:
        """Raise ShopError with ``code`` unless the user has its capabilities, and more.

        Args:
            code: a code of ``CAPABILITIES``. Another one raises KeyError.
            more: capabilities that the record requires in addition.
        """
        if not self.has_right(code, *more):
            raise ShopError(code)


UNKNOWN_KEY = "The consumer key or its secret is wrong."
"""Reason for the rejection of an unknown key, of a wrong secret, and of a key that was deleted."""


class InvalidCredentials(Exception):
    """The credentials of a request are invalid. The message is safe to show to the client."""


class Credentials(Protocol):
    """The credentials of a request."""

    @property
    def consumer_key(self) -> str:
        """The consumer key, or an empty string."""

    def principal(self) -> Principal:
        """Return the principal of the credentials, or raise InvalidCredentials."""


def capabilities_of(roles: list[str]) -> frozenset[Capability]:
    """Return the capabilities of all roles. Unknown roles have no capabilities."""
    return frozenset().union(*(ROLES.get(role, frozenset()) for role in roles))
