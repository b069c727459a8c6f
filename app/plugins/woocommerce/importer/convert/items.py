"""Conversion of order items to the form in which responses contain them.

The values are those that the legacy API of the source returns.
"""

from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation

from app.db.records import Record
from app.plugins.woocommerce.importer.convert import (
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
from app.plugins.woocommerce.importer.source.staging import (
    Meta,
    MetaRows,
    Rows,
    entries_in,
    meta_in,
)
from app.plugins.woocommerce.importer.tables import ITEM_KEYS
from app.services.orders.item_changes import MAX_QUANTITY
from app.services.orders.items import META_IDS, amount_text, cents

_TABLE = "woocommerce_order_itemmeta"
_LISTS = ("line_items", "shipping_lines", "tax_lines", "fee_lines", "coupon_lines")


@dataclass(slots=True)
class _Item:
    """An item of an order or of a refund, as the source stores it.

    Attributes:
        rows: keys, values and IDs of its metadata, alternating.
        meta: the values of its metadata by key.
        altered: alterations of the record, to which those of the item are added.
    """

    id: int
    kind: str
    name: str
    rows: MetaRows
    meta: Meta
    products: Products
    altered: Alterations

    @property
    def is_old(self) -> bool:
        """Whether the item is of a version before 3.0."""
        return self.products.version < 3

    def whole(self, key: str) -> int:
        """Return an integer, or 0."""
        return whole(self.meta.get(key))

    def text(self, key: str) -> str:
        """Return a text, or an empty text."""
        return self.altered.text(self.meta.get(key))

    def exact(self, key: str) -> Cents:
        """Return an amount in cents with its fractions."""
        return self.altered.exact(self.meta.get(key), key)

    def amount(self, key: str, *, is_absolute: bool = False) -> str:
        """Return an amount with two decimals, without its sign if ``is_absolute``."""
        cents = self.altered.cents(self.meta.get(key), key)
        return amount_text(abs(cents) if is_absolute else cents)

    def tax_class(self) -> str | None:
        """Return the tax class. An absent class is null before version 3.0, and empty since."""
        return self.text("_tax_class") or (None if self.is_old else "")

    def quantity(self, *, is_absolute: bool = False) -> int:
        """Return the quantity without its fraction, as the legacy server reads it."""
        text = self.meta.get("_qty") or ""
        text = text.lstrip("-") if is_absolute else text
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
            self.altered.append(f"the quantity {text[:40]} was stored as {number}")
        return number

    def taxes(self, key: str) -> list[Record]:
        """Return the taxes by tax rate.

        They are a serialized array with amounts by rate in ``total`` and in ``subtotal``. Versions
        before 2.7 store the amounts of shipping by rate.
        """
        try:
            stored = unserialized(text) if (text := self.meta.get(key)) else {}
        except UnreadableValue:
            self.altered.append(f"{key} cannot be read, and was emptied")
            return []
        parts = stored if isinstance(stored, dict) else {}
        if not parts.keys() & {"total", "subtotal"}:
            parts = {"total": parts}
        totals, subtotals = (
            part if isinstance(part := parts.get(name), dict) else {}
            for name in ("total", "subtotal")
        )

        def amount(amounts: dict[object, object], rate: object) -> str:
            return amount_text(self.altered.cents(str(amounts.get(rate) or ""), key))

        return [
            {
                "id": whole(str(rate)),
                "total": amount(totals, rate),
                "subtotal": amount(subtotals or totals, rate),
            }
            for rate in dict.fromkeys([*totals, *subtotals])
            if not isinstance(totals.get(rate), dict)
        ]


@dataclass(frozen=True, slots=True)
class StoredItems:
    """The items of some orders or refunds, as the source stores them.

    Attributes:
        rows: ID, name and kind of each item, by the ID of the order or refund.
        metas: the metadata of the items, by their ID.
    """

    rows: Mapping[int, Rows]
    metas: Mapping[int, MetaRows]
    products: Products
    metadata: MetadataConverter

    def of(
        self, record_id: int, altered: Alterations, kinds: Container[str] | None = None
    ) -> Iterator[_Item]:
        """Yield the items of an order or refund by their IDs, only those of ``kinds`` if given."""
        for item_id, name, kind in sorted(
            self.rows.get(record_id, ()), key=lambda row: int(row[0])
        ):
            if kinds is None or kind in kinds:
                rows = self.metas.get(int(item_id), ())
                text = altered.text(name)
                yield _Item(int(item_id), kind, text, rows, meta_in(rows), self.products, altered)


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


def items_of_order(stored: StoredItems, order_id: int, altered: Alterations) -> Items:
    """Return the items of an order."""
    subtotal: Cents = 0
    taxes: dict[str, Record] = {}
    items = Items({name: [] for name in _LISTS}, {})
    for item in stored.of(order_id, altered):
        items.next_id = max(items.next_id, item.id + 1)
        shown: Collection[int] = ()
        if item.kind == "line_item":
            line, of_line = _line(item)
            subtotal += of_line
            shown = _add_line(items, line, item)
        elif item.kind == "shipping":
            items.lists["shipping_lines"].append(_shipping(item))
        elif item.kind == "fee":
            items.lists["fee_lines"].append(_fee(item))
        elif item.kind == "tax":
            taxes[item.name] = _tax(item, taxes.get(item.name))
        elif item.kind == "coupon":
            _add_coupon(items, item)
        else:
            altered.append(f"the item {item.id} of the kind {item.kind!r} was left out")
            continue
        others = [each for at, each in enumerate(item.rows) if at // 3 not in shown]
        if entries := stored.metadata.entries(_TABLE, others, ITEM_KEYS[item.kind], altered):
            items.metadata[item.id] = entries
    items.subtotal = rounded(subtotal)
    items.lists["tax_lines"] = [
        {**tax, "total": amount_text(rounded(tax["total"]))}
        for tax in taxes.values()
        if tax["total"]
    ]
    return items


def _add_line(items: Items, line: Record, item: _Item) -> Collection[int]:
    """Add a line with its attributes, and return the positions of these in the metadata."""
    product_id = line["variation_id"] or line["product_id"] or 0
    line["meta"], shown = visible_meta(item.rows, product_id, item.name, item.products)
    items.lists["line_items"].append(line)
    items.details[str(item.id)] = {
        "product_category_ids": [],
        "on_sale": False,
        # The total was given, so a coupon does not change it (orders 9).
        "own_total": True,
        **({META_IDS: list(shown.values())} if shown else {}),
    }
    return shown


_REFUNDED = {"line_item": "line_items", "shipping": "shipping_lines", "fee": "fee_lines"}
"""Lists of the items of an order that can be refunded, by the kind of the item."""


def refunded_items(
    stored: StoredItems, refund_id: int, altered: Alterations
) -> tuple[list[Record], dict[int, list[SourceEntry]]]:
    """Return the items of a refund, and their metadata by their own ID.

    The source stores them as items with negative amounts. Taxes by rate have no item.
    """
    items: list[Record] = []
    of_items: dict[int, list[SourceEntry]] = {}
    for item in stored.of(refund_id, altered, _REFUNDED):
        items.append(_refunded(item))
        if entries := stored.metadata.entries(_TABLE, item.rows, REPEATED, altered):
            of_items[item.id] = entries
    return items, of_items


def _refunded(item: _Item) -> Record:
    total, tax = ("cost", "total_tax") if item.kind == "shipping" else ("_line_total", "_line_tax")
    product_id, variation_id = abs(item.whole("_product_id")), abs(item.whole("_variation_id"))
    of_reference = (
        int(row_id or 0) for key, _, row_id in entries_in(item.rows) if key == _REFERENCE
    )
    return {
        "id": abs(item.whole(_REFERENCE)),
        "item_id": item.id,
        "quantity": item.quantity(is_absolute=True),
        "total": item.amount(total, is_absolute=True),
        "total_tax": item.amount(tax, is_absolute=True),
        "list": _REFUNDED[item.kind],
        "name": item.name,
        "product_id": product_id or None,
        "variation_id": variation_id,
        "sku": item.products.skus.get(variation_id or product_id) or None,
        "tax_class": item.tax_class() or None,
        "meta_id": int(next(of_reference, None) or 0),
    }


_REFERENCE = "_refunded_item_id"


def _line(item: _Item) -> tuple[Record, Cents]:
    """Return a line without its attributes, and its subtotal in cents."""
    subtotal, total = item.exact("_line_subtotal"), item.exact("_line_total")
    if not item.is_old:
        subtotal = max(subtotal, total)  # as WooCommerce reads it since 3.0
    product_id, variation_id = item.whole("_product_id"), item.whole("_variation_id")
    quantity = item.quantity()
    price = quotient(total, quantity or 1) if quantity or item.is_old else 0
    line = {
        "id": item.id,
        "subtotal": amount_text(rounded(subtotal)),
        "subtotal_tax": item.amount("_line_subtotal_tax"),
        "total": amount_text(rounded(total)),
        "total_tax": item.amount("_line_tax"),
        "price": amount_text(price),
        "quantity": quantity,
        "tax_class": item.tax_class(),
        "name": item.name,
        "product_id": product_id or (None if item.is_old else 0),
        "sku": item.products.skus.get(variation_id or product_id),
        "variation_id": variation_id,
        "taxes": item.taxes("_line_tax_data"),
    }
    return line, subtotal


def _shipping(item: _Item) -> Record:
    method = item.text("method_id")
    # Versions before 3.4 also store the instance in the method: ``flat_rate:3``.
    is_method = item.meta.get("instance_id") or item.is_old
    return {
        "id": item.id,
        "method_id": method if is_method else method.partition(":")[0],
        "method_title": item.name,
        "total": item.amount("cost"),
        "total_tax": item.amount("total_tax"),
        "instance_id": item.text("instance_id"),
        "taxes": item.taxes("taxes"),
    }


def _fee(item: _Item) -> Record:
    return {
        "id": item.id,
        "title": item.name,
        "tax_class": item.tax_class(),
        "total": item.amount("_line_total"),
        "total_tax": item.amount("_line_tax"),
        "taxes": item.taxes("_line_tax_data"),
    }


def _tax(item: _Item, before: Record | None) -> Record:
    """Return a tax line with its amount in cents.

    Taxes with the same code share a line: the last one, with the amounts of all.
    """
    total: Cents = before["total"] if before else 0
    total += item.exact("tax_amount") + item.exact("shipping_tax_amount")
    return {
        "id": item.id,
        "rate_id": item.whole("rate_id"),
        "code": item.name,
        "title": item.text("label") or "Tax",
        "total": total,
        "compound": is_yes(item.meta.get("compound")),
    }


def _add_coupon(items: Items, item: _Item) -> None:
    amount = item.altered.cents(item.meta.get("discount_amount"), "discount_amount")
    code = code_of(item.name) or item.name
    items.lists["coupon_lines"].append({"id": item.id, "code": code, "amount": amount_text(amount)})
    items.details[str(item.id)] = {"applied": False}
    items.coupons.append((item.id, code, amount))
