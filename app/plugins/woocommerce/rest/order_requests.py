"""Requests that write orders: their arguments, and the conversion to native fields (surface 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from flask import current_app

from app.catalog import TRASH, current_catalog
from app.conversions.emails import is_email
from app.conversions.numbers import whole_number
from app.conversions.text import CODE_MAX_LENGTH, coupon_code
from app.plugins.woocommerce.rest import arguments as arg
from app.plugins.woocommerce.rest import customers, order_objects
from app.plugins.woocommerce.rest.attributes import change_attributes
from app.plugins.woocommerce.rest.errors import RestError
from app.plugins.woocommerce.rest.operations import Call
from app.plugins.woocommerce.rest.site import Object, Record
from app.schemas.fields.json_schema import TEXT_MAX_LENGTH
from app.schemas.loading import instance_of
from app.schemas.orders.input import OrderCreate, OrderUpdate
from app.services.orders import columns
from app.services.orders.columns import StatusChange

LISTS = {
    "line_items": ("product_id", ""),
    "shipping_lines": ("method_id", "shipping"),
    "fee_lines": ("name", "fee"),
}
"""For each list the field that a new item needs, and a part of error codes."""

_REMOVERS = ("product_id", "method_id", "method_title", "name", "code")
"""Fields whose null removes an item from any list (surface 9)."""

_TEXTS = {"name", "method_id", "method_title"}
"""Fields that can have a value of any type, which counts as its text."""
_TITLES = {"shipping": "Shipping method ID is required.", "fee": "Fee name is required."}
NEEDS_PAYMENT = {"pending", "failed"}
ON_DELIVERY = "cod"
"""The payment method of orders that the customer pays for on delivery."""


def statuses(component: str, *others: str) -> arg.Argument:
    """Return the argument of a status: one of the shop, or one of some others."""

    def names() -> list[str]:
        return [*others, *current_catalog().order_statuses]

    return arg.choice(component, names, prefix="wc-")


# Currencies of older orders, and some that are not in ISO 4217.
_OTHER_CURRENCIES = (
    "ANG",
    "BTC",
    "BYR",
    "CUC",
    "GGP",
    "HRK",
    "IMP",
    "IRT",
    "JEP",
    "PRB",
    "SLL",
    "VEF",
)
CURRENCIES = sorted({*order_objects.KNOWN_CURRENCIES, *_OTHER_CURRENCIES})

_PRODUCT = arg.Argument("integer", "string")


def _lines(component: str, meaning: str, **own: arg.Argument) -> arg.ListArgument:
    fields = arg.nullable(id=arg.INTEGER, **own)
    return arg.ListArgument(
        items=arg.ObjectArgument(component, meaning, **fields, meta_data=arg.METADATA)
    )


LOOSE_TEXT = arg.Argument("string", "number", maxLength=TEXT_MAX_LENGTH)
FIELDS: dict[str, Any] = {
    "parent_id": arg.INTEGER,
    "status": statuses("OrderStatus"),
    "currency": arg.choice("OrderCurrency", CURRENCIES),
    "customer_id": arg.INTEGER,
    "customer_note": arg.LONG_TEXT,
    "billing": customers.BILLING,
    "shipping": customers.SHIPPING,
    "payment_method": arg.NAME,
    "payment_method_title": arg.NAME,
    "transaction_id": arg.NAME,
    "meta_data": arg.METADATA,
    "line_items": _lines(
        "LineItemCreate", "Product of an order to write.",
        name=arg.ANYTHING, product_id=_PRODUCT, variation_id=arg.INTEGER, quantity=arg.INTEGER,
        tax_class=arg.NAME, subtotal=arg.MONEY, total=arg.MONEY, sku=arg.NAME,
    ),
    "shipping_lines": _lines(
        "ShippingLineCreate", "Shipping of an order to write.",
        method_title=LOOSE_TEXT, method_id=LOOSE_TEXT, instance_id=arg.NAME, total=arg.MONEY,
    ),
    "fee_lines": _lines(
        "FeeLineCreate", "Fee of an order to write.",
        name=LOOSE_TEXT, tax_class=arg.NAME, total=arg.MONEY,
        tax_status=arg.choice("OrderTaxStatus", ["taxable", "none"]),
    ),
    "coupon_lines": _lines("CouponLineCreate", "Coupon of an order to use.", code=LOOSE_TEXT),
    "manual_update": arg.BOOLEAN,
    "set_paid": arg.BOOLEAN,
}  # fmt: skip


_NAMES_OF_ITEMS = {
    name: {
        field: "title" if (name, field) == ("fee_lines", "name") else field
        for field in FIELDS[name].inner.schema.fields
        if field not in {"id", "meta_data", "tax_status"}
    }
    for name in LISTS
}
"""Native names of the fields of each list."""


_SAME = ("customer_id", "transaction_id", "parent_id", "currency", "created_via")
NAMES: Mapping[str, str] = {"customer_note": "note", **dict(zip(_SAME, _SAME, strict=True))}
"""Native names of fields that need no conversion."""

NEW: Record = {
    **columns.BLANK,
    "status": columns.PENDING,
    "total": "0",
    "item_details": {},
    **dict.fromkeys((*LISTS, "coupon_lines"), ()),
}
"""What a create begins with, in place of the stored order."""


def native_order(call: Call, before: Record) -> tuple[Object, StatusChange | None]:
    """Return the fields of a request as the services take them, and the change of the status.

    Args:
        call: the request.
        before: the stored order, or ``NEW``.
    """
    given, native = call.given, customers.native_addresses(call.given)
    for name, own in NAMES.items():
        if name in given and (given[name] or name != "created_via"):
            native[own] = given[name]
    if status := str(given.get("status") or "").removeprefix("wc-"):
        native["status"] = status
    if native.get("status") == TRASH:
        del native["status"]
    _require_valid(native, given)
    details = {
        key: given[name]
        for name, key in (("payment_method", "method_id"), ("payment_method_title", "method_title"))
        if name in given
    }
    lists = {name: _native_lines(name, given[name], before) for name in LISTS if given.get(name)}
    if given.get("coupon_lines") is not None:
        lists["coupon_lines"] = _native_coupons(given["coupon_lines"], before)
        _discount_lines(lists, before)
    pays = _pay(native, details, lists, before, is_asked=bool(given.get("set_paid")))
    native |= {
        name: [{key: item[key] for key in item if key != "meta_data"} for item in items]
        for name, items in lists.items()
    }
    if details:
        native["payment_details"] = details
    data: Object = instance_of(OrderCreate if before is NEW else OrderUpdate).load(native)
    change = None
    if pays is not None:
        change = _status_change({**before, **columns.columns_of(data)}, call, pays=pays)
    for name, items in lists.items():
        for item, loaded in zip(items, data.get(name) or (), strict=False):
            if item.get("meta_data"):
                loaded["metadata"] = item["meta_data"]
    if given.get("meta_data"):
        data["metadata"] = given["meta_data"]
    return customers.with_shipping_phone(data, given), change


def _require_valid(native: Record, given: Record) -> None:
    """Raise RestError for values that the services describe in another way."""
    if int(native.get("customer_id", 0)) < 0:
        raise RestError("woocommerce_rest_invalid_customer_id", "Customer ID is invalid.")
    billing = (given.get("billing") or {}).get("email")
    if billing is not None and not is_email(billing):
        raise RestError("order_invalid_billing_email", "Invalid billing email address")


def _status_change(order: Record, call: Call, *, pays: bool) -> StatusChange:
    """Return the change of a status, with text or author of its note as the original writes it."""
    title, number = order["payment_method_title"], order["transaction_id"]
    is_chosen = call.given.get("status") in (columns.PROCESSING, columns.COMPLETED)
    if order["payment_paid"] and call.given.get("set_paid") and title and not is_chosen:
        return StatusChange(pays, f"Payment via {title}{f' ({number})' if number else ''}.")
    is_manual = call.given.get("manual_update")
    author = customers.name_of_account(call.actor.user_id) if is_manual else ""
    return StatusChange(pays, author=author)


def _pay(
    native: Object, details: Object, lists: Mapping[str, object], before: Record, *, is_asked: bool
) -> bool | None:
    """Return whether a write pays for the order; None if its status does not change.

    A payment that is asked for (``set_paid``) changes the status of a new order, or of one that
    needs payment. An order is complete when it is paid if it has no lines, or if the customer pays
    on delivery; then ``processing`` is not a payment (surface 9).
    """
    is_new, status = before is NEW, native.get("status", before["status"])
    has_line = lists.get("line_items") or before["line_items"]
    is_later = details.get("method_id", before["payment_method_id"]) == ON_DELIVERY
    paid = columns.COMPLETED if is_later or not has_line else columns.PROCESSING
    payable = columns.BECOMES_PROCESSING if is_new else NEEDS_PAYMENT
    if is_asked and status in payable and (is_new or Decimal(before["total"]) > 0):
        details["paid"] = True
        native["status"] = paid
        return True
    if status == before["status"]:
        return None
    pays = status in {paid, columns.COMPLETED} & {*current_app.config["SHOP_PAID_STATUSES"]}
    if pays and is_asked and is_new:
        details["paid"] = True
    return pays


def _native_lines(name: str, given: Sequence[Record], before: Record) -> list[Object]:
    """Return the items of a list as the services take them."""
    (needed, kind), names = LISTS[name], _NAMES_OF_ITEMS[name]
    known = {item["id"] for item in before[name]}
    items = []
    for at, each in enumerate(given):
        item_id = each.get("id") or 0
        if item_id and item_id not in known:
            message = "Order item ID provided is not associated with order."
            raise RestError("woocommerce_rest_invalid_item_id", message)
        is_removed = any(each.get(field, "") is None for field in _REMOVERS)
        is_removed |= name == "line_items" and each.get("quantity") == 0
        if is_removed and item_id:
            items.append({"id": item_id, "remove": True})
            continue
        item = {
            names[key]: str(value) if key in _TEXTS else value
            for key, value in each.items()
            if key in names and value is not None
        }
        for key in ("total", "subtotal"):
            if key in each and each[key] in (None, ""):
                item[key] = 0
        if name == "line_items":
            _complete_line(item, is_new=not item_id, place=f"line_items[{at}]")
        elif not item_id and not item.get(names[needed]):
            raise RestError(f"woocommerce_rest_invalid_{kind}_item", _TITLES[kind])
        if name == "shipping_lines" and not item_id:
            item.setdefault("method_title", "Shipping")
        item["meta_data"] = _metadata_of(name, each, before)
        if item_id:
            item["id"] = item_id
            if name == "line_items":
                _keep_totals(item, each, before)
                change_attributes(item, before)
        items.append(item)
    return items


def _keep_totals(item: Object, given: Record, before: Record) -> None:
    """Keep the amounts of a line that a change does not name (surface 9).

    A total that coupons can have reduced is computed again.
    """
    if "total" in item or not {"quantity", "subtotal"} & given.keys():
        return
    stored = next(line for line in before["line_items"] if line["id"] == item["id"])
    item.setdefault("subtotal", stored["subtotal"])
    details = (before["item_details"] or {}).get(str(item["id"]), {})
    is_other = Decimal(item["subtotal"]) != Decimal(stored["total"])
    if details.get("own_total") or (is_other and not before["coupon_lines"]):
        item["total"] = stored["total"]


def _metadata_of(name: str, item: Record, before: Record) -> list[Object]:
    """Return the metadata of an item, with the tax status of a fee that gets another one."""
    status = item.get("tax_status") if name == "fee_lines" else None
    # An erased order accepts what a program has read, but no new metadata.
    is_read = bool(item.get("id")) and status == order_objects.fee_tax_status(
        {**item, "order": before}
    )
    own = [{"key": "_tax_status", "value": status}] if status and not is_read else []
    return [*(item.get("meta_data") or ()), *own]


def _complete_line(item: Object, *, is_new: bool, place: str) -> None:
    """Check a line, and let coupons discount a line whose amounts are equal."""
    if "product_id" in item:
        text = str(item["product_id"]).strip()
        number = whole_number(text.removeprefix("-")) or 0
        item["product_id"] = -number if text.startswith("-") else number
    if is_new and not {"total", "subtotal"} & item.keys():
        if "product_id" in item and current_catalog().price_hooks:
            return  # a plugin may know the price
        reason = (
            f"{place} needs total or subtotal, because this service has no catalog of products. "
            "It also needs name, product_id or sku."
        )
        raise RestError("woocommerce_rest_invalid_order_item", reason)
    if is_new and item.get("subtotal", item.get("total")) == item.get("total"):
        item["subtotal"] = item.pop("total")


def _native_coupons(given: Sequence[Record], before: Record) -> list[Object]:
    """Return the changes of coupon lines that make them the given set."""
    metadata: dict[str, object] = {}
    for each in given:
        if each.get("id"):
            message = "Coupon item ID is readonly."
            raise RestError("woocommerce_rest_coupon_item_id_readonly", message)
        code = str(each.get("code") or "")
        if len(code) <= CODE_MAX_LENGTH:  # the schema rejects a longer one
            code = coupon_code(code)
        if not code:
            raise RestError("woocommerce_rest_invalid_coupon", "Coupon code is required.")
        if code in metadata:
            message = f'Coupon code "{code}" already applied!'
            raise RestError("woocommerce_rest_invalid_coupon", message)
        metadata[code] = each.get("meta_data")
    # A line keeps the code as it was when the coupon was used. Imported lines can share a code.
    lines = [(coupon_code(line["code"]), line["id"]) for line in before["coupon_lines"]]
    removed = [{"id": line_id, "remove": True} for code, line_id in lines if code not in metadata]
    stored = dict(lines)
    added = [{"code": code, "meta_data": metadata[code]} for code in metadata if code not in stored]
    if removed or added or [*stored] == [*metadata]:
        return [*removed, *added]
    return [{"id": stored[code]} for code in metadata]  # only in another order


def _discount_lines(lists: Object, before: Record) -> None:
    """Let coupons discount all lines if coupons are sent (surface 9).

    The service keeps totals that were given, such as those of imported lines. Recorded coupon lines
    that stay are part of such totals.
    """
    details = before["item_details"] or {}
    stored = {line["id"]: line["subtotal"] for line in before["line_items"]}
    removed = {each["id"] for each in lists["coupon_lines"] if "remove" in each}
    coupons = {line["id"] for line in before["coupon_lines"]}
    stays = any(not details.get(str(each), {}).get("applied") for each in coupons - removed)
    if stays or not (lists["coupon_lines"] or coupons):
        return
    changed = lists.setdefault("line_items", [])
    given = {item.get("id") for item in changed}
    own = {each for each in stored if details.get(str(each), {}).get("own_total")}
    changed += [{"id": line_id} for line_id in stored if line_id in own - given]
    for item in changed:
        has_amount = item.keys() & {"subtotal", "total"} or item.get("id") in own
        if "remove" not in item and has_amount:
            item.setdefault("subtotal", stored.get(item.get("id"), item.get("total")))
            item.pop("total", None)
