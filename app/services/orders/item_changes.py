"""The rules for order items, and their changes by an update (orders 2, 3 and 9). Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from app.errors import InvalidOrderItems, Sentence, ShopError
from app.models.order import Item
from app.services.common.bulk import Data
from app.services.common.metadata import METADATA
from app.services.orders.items import (
    KINDS,
    META_IDS,
    ItemKind,
    OrderItems,
    cents,
    divided,
    price_times_quantity,
)

PriceOf = Callable[[int, int], Decimal | None]

NEEDS_NAME = "needs a name, a product_id or a sku."
NEEDS_PRICE = "needs a price, a subtotal or a total."
MAX_ITEMS = 1000
"""Items in each list (orders 9)."""
MAX_QUANTITY = 10**9
MAX_CENTS = 10**18 - 1
"""Largest amount of an item: 16 digits before the point (decisions 13)."""


def changed_items(
    items: OrderItems,
    data: Data,
    ids: Iterator[int],
    errors: Mapping[str, str | Sentence] | None = None,
    price_of: PriceOf = lambda *_: None,
) -> OrderItems:
    """Return the items of an order after a create or an update (orders 3).

    Args:
        items: the items before it, which this function does not modify.
        data: the loaded fields of the order. Missing lists change nothing.
        ids: IDs for new items, ascending, at least as many as items without an ID.
        errors: rules that other lists of the order violate, reported together with these.
        price_of: returns the price of a product for a quantity, or None, for new lines without one.

    Raises:
        InvalidOrderItems: with every item that violates a rule.
        ShopError: a list has too many items.
    """
    change = _Change(items, ids, price_of)
    for name in KINDS:
        change.apply(name, data.get(name) or ())
    change.errors |= errors or {}
    if change.errors:
        raise InvalidOrderItems(change.errors)
    for found in change.after.lists.values():
        if len(found) > MAX_ITEMS:
            raise ShopError("shop_api_order_too_large", limit=MAX_ITEMS)
    return change.after


def can_remove(data: Data) -> bool:
    """Return whether what a request says of an item can remove it.

    It always does, or if the item has a product. Only schemas in which a product that is null
    removes a line keep null.
    """
    return _removes(data) or data.get("product_id", 0) is None


def _removes(data: Data) -> bool:
    return bool(data.get("remove")) or data.get("quantity") == 0


class _Change:
    """Changes of items that have not been completed yet, and the violated rules by location."""

    def __init__(self, before: OrderItems, ids: Iterator[int], price_of: PriceOf) -> None:
        lists = {name: list(items) for name, items in before.lists.items()}
        own_tax = before.own_shipping_tax
        self.after = OrderItems(lists, before.next_id, own_shipping_tax=own_tax)
        self.errors: dict[str, str | Sentence] = {}
        self._seen: set[int] = set()
        self._ids = ids
        self._price_of = price_of

    def apply(self, name: str, given: Sequence[Data]) -> None:
        """Change one list."""
        kind, items = KINDS[name], self.after.lists[name]
        positions = {item["id"]: position for position, item in enumerate(items)}
        added: list[Item] = []
        for index, data in enumerate(given):
            place = f"order.{name}[{index}]"
            item_id = data.get("id")
            if item_id is None:
                if item := self._checked(name, kind, None, data, place):
                    added.append(item)
                    self._note(item, data, place)
                continue
            position = positions.get(item_id)
            if item_id in self._seen or position is None:
                twice = item_id in self._seen
                reason = (
                    "occurs twice." if twice else Sentence("is not the ID of an item in {0}.", name)
                )
                self.errors[f"{place}.id"] = reason
                continue
            self._seen.add(item_id)
            if _is_removed(items[position], data):
                items[position] = {}
            elif item := self._checked(name, kind, items[position], data, place):
                items[position] = item
                self._note(item, data, place)
        items[:] = [item for item in items if item] + added
        if name == "coupon_lines":
            self._require_different_codes(items)

    def _note(self, item: Item, data: Data, place: str) -> None:
        """Note what the request says of an item beside its fields."""
        self.after.places[item["id"]] = place
        if METADATA in data:
            self.after.metadata[item["id"]] = data[METADATA]

    def _checked(
        self, name: str, kind: ItemKind, before: Item | None, data: Data, place: str
    ) -> Item | None:
        """Return a new or changed item; None if it violates a rule."""
        known = len(self.errors)
        given = {
            key: cents(value) if key in kind.amounts and key != "price" else value
            for key, value in data.items()
            # Null and an empty decimal count as not supplied.
            if value is not None and key not in {"id", "remove", METADATA}
        }
        item = {**(before or kind.defaults), **given}
        if "meta" in given and before:
            item[META_IDS] = _meta_ids(given["meta"], before)
        if kind.required and not item[kind.required]:
            self.errors[f"{place}.{kind.required}"] = "is required."
        if name == "line_items":
            self._line(item, before, given, place)
        elif name == "shipping_lines" and item["total"] < 0:
            self.errors[f"{place}.total"] = "must not be negative."
        elif name == "tax_lines" and item["rate_id"] < 0:
            self.errors[f"{place}.rate_id"] = "must not be negative."
        elif name == "coupon_lines":
            if before and item["code"] != before["code"]:
                self.errors[f"{place}.code"] = "cannot be changed. Remove the item and add another."
            item["applied"] = before["applied"] if before else True
            if "amount" in given:
                item["applied"] = False
        if len(self.errors) > known:
            return None
        if before is None:
            item["id"] = next(self._ids)
            self.after.next_id = item["id"] + 1
        return item

    def _line(self, item: Item, before: Item | None, given: Data, place: str) -> None:
        """Check a line item and complete its amounts."""
        if not (item["name"] or item["product_id"] or item["sku"]):
            self.errors[place] = NEEDS_NAME
        for name in ("product_id", "variation_id"):
            if item[name] < 0:
                self.errors[f"{place}.{name}"] = "must not be negative."
        is_possible = 1 <= item["quantity"] <= MAX_QUANTITY
        if before is None and not given.keys() & {"price", "subtotal", "total"}:
            product_id = item["variation_id"] or item["product_id"]
            is_known = is_possible and product_id > 0
            price = self._price_of(product_id, item["quantity"]) if is_known else None
            if price is None:
                self.errors[place] = NEEDS_PRICE
            given = {**given, "price": price}
            item["price"] = price
        if not is_possible:
            reason = Sentence("must be between 1 and {0:,}.", MAX_QUANTITY)
            self.errors[f"{place}.quantity"] = reason
            return
        if place in self.errors:
            return
        _complete(item, before, given)
        for key in ("subtotal", "total"):
            if abs(item[key]) > MAX_CENTS:
                self.errors[f"{place}.{key}"] = "has more than 16 digits before the decimal point."
                return

    def _require_different_codes(self, items: Sequence[Item]) -> None:
        codes: set[str] = set()
        for item in items:
            if item["code"] in codes:
                place = self.after.places[item["id"]]
                self.errors[f"{place}.code"] = "occurs twice in the order."
            codes.add(item["code"])


def _complete(item: Item, before: Item | None, given: Data) -> None:
    """Add the missing amounts of a line item (orders 2 and 9).

    A missing total is set to the subtotal. Coupon discounts are subtracted later.
    """
    price: Decimal | None = item.pop("price") if "price" in given else None
    if "subtotal" not in given:
        if price is not None:
            item["subtotal"] = price_times_quantity(price, item["quantity"])
        elif before is None:
            item["subtotal"] = item["total"]
        else:
            item["subtotal"] = _in_proportion(before["subtotal"], item, before)
    if "total" in given:
        item["own_total"] = True
    elif before is None or price is not None or "subtotal" in given:
        item["total"], item["own_total"] = item["subtotal"], False
    else:
        item["total"] = _in_proportion(before["total"], item, before)


def _meta_ids(meta: Any, before: Item) -> list[int]:
    """Return the IDs of attributes that an imported line keeps, and 0 for others."""
    left: dict[str, list[int]] = defaultdict(list)
    for each, meta_id in zip(before["meta"] or (), before.get(META_IDS, ()), strict=False):
        left[each["key"]].append(meta_id)
    own = {key: iter(ids) for key, ids in left.items()}
    ids = [next(own.get(each["key"], iter(())), 0) for each in meta]
    return ids if any(ids) else []


def _in_proportion(amount: int, item: Item, before: Item) -> int:
    return divided(amount * item["quantity"], before["quantity"] or 1)


def _is_removed(item: Item, data: Data) -> bool:
    """Return whether a request removes an item (orders 3)."""
    has_product = bool(item.get("product_id") or item.get("variation_id"))
    return _removes(data) or (has_product and can_remove(data))
