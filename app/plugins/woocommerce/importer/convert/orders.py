"""Conversion of orders, their coupon uses, notes, refunds and downloads."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from urllib.parse import quote, urlencode

from app.catalog import TRASH, RedemptionEffect
from app.db.search import email_key
from app.plugins.woocommerce.importer.convert.accounts import EPOCH
from app.plugins.woocommerce.importer.convert.converted import Converted, LeftOut
from app.plugins.woocommerce.importer.convert.items import Items, refunded_items
from app.plugins.woocommerce.importer.convert.metadata import MetadataConverter
from app.plugins.woocommerce.importer.convert.stored_values import Alterations, is_yes, whole
from app.plugins.woocommerce.importer.source.clock import ShopClock, from_unix
from app.plugins.woocommerce.importer.source.item_meta import Products
from app.plugins.woocommerce.importer.source.order_layouts import NUMBER_KEYS, SourceOrder
from app.plugins.woocommerce.importer.source.staging import Meta, MetaRows, Rows
from app.plugins.woocommerce.stored_keys import ADDRESS_KEYS
from app.services.orders.columns import derived_columns
from app.services.orders.item_changes import MAX_CENTS
from app.services.orders.items import MAX_TOTAL, amount_text

PREFIX = "wc-"
SYSTEM = "WooCommerce"
"""Author of the notes that the old server wrote itself."""

DRAFTS = {"auto-draft", "draft", "checkout-draft", "inherit"}
_TEXTS = (
    "payment_method_id",
    "payment_method_title",
    "customer_ip",
    "customer_user_agent",
    "note",
    "transaction_id",
    "created_via",
    "cart_hash",
    "version",
)
_SUMS = ("total", "cart_tax", "shipping_tax", "total_shipping", "total_discount", "discount_tax")
_CURRENCY = re.compile("[A-Za-z]{3}")


def status_of(order: SourceOrder, statuses: Mapping[str, object]) -> tuple[str, str | None]:
    """Return the status of an order, and its status before it was moved to the trash.

    Raises:
        LeftOut: this shop has no such status.
    """
    status = order.status.removeprefix(PREFIX)
    if status == TRASH:
        before = (order.meta.get("_wp_trash_meta_status") or "").removeprefix(PREFIX)
        return TRASH, before if before in statuses else "pending"
    if status in DRAFTS:
        raise LeftOut(f"the order is a draft ({status})")
    if status not in statuses:
        raise LeftOut(f"the status {status!r} is unknown")
    return status, None


def order(
    source: SourceOrder,
    items: Items,
    altered: Alterations,
    statuses: Mapping[str, object],
    default_currency: str,
    *,
    metadata: MetadataConverter,
) -> Converted:
    """Return an order with the amounts that the source stores. No amount is computed again.

    Args:
        altered: alterations of its items. Alterations of the order are added.

    Raises:
        LeftOut: its status is unknown, or its total cannot be stored.
    """
    status, before = status_of(source, statuses)
    texts = source.texts
    currency = _currency(source, default_currency, altered)
    number = next((source.meta[key] for key in NUMBER_KEYS if source.meta.get(key)), None)
    values = {
        **{key: altered.text(source.address.get(key)) for key in ADDRESS_KEYS},
        **{name: altered.text(texts[name]) for name in _TEXTS},
        **_sums(source, items, altered),
        **_times(source, status, altered),
        **items.lists,
        "order_number": altered.text(number)[:191] or str(source.id),
        "order_key": altered.text(texts["order_key"])[:191],
        "status": status,
        "status_before_trash": before,
        "currency": currency.upper(),
        "payment_paid": source.paid is not None,
        "prices_include_tax": is_yes(texts["prices_include_tax"]),
        "items": items.units,
        "item_details": items.details,
        "next_item_id": items.next_id,
    }
    altered.currency(currency)
    values |= derived_columns(values)
    return Converted(
        source.id,
        source.table,
        values,
        altered,
        references=_references(source),
        metadata=metadata.entries(meta_table(source), source.rows, source.fields, altered),
        items_metadata=items.metadata,
    )


def _sums(source: SourceOrder, items: Items, altered: Alterations) -> dict[str, Decimal]:
    """Return the sums of an order, or raise LeftOut if one cannot be stored."""
    cents = {name: altered.cents(source.texts[name], name) for name in _SUMS}
    _require_storable("total", cents["total"], MAX_TOTAL)
    _require_storable("subtotal", items.subtotal, MAX_CENTS)
    cents |= {"fees": items.fees, "subtotal": items.subtotal}
    return {name: Decimal(value).scaleb(-2) for name, value in cents.items()}


def _times(source: SourceOrder, status: str, altered: Alterations) -> dict[str, datetime | None]:
    if source.created is None:
        altered.append("the time of creation is missing")
    created = source.created or EPOCH
    updated = source.updated or created
    trashed = from_unix(source.meta.get("_wp_trash_meta_time")) or updated
    return {
        "created_at": created,
        "updated_at": updated,
        "completed_at": source.completed,
        "paid_at": source.paid,
        "trashed_at": trashed if status == TRASH else None,
    }


def meta_table(source: SourceOrder) -> str:
    """Return the table with the metadata of an order or of a refund."""
    return "postmeta" if source.table == "posts" else "wc_orders_meta"


def _references(source: SourceOrder) -> dict[str, int]:
    found = {"customer": abs(whole(source.customer_id)), "parent": source.parent_id}
    return {name: record_id for name, record_id in found.items() if record_id}


def _require_storable(name: str, cents: int, most: int) -> None:
    if abs(cents) > most:
        raise LeftOut(f"the {name} is above {amount_text(most)}")


def _currency(source: SourceOrder, default: str, altered: Alterations) -> str:
    currency = source.texts["currency"] or default
    if _CURRENCY.fullmatch(currency):
        return currency
    altered.append(f"the currency {currency!r} was replaced by {default}")
    return default


def uses(
    source: SourceOrder, converted: Converted, items: Items, effects: Mapping[str, RedemptionEffect]
) -> list[Converted]:
    """Return the coupon uses of an order, one for each coupon line.

    A use that the source does not count is released. It is written only if an earlier import
    created it.
    """
    values = converted.values
    is_counted = source.is_counted
    if is_counted is None:
        is_counted = effects.get(values["status"]) != RedemptionEffect.RELEASE
    if values["status"] == TRASH:
        is_counted = False
    found: dict[str, Converted] = {}
    for item_id, code, amount in items.coupons:
        if code in found:
            continue  # an order has at most one live use of a coupon
        record = {
            "code": code,
            "email": values["billing_email"],
            "email_normalized": email_key(values["billing_email"]),
            "amount": Decimal(amount).scaleb(-2),
            "status": "confirmed" if is_counted else "released",
            "created_at": values["created_at"],
            "updated_at": values["updated_at"],
            "confirmed_at": values["created_at"] if is_counted else None,
        }
        found[code] = Converted(
            item_id,
            "woocommerce_order_items",
            record,
            references={"order": source.id, **converted.references},
            is_absent=not is_counted,
        )
    return list(found.values())


def refund(
    source: SourceOrder,
    rows: Rows,
    metas: Mapping[int, MetaRows],
    products: Products,
    metadata: MetadataConverter,
) -> Converted:
    """Return a refund. Its items are given as in ``items_of_order``.

    Raises:
        LeftOut: the refund has no order, or no amount.
    """
    if not source.parent_id:
        raise LeftOut("the refund has no order")
    altered = Alterations()
    stored = source.meta.get("_refund_amount") or source.texts["total"]
    amount = abs(altered.cents(stored, "_refund_amount"))
    if not amount:
        raise LeftOut("the amount of the refund is 0")
    _require_storable("amount", amount, MAX_TOTAL)
    items, of_items = refunded_items(rows, metas, products, altered, metadata)
    altered.currency(source.texts["currency"] or "")
    created = source.created or source.updated or EPOCH
    values = {
        "created_at": created,
        "updated_at": source.updated or created,
        "amount": Decimal(amount).scaleb(-2),
        "reason": altered.text(source.meta.get("_refund_reason") or source.texts["note"]).strip(),
        "line_items": items,
    }
    references = {"order": source.parent_id}
    if user := whole(source.meta.get("_refunded_by")):
        references["user"] = user
    return Converted(
        source.id,
        source.table,
        values,
        altered,
        references,
        metadata=metadata.entries(meta_table(source), source.rows, source.fields, altered),
        items_metadata=of_items,
    )


def note(order_id: int, row: Sequence[str | None], meta: Meta, clock: ShopClock) -> Converted:
    """Return an order note, or raise LeftOut if it has no text."""
    comment_id, local, gmt, content, _, _, author = row
    altered = Alterations()
    text = altered.text(content)
    if not text.strip():
        raise LeftOut("the note is empty")
    values = {
        "created_at": clock.utc(gmt, local) or EPOCH,
        "note": text,
        "customer_note": bool(whole(meta.get("is_customer_note"))),
        "author": "" if author == SYSTEM else altered.text(author),
    }
    return Converted(int(comment_id or 0), "comments", values, altered, {"order": order_id})


def download(
    order_id: int,
    row: Sequence[str | None],
    files: Mapping[int, Mapping[str, tuple[str, str]]],
    home: str,
) -> Converted:
    """Return a download permission.

    Args:
        row: the columns of the permission after the ID of its order.
        files: name and URL of the files of products, by product and by the ID of the download.
        home: the URL of the shop, for the download links of customers.

    Raises:
        LeftOut: the product has no such file.
    """
    permission_id, download_id, product, key, email, remaining, expires = row
    altered = Alterations()
    product_id, file_id = abs(whole(product)), altered.text(download_id)
    name, url = files.get(product_id, {}).get(file_id, ("", ""))
    if not url:  # the source does not offer it either
        raise LeftOut("the product no longer has this file")
    query = {"download_file": product_id, "order": key or "", "email": email or "", "key": file_id}
    values = {
        "product_id": product_id,
        "download_id": file_id,
        "download_name": name,
        "download_url": f"{home.rstrip('/')}/?{urlencode(query, quote_via=quote, safe='')}",
        "file_name": name,
        "file_url": url,
        "downloads_remaining": None if not remaining else abs(whole(remaining)),
        # The legacy server reads this column as UTC.
        "access_expires": ShopClock(None, None).utc(expires),
    }
    return Converted(
        int(permission_id or 0),
        "woocommerce_downloadable_product_permissions",
        values,
        altered,
        {"order": order_id},
    )
