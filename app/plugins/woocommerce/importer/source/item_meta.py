"""Properties of products that order items contain: the SKU, and the chosen attributes."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from urllib.parse import unquote

from app.plugins.woocommerce.importer.source.php_values import (
    UnreadableValue,
    array_in,
    unserialized,
)
from app.plugins.woocommerce.importer.source.staging import MetaRows, entries_in

_OF_TAXONOMY = "pa_"
_OF_ATTRIBUTE = "attribute_"
FIRST_WITH_ALL = 6
"""The first version that also returns attributes whose values are in the name of the variation."""


@dataclass(slots=True)
class Products:
    """Properties of products that still exist.

    Attributes:
        version: the major version of WooCommerce at the source, which determines what its API
            returns.
        skus: SKUs by the ID of the product or variation; None if it does not exist.
        labels: labels of global attributes, by their name.
        names: names of the attributes of single products, by product ID and key.
        variations: the IDs of the variations.
    """

    version: int
    skus: Mapping[int, str | None]
    labels: Mapping[str, str]
    names: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    variations: Set[int] = frozenset()

    def label(self, key: str, product_id: int) -> str:
        """Return the label of an attribute on the product page."""
        name = key.removeprefix(_OF_ATTRIBUTE)
        if name.startswith(_OF_TAXONOMY):
            return self.labels.get(name.removeprefix(_OF_TAXONOMY), name)
        if names := self.names.get(product_id):
            return names.get(name) or names.get(name.lower().replace(" ", "-"), name)
        return name

    def shows(self, value: str, product_id: int, name: str) -> bool:
        """Return whether the legacy server returned an attribute of a line with this name."""
        if product_id not in self.variations or not 3 <= self.version < FIRST_WITH_ALL:
            return True
        text = f"{name.lower()},"
        shown = value.lower()
        # The value of a global attribute is stored as a slug: dark-blue for Dark Blue.
        return not any(f" {each}," in text for each in (shown, shown.replace("-", " ")))


def visible_meta(
    rows: MetaRows, product_id: int, name: str, products: Products
) -> tuple[list[dict[str, str]], dict[int, int]]:
    """Return the attributes that customers see, and their IDs by the numbers of their rows.

    Their keys do not begin with an underscore.

    Args:
        rows: all metadata of a line.
        product_id: the ID of the product or variation of the line.
    """
    found, ids = [], {}
    for number, (key, value, row_id) in enumerate(entries_in(rows)):
        if key is None or value is None or key.startswith("_") or not (text := _scalar(value)):
            continue
        shown, text = unquote(key).replace("\0", ""), unquote(text).replace("\0", "")
        if products.shows(text, product_id, name):
            label = products.label(shown, product_id)
            found.append({"key": shown, "label": label, "value": text})
            ids[number] = int(row_id or 0)
    return found, ids


def _scalar(value: str) -> str:
    """Return a stored text or number as text, or an empty text for a list or an object."""
    if value[1:2] != ":" and not value.startswith("N;"):
        return value
    try:
        stored = unserialized(value)
    except UnreadableValue:
        return value  # a text such as "a: b"
    return str(stored) if isinstance(stored, str | int | float) else ""


def attribute_names(text: str | None) -> dict[str, str]:
    """Return the names of attributes by their key, from ``_product_attributes`` of a product."""
    return {
        unquote(str(key)): str(attribute["name"]).replace("\0", "")
        for key, attribute in array_in(text).items()
        if isinstance(attribute, dict) and attribute.get("name")
    }
