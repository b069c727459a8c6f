"""Orders of this dialect: their operations (wc-v3, surface 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import itemgetter

from flask import current_app
from sqlalchemy.orm import Session

from app.auth.principals import Capability
from app.catalog import current_catalog
from app.conversions.numbers import INT64_MAX
from app.conversions.text import coupon_code
from app.db.session import run_in_transaction
from app.errors import InvalidOrderItems, ShopError
from app.models import ORDERS as ORDER_TABLE
from app.plugins.woocommerce.rest import arguments as arg
from app.plugins.woocommerce.rest import order_objects, schemas, stored_orders
from app.plugins.woocommerce.rest.errors import RestError, as_rest_error
from app.plugins.woocommerce.rest.lists import METADATA_KEYS, RecordListQuery, collection
from app.plugins.woocommerce.rest.operations import Call, Operation, Route
from app.plugins.woocommerce.rest.order_requests import FIELDS, NEW, native_order, statuses
from app.plugins.woocommerce.rest.resources import Resource
from app.plugins.woocommerce.rest.site import Object, Record, Site
from app.services.common.bulk import BulkItem
from app.services.common.filtering import Matching
from app.services.common.locks import hold_accounts
from app.services.coupons.refusals import CouponRefused
from app.services.maintenance import trash
from app.services.orders import writes
from app.services.orders.locks import lock_orders

_VIEW = {
    "context": arg.CONTEXT,
    "dp": arg.DECIMALS,
    "order_item_display_meta": arg.BOOLEAN,
    **METADATA_KEYS,
}
_LIST = {
    **collection("Order", "date", "id", "include", "title", "slug", "modified"),
    "parent": arg.IDS,
    "parent_exclude": arg.IDS,
    "status": arg.ListArgument(default=["any"], items=statuses("OrderListStatus", "any", "trash")),
    "customer": arg.INTEGER,
    "product": arg.ABSOLUTE,
    "created_via": arg.ListArgument(items=arg.TEXT),
    **_VIEW,
}


class Orders(Resource):
    """The orders of the shop."""

    noun, kind, result = "order", "shop_order", order_objects.RestOrder
    table, columns, keys = ORDER_TABLE, stored_orders.COLUMNS, stored_orders.KEYS
    needs = (
        Capability.READ_PRIVATE_SHOP_ORDERS,
        Capability.PUBLISH_SHOP_ORDERS,
        Capability.PROCESS_SHOP_ORDERS,
        Capability.DELETE_SHOP_ORDERS,
    )
    listed, viewed = _LIST, _VIEW
    created = {**FIELDS, "created_via": arg.NAME}
    edited = {**FIELDS, "status": statuses("OrderOrderStatus", "trash")}
    erase = staticmethod(writes.delete_order)
    restore = staticmethod(trash.restore_order)
    save = staticmethod(partial(writes.save_orders, trashed_too=True))

    def query(self, call: Call) -> RecordListQuery:
        query = super().query(call)
        if query.orderby in {"title", "slug"}:
            return replace(query, order="asc")  # as on the original, where all titles are equal
        return query

    def matching(self, call: Call, query: RecordListQuery) -> Matching:
        return stored_orders.matching(query, call.args)

    def completed(self, records: list[Object], site: Site) -> list[Object]:
        return stored_orders.completed(records, with_customers=site.has_customer)

    def records(self, ids: Sequence[int], site: Site) -> list[Object]:
        """Return orders by their IDs.

        Metadata is in the order of its keys, and in a list in that of its IDs, as on the original.
        """
        records = super().records(ids, site)
        for each in records:
            each["metadata"] = sorted(each["metadata"], key=itemgetter(1))
        return records

    def defaults(self, call: Call) -> Mapping[str, object]:
        status = call.args.get("status")
        return {"status": ["any"] if status is None else status, "dp": 2, "context": "view"}

    def data(self, call: Call) -> Object:
        """Return under ``new`` what ``item`` takes. A change depends on the stored order."""
        return {} if call.ids else {"new": native_order(call, NEW)}

    def lock(self, session: Session, calls: Sequence[Call]) -> None:
        if ids := [min(call.ids["id"], INT64_MAX) for call in calls if call.ids]:
            lock_orders(session, ids)

    def stored(self, ids: Sequence[int], call: Call) -> Sequence[Record]:
        return self.records(ids, replace(call.site, has_customer=False))

    def item(self, call: Call, data: Object, before: Record | None) -> BulkItem:
        fields, change = native_order(call, before) if before else data["new"]
        if before is None:
            fields = _with_account_email(fields)
        codes = [coupon_code(str(each["code"])) for each in call.given.get("coupon_lines") or ()]
        return writes.OrderItem(call.ids.get("id"), fields, call.check, change, codes)

    def failed(self, call: Call, error: ShopError, before: Record | None) -> Exception:
        stored = before["currency"] if before else current_app.config["SHOP_CURRENCY"]
        return _order_error(error, call.given.get("currency") or stored)


ORDERS = Orders()


def list_statuses(_call: Call) -> list[Object]:
    """Return the statuses of orders."""
    found = current_catalog().order_statuses.items()
    return [{"slug": name, "name": label} for name, label in found]


_STATUSES = Route(
    "/orders/statuses",
    {
        "GET": Operation(
            list_statuses, "list", ORDERS.needs[:1], summary="List order statuses",
            result=schemas.RestOrderStatusName, is_list=True,
        )
    },
)  # fmt: skip
ROUTES = (*ORDERS.routes, _STATUSES)


_REASONS = {
    "not_found": 'Coupon "{0}" cannot be applied because it does not exist.',
    "usage_limit": 'Usage limit for coupon "{0}" has been reached.',
    "usage_limit_per_user": 'Usage limit for coupon "{0}" has been reached.',
    "expired": 'Coupon "{0}" has expired.',
    "product_not_included": 'Sorry, coupon "{0}" is not applicable to selected products.',
    "product_excluded": 'Sorry, coupon "{0}" is not applicable to selected products.',
    "sale_items_excluded": 'Sorry, coupon "{0}" is not applicable to selected products.',
    "email_not_allowed": 'Please enter a valid email at checkout to use coupon code "{0}".',
    "minimum_amount": 'The minimum spend for coupon "{0}" is {1}.',
    "maximum_amount": 'The maximum spend for coupon "{0}" is {1}.',
}
"""What the original says, by the first reason of a coupon that is not applicable."""


def _order_error(error: ShopError, currency: str) -> Exception:
    """Return the error of this dialect for that of a write of an order in a currency."""
    if isinstance(error, InvalidOrderItems):
        return error
    if isinstance(error, CouponRefused):
        return _not_applicable(error, currency)
    if error.code == "shop_api_invalid_customer_id":
        return RestError("woocommerce_rest_invalid_customer_id", "Customer ID is invalid.")
    if error.code == "shop_api_invalid_order_id" and error.param:
        return RestError("order_invalid_parent_id", "Invalid parent ID")
    return error


def _not_applicable(error: CouponRefused, currency: str) -> RestError:
    shown = as_rest_error(error)
    template = _REASONS.get(error.first.code)
    if template is None:
        return shown
    money = f"{order_objects.symbol_of(currency)}{error.first.amount}"
    return RestError(shown.code, template.format(error.coupon, money), 400, shown.data)


def _with_account_email(data: Object) -> Object:
    """Return a new order, without a billing address with the e-mail address of its account."""
    customer_id, billing = data.get("customer_id"), data.get("billing_address", {})
    if not customer_id or billing.get("email"):
        return data
    held = run_in_transaction(lambda session: hold_accounts(session, [customer_id]))
    if customer_id not in held:
        return data  # rejected by the service
    return {**data, "billing_address": {**billing, "email": held[customer_id].email}}
