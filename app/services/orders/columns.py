"""Columns of orders: conversion, status changes, search text and automatic notes."""

import re
import secrets
from base64 import b32encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from flask import current_app

from app.catalog import Change, current_catalog
from app.conversions.currencies import MOST_PLACES, decimal_places
from app.conversions.emails import comparable_email
from app.db.records import Record
from app.db.search import SEPARATOR, email_key, search_text
from app.errors import ShopError
from app.models.address import ADDRESS_COLUMNS, SHIPPING_PHONE
from app.services.common.bulk import Data

COMPLETED, PENDING, PROCESSING = "completed", "pending", "processing"
REFUNDED = "refunded"
BECOMES_PROCESSING = {"pending", "on-hold", "failed", "cancelled"}
"""Statuses that payment changes to ``processing`` (orders 9)."""

ADDRESSES = ("billing", "shipping")
_SEARCHED = ("company", "address_1", "address_2", "city", "postcode")
"""Parts of an address that searches find, beside the name."""

TEXTS = ("note", "customer_ip", "customer_user_agent")
AS_SUPPLIED = (*TEXTS, "transaction_id", "prices_include_tax")
BLANK: Record = {
    **dict.fromkeys((*ADDRESS_COLUMNS, SHIPPING_PHONE, *TEXTS), ""),
    "customer_id": None,
    "completed_at": None,
    "payment_method_id": "",
    "payment_method_title": "",
    "payment_paid": False,
    "trashed_at": None,
    "status_before_trash": None,
    "transaction_id": "",
    "paid_at": None,
    "created_via": "rest-api",
    "parent_id": None,
    "prices_include_tax": False,
    "cart_hash": "",
    "version": "",
    "total_refunded": Decimal(0),
}


def columns_of(data: Data) -> Record:
    """Return the columns for the supplied texts, customer, payment details and addresses."""
    columns: Record = {name: data[name] for name in AS_SUPPLIED if name in data}
    for name in ("customer_id", "parent_id"):
        if name in data:
            columns[name] = data[name] or None
    for prefix, part in (
        ("payment_", "payment_details"),
        ("billing_", "billing_address"),
        ("shipping_", "shipping_address"),
    ):
        columns |= {f"{prefix}{key}": value for key, value in data.get(part, {}).items()}
    return columns


@dataclass(frozen=True, slots=True)
class StatusChange:
    """What a write says of the change of the status, beside the status.

    Args:
        pays: whether it pays for the order.
        note: text of the note of the change, by default the automatic one.
        author: author of the note.
    """

    pays: bool
    note: str = ""
    author: str = ""


def paid_at(
    before: Mapping[str, Any] | None, after: Mapping[str, Any], change: StatusChange | None
) -> datetime | None:
    """Return when an order was paid: the first time it gets a paid status or is marked as paid.

    Args:
        before: the stored order; None for a new order, which can have been paid for earlier.
        change: what the write says of it. Without it the status decides.
    """
    if after["paid_at"] is not None:
        return after["paid_at"]  # type: ignore[no-any-return] # of a dict
    becomes_paid = _is_paid(after) and not (before and _is_paid(before))
    if not (change.pays if change else becomes_paid):
        return None
    return after["updated_at" if before else "created_at"]  # type: ignore[no-any-return] # of a dict


def _is_paid(order: Mapping[str, object]) -> bool:
    is_in_status = order["status"] in current_app.config["SHOP_PAID_STATUSES"]
    return is_in_status or bool(order["payment_paid"])


def next_status(status: str, data: Data) -> str:
    """Return the status after an update: the supplied one, or processing after a payment."""
    if "status" in data:
        return str(data["status"])
    paid = data.get("payment_details", {}).get("paid")
    return PROCESSING if paid and status in BECOMES_PROCESSING else status


def status_note(
    order: Mapping[str, Any], status_before: str, change: StatusChange | None
) -> Record:
    """Return the note of a status change: that of the write, or the automatic one."""
    labels = current_catalog().order_statuses
    before, after = labels.get(status_before, status_before), labels[order["status"]]
    return {
        "order_id": order["id"],
        "created_at": order["updated_at"],
        "note": (change and change.note) or f"Order status changed from {before} to {after}.",
        "customer_note": False,
        "author": change.author if change else "",
    }


def note_created(note_id: int, note: Mapping[str, object], customer_id: int | None) -> Change:
    """Return the change of a new note, whose text can mention the customer of the order."""
    return Change("order_note.created", None, {**note, "id": note_id, "customer_id": customer_id})


def derived_columns(order: Mapping[str, Any]) -> Record:
    """Return the columns by which orders are searched and compared."""
    return {
        "search_text": search_text_of(order),
        "billing_email_normalized": guest_key(order["billing_email"]),
    }


def guest_key(email: str) -> str | None:
    """Return ``billing_email_normalized`` of an address.

    ``lower()`` of both databases is sufficient for an address in ASCII whose domain is not encoded.
    """
    return None if email.isascii() and "xn--" not in email.lower() else email_key(email)


def search_text_of(order: Mapping[str, Any]) -> str:
    """Return the text without accents that searches of orders use (orders 4).

    Both addresses, the names of lines and shipping methods and the number of the payment are part
    of it.
    """
    names = [f"{order[f'{kind}_first_name']} {order[f'{kind}_last_name']}" for kind in ADDRESSES]
    parts = (order[f"{kind}_{part}"] for kind in ADDRESSES for part in _SEARCHED)
    lines = [line.get("name") or "" for line in order["line_items"]]
    methods = [line.get("method_title") or "" for line in order["shipping_lines"]]
    of_items = SEPARATOR.join(dict.fromkeys([*lines, *methods]))
    email = comparable_email(order["billing_email"])
    return search_text(
        *(order["order_number"], *names, *parts, order["billing_email"]),
        *(email, of_items, order["transaction_id"]),
    )


def new_key() -> str:
    """Return a random order key."""
    return "order_" + b32encode(secrets.token_bytes(9)).decode().lower()[:13]


def with_total_tax(order: Mapping[str, Any]) -> Record:
    """Return an order with ``total_tax`` added, as in responses."""
    return {**order, "total_tax": order["cart_tax"] + order["shipping_tax"]}


def require_known_status(status: str) -> None:
    """Raise ShopError if the order status does not exist."""
    known = current_catalog().order_statuses
    if status not in known:
        raise ShopError("shop_api_invalid_order_status", statuses=", ".join(known))


def require_currency(currency: str) -> None:
    """Raise ShopError unless a currency is three ASCII letters and has at most two decimals."""
    if not re.fullmatch("[A-Za-z]{3}", currency):
        raise ShopError("shop_api_invalid_order_currency")
    if decimal_places(currency) > MOST_PLACES:
        raise ShopError(
            "shop_api_invalid_currency", param="order.currency", currency=currency.upper()
        )
