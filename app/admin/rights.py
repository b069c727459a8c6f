"""Rights on the pages: those of the operations that a page or an action stands for (admin 5).

``require`` runs the check of the API for the permission and the resources of the key. The services
check capabilities when an operation runs; ``CAPABILITIES`` names them, so that a page can leave out
what would fail. A test compares the table with the API for every role.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.admin.calls import operations
from app.api.authentication import current_principal
from app.auth.api_keys import require_permission
from app.auth.principals import Capability as Cap
from app.errors import ShopError

_READ_COUPONS = ("shop_api_user_cannot_read_coupons", (Cap.READ_PRIVATE_SHOP_COUPONS,))
_EDIT_COUPON = ("shop_api_user_cannot_edit_coupon", (Cap.EDIT_SHOP_COUPONS,))
_DELETE_COUPON = ("shop_api_user_cannot_delete_coupon", (Cap.DELETE_SHOP_COUPONS,))
_CREATE_COUPON = ("shop_api_user_cannot_create_coupon", (Cap.PUBLISH_SHOP_COUPONS,))

_READ_REPORTS = ("shop_api_user_cannot_view_reports", (Cap.VIEW_REPORTS,))

CAPABILITIES: dict[str, tuple[str, tuple[Cap, ...]]] = {
    "list_coupons": _READ_COUPONS,
    "count_coupons": _READ_COUPONS,
    "get_coupon": _READ_COUPONS,
    "list_trashed_coupons": _READ_COUPONS,
    "list_coupon_batches": _READ_COUPONS,
    "get_coupon_batch": _READ_COUPONS,
    "evaluate_coupons": _READ_COUPONS,
    "create_coupon": _CREATE_COUPON,
    "create_coupon_batch": _CREATE_COUPON,
    "update_coupon": _EDIT_COUPON,
    "restore_coupon": _EDIT_COUPON,
    "delete_coupon": _DELETE_COUPON,
    "delete_coupon_batch": _DELETE_COUPON,
    "get_sales_report": _READ_REPORTS,
    "list_coupon_reports": _READ_REPORTS,
    "get_coupon_report": _READ_REPORTS,
    "list_refusal_reports": _READ_REPORTS,
    "create_api_key": ("shop_api_user_cannot_create_key", (Cap.MANAGE_API_KEYS,)),
    "delete_api_key": ("shop_api_user_cannot_delete_key", (Cap.MANAGE_API_KEYS,)),
    "list_events": ("shop_api_user_cannot_read_events", (Cap.READ_EVENTS,)),
    "list_orders": ("shop_api_user_cannot_read_orders_count", (Cap.READ_PRIVATE_SHOP_ORDERS,)),
    "get_order": ("shop_api_user_cannot_read_order", (Cap.READ_PRIVATE_SHOP_ORDERS,)),
    "list_customers": ("shop_api_user_cannot_read_customers_count", (Cap.LIST_USERS,)),
}
"""The error code and the capabilities of operations, by the name of the view.

Editing and deleting the records of other users requires one more capability, which every role has
together with the first one."""


def add_capabilities(more: Mapping[str, tuple[str, tuple[Cap, ...]]]) -> None:
    """Add the capabilities of further operations, when a module with pages is imported."""
    CAPABILITIES.update(more)


def require(*names: str) -> None:
    """Raise ShopError unless the session may run operations, in the order of the API's checks."""
    for name in names:
        operations()[name].require()
        code, needed = CAPABILITIES.get(name, ("", ()))
        if needed:
            current_principal().require(code, *needed)


def require_reading() -> None:
    """Raise ShopError unless the key of the session may read, since its rights can be reduced."""
    require_permission(current_principal(), "GET")


def can(*names: str) -> bool:
    """Return whether the session may run operations."""
    try:
        require(*names)
    except ShopError:
        return False
    return True
