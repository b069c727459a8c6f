"""Rights on the pages: those of the operations that a page or an action stands for (admin 5).

``require`` runs the check of the API for the permission and the resources of the key. The services
check capabilities when an operation runs; ``CAPABILITIES`` names them, so that a page can leave out
what would fail. A test compares the table with the API for every role.
"""

from app.admin.calls import operations
from app.api.authentication import current_principal
from app.auth.api_keys import require_permission
from app.auth.principals import Capability as Cap
from app.errors import ShopError

_GROUPS: tuple[tuple[str, Cap, str], ...] = (
    ("read_coupons", Cap.READ_PRIVATE_SHOP_COUPONS,
     ("list_coupons count_coupons get_coupon list_trashed_coupons list_coupon_batches "
      "get_coupon_batch evaluate_coupons")),
    ("create_coupon", Cap.PUBLISH_SHOP_COUPONS, "create_coupon create_coupon_batch bulk_coupons"),
    ("edit_coupon", Cap.EDIT_SHOP_COUPONS, "update_coupon restore_coupon"),
    ("delete_coupon", Cap.DELETE_SHOP_COUPONS, "delete_coupon delete_coupon_batch"),
    ("read_redemptions_count", Cap.READ_PRIVATE_SHOP_ORDERS, "list_redemptions"),
    ("create_redemption", Cap.EDIT_SHOP_ORDERS, "create_redemption"),
    ("edit_redemption", Cap.EDIT_SHOP_ORDERS, "confirm_redemption release_redemption"),
    ("view_reports", Cap.VIEW_REPORTS,
     "get_sales_report list_coupon_reports get_coupon_report list_refusal_reports"),
    ("read_orders_count", Cap.READ_PRIVATE_SHOP_ORDERS,
     "list_orders count_orders list_trashed_orders"),
    ("read_order", Cap.READ_PRIVATE_SHOP_ORDERS, "get_order"),
    ("edit_order", Cap.EDIT_SHOP_ORDERS, "update_order restore_order"),
    ("delete_order", Cap.DELETE_SHOP_ORDERS, "delete_order"),
    ("read_order_notes", Cap.READ_PRIVATE_SHOP_ORDERS, "list_order_notes"),
    ("create_order_note", Cap.EDIT_SHOP_ORDERS, "create_order_note"),
    ("read_order_refunds", Cap.READ_PRIVATE_SHOP_ORDERS, "list_order_refunds"),
    ("create_order_refund", Cap.EDIT_SHOP_ORDERS, "create_order_refund"),
    ("delete_order_refund", Cap.DELETE_SHOP_ORDERS, "delete_order_refund"),
    ("read_customers_count", Cap.LIST_USERS, "list_customers count_customers"),
    ("read_customer", Cap.LIST_USERS, "get_customer list_customer_orders list_customer_downloads"),
    ("create_customer", Cap.CREATE_USERS, "create_customer bulk_customers"),
    ("edit_customer", Cap.EDIT_USERS, "update_customer"),
    ("delete_customer", Cap.DELETE_USERS, "delete_customer"),
    ("read_webhooks_count", Cap.MANAGE_WEBHOOKS, "list_webhooks"),
    ("read_webhook", Cap.MANAGE_WEBHOOKS,
     "get_webhook list_webhook_deliveries get_webhook_delivery"),
    ("create_webhook", Cap.MANAGE_WEBHOOKS, "create_webhook"),
    ("edit_webhook", Cap.MANAGE_WEBHOOKS,
     "update_webhook rotate_webhook_secret ping_webhook replay_webhook redeliver_webhook_delivery"),
    ("delete_webhook", Cap.MANAGE_WEBHOOKS, "delete_webhook"),
    ("create_key", Cap.MANAGE_API_KEYS, "create_api_key"),
    ("delete_key", Cap.MANAGE_API_KEYS, "delete_api_key"),
    ("read_events", Cap.READ_EVENTS, "list_events"),
    ("read_event", Cap.READ_EVENTS, "get_event"),
)  # fmt: skip

CAPABILITIES = {
    operation: (f"shop_api_user_cannot_{error}", capability)
    for error, capability, names in _GROUPS
    for operation in names.split()
}
"""The error code and the capability of operations, by the name of the view.

Editing and deleting the records of other users requires one more capability, which every role has
together with the first one."""


def require(*names: str | tuple[str, ...]) -> None:
    """Raise ShopError unless the session may run operations, in the order of the API's checks.

    Args:
        names: the names of their views. Of several in a tuple, one is enough.
    """
    for each in names:
        name = each if isinstance(each, str) else next(filter(can, each), each[0])
        operations()[name].require()
        if name in CAPABILITIES:
            code, capability = CAPABILITIES[name]
            current_principal().require(code, capability)


def require_reading() -> None:
    """Raise ShopError unless the key of the session may read, since its rights can be reduced."""
    require_permission(current_principal(), "GET")


def can(*names: str | tuple[str, ...]) -> bool:
    """Return whether the session may run operations."""
    try:
        require(*names)
    except ShopError:
        return False
    return True
