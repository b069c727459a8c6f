"""Conversion of order items to the form in which responses contain them.

The values are those that the legacy API of the source returns.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from app.db.records import Record
from app.plugins.woocommerce.importer.convert.converted import (
    Alterations,
    Cents,
    SourceEntry,
    code_of,
    is_yes,
    quotient,
    rounded,
    whole,
)
from app.plugins.woocommerce.importer.convert.metadata import REPEATED, MetadataConverter
from app.plugins.woocommerce.importer.source.item_meta import Products, visible_meta
from app.plugins.woocommerce.importer.source.php_values import UnreadableValue, unserialized
from app.plugins.woocommerce.importer.source.staging import Meta, MetaRows, Rows, meta_in
from app.plugins.woocommerce.importer.tables import ITEM_KEYS
from app.services.orders.item_changes import MAX_QUANTITY
from app.services.orders.items import META_IDS, amount_text, cents


@dataclass(slots=True)
class Items:
    """The items of an order.

    Attributes:
        lists: each list of an order, as it is stored.
        details: stored properties that responses do not contain, by item ID.
        subtotal: the sum of the line subtotals in cents.
        next_id: the ID of the next new item.
        coupons: the ID at the source, the code and the amount in cents of each coupon line.
        metadata: the metadata of the items, by their ID.
    """

    lists: dict[str, list[Record]]
    details: dict[str, dict[str, object]]
    subtotal: int = 0
    next_id: int = 1
    coupons: list[tuple[int, str, int]] = field(default_factory=list)
    metadata: dict[int, list[SourceEntry]] = field(default_factory=dict)

    @property
    def units(self) -> int:
        """Return the number of units in the line items."""
        return sum(line["quantity"] for line in self.lists["line_items"])

    @property
    def fees(self) -> int:
        """Return the sum of the fees in cents."""
        return sum(cents(Decimal(fee["total"])) for fee in self.lists["fee_lines"])


def items_of_order(
    rows: Rows,
    metas: Mapping[int, MetaRows],
    products: Products,
    altered: Alterations,
    metadata: MetadataConverter,
) -> Items:
    """Return the items of an order.

    Args:
        rows: ID, name and kind of each item.
        metas: their metadata, by their ID.
    """
    subtotal: Cents = 0
    taxes: dict[str, _Tax] = {}
    kinds = ("line_items", "shipping_lines", "tax_lines", "fee_lines", "coupon_lines")
    items = Items({name: [] for name in kinds}, {})
    for item_id_text, name, kind in sorted(rows, key=lambda row: int(row[0])):
        item_id = int(item_id_text)
        items.next_id = max(items.next_id, item_id + 1)
        stored, name = metas.get(item_id, ()), altered.text(name)  # noqa: PLW2901  # without NUL
        meta = meta_in(stored)
        shown: Collection[int] = ()
        if kind == "line_item":
            line, of_line = _line(item_id, name, meta, products, altered)
            subtotal += of_line
            shown = _add_line(items, line, stored, products)
        elif kind == "shipping":
            items.lists["shipping_lines"].append(_shipping(item_id, name, meta, products, altered))
        elif kind == "fee":
            items.lists["fee_lines"].append(_fee(item_id, name, meta, products, altered))
        elif kind == "tax":
            taxes[name] = _tax(item_id, meta, taxes.get(name), altered)
        elif kind == "coupon":
            _add_coupon(items, item_id, name, meta, altered)
        else:
            altered.append(f"the item {item_id} of the kind {kind!r} was left out")
            continue
        others = [each for at, each in enumerate(stored) if at // 3 not in shown]
        fields = ITEM_KEYS[kind]
        if entries := metadata.entries("woocommerce_order_itemmeta", others, fields, altered):
            items.metadata[item_id] = entries
    items.subtotal = rounded(subtotal)
    items.lists["tax_lines"] = [tax.line(code) for code, tax in taxes.items() if tax.amount]
    return items


def _add_line(items: Items, line: Record, stored: MetaRows, products: Products) -> Collection[int]:
    """Add a line with its attributes, and return the positions of these in the metadata."""
    product_id = line["variation_id"] or line["product_id"] or 0
    line["meta"], shown = visible_meta(stored, product_id, line["name"], products)
    items.lists["line_items"].append(line)
    items.details[str(line["id"])] = {
        "product_category_ids": [],
        "on_sale": False,
        # The total was given, so a coupon does not change it (orders 9).
        "own_total": True,
        **({META_IDS: list(shown.values())} if shown else {}),
    }
    return shown


def refunded_items(
    rows: Rows,
    metas: Mapping[int, MetaRows],
    products: Products,
    altered: Alterations,
    metadata: MetadataConverter,
) -> tuple[list[Record], dict[int, list[SourceEntry]]]:
    """Return the items of a refund, and their metadata by their own ID.

    The source stores them as items with negative amounts. Taxes by rate have no item. The arguments
    are those of ``items_of_order``.
    """
    items: list[Record] = []
    of_items: dict[int, list[SourceEntry]] = {}
    for item_id_text, name, kind in sorted(rows, key=lambda row: int(row[0])):
        item_id = int(item_id_text)
        if kind not in _REFUNDED:
            continue
        stored = metas.get(item_id, ())
        meta = meta_in(stored)
        text = altered.text(name)
        items.append(
            _refunded(item_id, kind, text, meta, products=products, altered=altered)
            | {"meta_id": _id_of("_refunded_item_id", stored)}
        )
        entries = metadata.entries("woocommerce_order_itemmeta", stored, REPEATED, altered)
        if entries:
            of_items[item_id] = entries
    return items, of_items


def _id_of(key: str, stored: MetaRows) -> int:
    """Return the ID of the first row of metadata with a key, or 0."""
    ids = zip(stored[::3], stored[2::3], strict=True)
    return next((int(row_id or 0) for name, row_id in ids if name == key), 0)


_REFUNDED = {"line_item": "line_items", "shipping": "shipping_lines", "fee": "fee_lines"}
"""Lists of the items of an order that can be refunded, by the kind of the item."""


def _refunded(
    item_id: int, kind: str, name: str, meta: Meta, *, products: Products, altered: Alterations
) -> Record:
    total, tax = ("cost", "total_tax") if kind == "shipping" else ("_line_total", "_line_tax")
    product_id, variation_id = (abs(whole(meta.get(key))) for key in _PRODUCT_KEYS)
    return {
        "id": abs(whole(meta.get("_refunded_item_id"))),
        "item_id": item_id,
        "quantity": _quantity((meta.get("_qty") or "").lstrip("-"), altered),
        "total": amount_text(abs(altered.cents(meta.get(total), total))),
        "total_tax": amount_text(abs(altered.cents(meta.get(tax), tax))),
        "list": _REFUNDED[kind],
        "name": name,
        "product_id": product_id or None,
        "variation_id": variation_id,
        "sku": products.skus.get(variation_id or product_id) or None,
        "tax_class": _tax_class(meta, products, altered) or None,
    }


_PRODUCT_KEYS = ("_product_id", "_variation_id")


def _line(
    item_id: int, name: str, meta: Meta, products: Products, altered: Alterations
) -> tuple[Record, Cents]:
    """Return a line without its attributes, and its subtotal in cents."""
    get, is_old = meta.get, products.version < 3
    subtotal = altered.exact(get("_line_subtotal"), "_line_subtotal")
    total = altered.exact(get("_line_total"), "_line_total")
    if not is_old:
        subtotal = max(subtotal, total)  # as WooCommerce reads it since 3.0
    product_id, variation_id = whole(get("_product_id")), whole(get("_variation_id"))
    quantity = _quantity(get("_qty"), altered)
    price = quotient(total, quantity or 1) if quantity or is_old else 0
    line = {
        "id": item_id,
        "subtotal": amount_text(rounded(subtotal)),
        "subtotal_tax": amount_text(altered.cents(get("_line_subtotal_tax"), "_line_subtotal_tax")),
        "total": amount_text(rounded(total)),
        "total_tax": amount_text(altered.cents(get("_line_tax"), "_line_tax")),
        "price": amount_text(price),
        "quantity": quantity,
        "tax_class": _tax_class(meta, products, altered),
        "name": name,
        "product_id": product_id or (None if is_old else 0),
        "sku": products.skus.get(variation_id or product_id),
        "variation_id": variation_id,
        "taxes": _taxes(meta, "_line_tax_data", altered),
    }
    return line, subtotal


def _taxes(meta: Meta, key: str, altered: Alterations) -> list[Record]:
    """Return the taxes of an item by tax rate.

    They are a serialized array with amounts by rate in ``total`` and in ``subtotal``. Versions
    before 2.7 store the amounts of shipping by rate.
    """
    try:
        stored = unserialized(text) if (text := meta.get(key)) else {}
    except UnreadableValue:
        altered.append(f"{key} cannot be read, and was emptied")
        return []
    parts = stored if isinstance(stored, dict) else {}
    if not parts.keys() & {"total", "subtotal"}:
        parts = {"total": parts}
    by_rate = [
        part if isinstance(part := parts.get(name), dict) else {} for name in ("total", "subtotal")
    ]

    def amount(amounts: dict[object, object], rate: object) -> str:
        return amount_text(altered.cents(str(amounts.get(rate) or ""), key))

    totals, subtotals = by_rate
    return [
        {
            "id": whole(str(rate)),
            "total": amount(totals, rate),
            "subtotal": amount(subtotals or totals, rate),
        }
        for rate in dict.fromkeys([*totals, *subtotals])
        if not isinstance(totals.get(rate), dict)
    ]


def _shipping(
    item_id: int, name: str, meta: Meta, products: Products, altered: Alterations
) -> Record:
    return {
        "id": item_id,
        "method_id": _method_id(meta, products, altered),
        "method_title": name,
        "total": amount_text(altered.cents(meta.get("cost"), "cost")),
        "total_tax": amount_text(altered.cents(meta.get("total_tax"), "total_tax")),
        "instance_id": altered.text(meta.get("instance_id")),
        "taxes": _taxes(meta, "taxes", altered),
    }


def _fee(item_id: int, name: str, meta: Meta, products: Products, altered: Alterations) -> Record:
    return {
        "id": item_id,
        "title": name,
        "tax_class": _tax_class(meta, products, altered),
        "total": amount_text(altered.cents(meta.get("_line_total"), "_line_total")),
        "total_tax": amount_text(altered.cents(meta.get("_line_tax"), "_line_tax")),
        "taxes": _taxes(meta, "_line_tax_data", altered),
    }


def _tax_class(meta: Meta, products: Products, altered: Alterations) -> str | None:
    """Return the tax class. An absent class is null before version 3.0, and empty since."""
    return altered.text(meta.get("_tax_class")) or (None if products.version < 3 else "")


def _method_id(meta: Meta, products: Products, altered: Alterations) -> str:
    """Return the shipping method. Versions before 3.4 also store its instance: ``flat_rate:3``."""
    method = altered.text(meta.get("method_id"))
    return method if meta.get("instance_id") or products.version < 3 else method.partition(":")[0]


def _quantity(text: str | None, altered: Alterations) -> int:
    """Return a quantity without its fraction, as the legacy server reads it."""
    if not text:
        return 0
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    try:
        exact = Decimal(text)
        number = int(exact)
    except (InvalidOperation, ValueError, OverflowError):
        exact, number = None, 0
    number = max(0, min(MAX_QUANTITY, number))
    if exact != number:
        altered.append(f"the quantity {text[:40]} was stored as {number}")
    return number


@dataclass(frozen=True, slots=True)
class _Tax:
    """A tax line. Taxes with the same code share a line. A line without tax is omitted."""

    id: int
    rate_id: int
    title: str
    amount: Cents
    compound: bool

    def line(self, code: str) -> Record:
        """Return the line of an order."""
        return {
            "id": self.id,
            "rate_id": self.rate_id,
            "code": code,
            "title": self.title,
            "total": amount_text(rounded(self.amount)),
            "compound": self.compound,
        }


def _tax(item_id: int, meta: Meta, before: _Tax | None, altered: Alterations) -> _Tax:
    """Return a tax line: this item, with the amounts of earlier items with the same code."""
    amount: Cents = before.amount if before else 0
    for key in ("tax_amount", "shipping_tax_amount"):
        amount += altered.exact(meta.get(key), key)
    title = altered.text(meta.get("label")) or "Tax"
    return _Tax(item_id, whole(meta.get("rate_id")), title, amount, is_yes(meta.get("compound")))


def _add_coupon(items: Items, item_id: int, name: str, meta: Meta, altered: Alterations) -> None:
    amount = altered.cents(meta.get("discount_amount"), "discount_amount")
    code = code_of(name) or name
    items.lists["coupon_lines"].append({"id": item_id, "code": code, "amount": amount_text(amount)})
    items.details[str(item_id)] = {"applied": False}
    items.coupons.append((item_id, code, amount))
