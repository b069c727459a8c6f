"""Properties of a staged source: its options, its layout and its products."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from urllib.parse import urlsplit

from app.config.current import expiry_zone
from app.plugins.woocommerce.importer.source.clock import ShopClock
from app.plugins.woocommerce.importer.source.item_meta import Products, attribute_names
from app.plugins.woocommerce.importer.source.order_layouts import (
    OrderLayout,
    PostLayout,
    TableLayout,
)
from app.plugins.woocommerce.importer.source.php_values import array_in
from app.plugins.woocommerce.importer.source.staging import Staging

MAX_CACHED = 20_000
"""Number of cached products."""


class ShopSource:
    """Reads properties of the whole shop from the staged rows."""

    def __init__(self, staging: Staging, prefix: str) -> None:
        self.staging = staging
        self.prefix = prefix
        self.options: dict[str, str | None] = {
            rows[-1][0]: rows[-1][1]
            for page in staging.pages("options", 1000)
            for rows in page.values()
        }
        get = self.options.get
        self.clock = ShopClock(get("timezone_string"), get("gmt_offset"), expiry_zone())
        self.home = get("home") or get("siteurl") or ""
        self.currency = get("woocommerce_currency") or "USD"
        has_tables = get("woocommerce_custom_orders_table_enabled") == "yes"
        layout = TableLayout if has_tables else PostLayout
        self.layout: OrderLayout = layout(staging, self.clock)
        major = (get("woocommerce_version") or "").partition(".")[0]
        self.version = int(major) if major.isdecimal() else 8 if has_tables else 3
        """The major version of WooCommerce."""
        self._skus: dict[int, str | None] = {}
        self._attributes: dict[int, dict[str, str]] = {}
        self._variations: set[int] = set()
        self._files: dict[int, dict[str, tuple[str, str]]] = {}

    @property
    def name(self) -> str:
        """The name of the source, which is the same in every dump of the shop."""
        address = (self.options.get("siteurl") or self.home).partition("://")[2]
        return f"{address.rstrip('/').lower()} {self.prefix}"

    @cached_property
    def _labels(self) -> dict[str, str]:
        return {
            str(row[0]): str(row[1] or row[0]).replace("\0", "")
            for page in self.staging.pages("woocommerce_attribute_taxonomies", 1000)
            for (row, *_) in page.values()
        }

    def products(self, ids: Iterable[int]) -> Products:
        """Return the properties of products for order items. A missing product has no SKU."""
        if len(self._skus) > MAX_CACHED:
            self._skus.clear()
            self._attributes.clear()
            self._variations.clear()
        missing = [product_id for product_id in set(ids) if product_id not in self._skus]
        variations = self.staging.one_by_id("posts:product_variation", missing)
        parents = {product_id: int(row[9] or 0) for product_id, row in variations.items()}
        found = [*self.staging.one_by_id("posts:product", missing), *variations]
        metas = self.staging.meta_of("postmeta", [*found, *parents.values()])
        for product_id in missing:
            self._skus[product_id] = None
        for product_id in found:
            # A variation without a SKU has the SKU of its product.
            own = metas.get(product_id, {}).get("_sku")
            inherited = metas.get(parents.get(product_id, 0), {}).get("_sku")
            self._skus[product_id] = (own or inherited or "").replace("\0", "")
            # A variation has the attributes of its product.
            stored = metas.get(parents.get(product_id, product_id), {}).get("_product_attributes")
            if names := attribute_names(stored):
                self._attributes[product_id] = names
        self._variations |= variations.keys()
        return Products(self.version, self._skus, self._labels, self._attributes, self._variations)

    def files(self, ids: Iterable[int]) -> Mapping[int, Mapping[str, tuple[str, str]]]:
        """Return the name and the URL of the downloadable files of products."""
        if len(self._files) > MAX_CACHED:
            self._files.clear()
        missing = [product_id for product_id in set(ids) if product_id not in self._files]
        metas = self.staging.meta_of("postmeta", missing)
        for product_id in missing:
            self._files[product_id] = _files(metas.get(product_id, {}).get("_downloadable_files"))
        return self._files


def _files(text: str | None) -> dict[str, tuple[str, str]]:
    return {
        str(key): (str(file.get("name") or _file_name(url)), url)
        for key, file in array_in(text).items()
        if isinstance(file, dict) and (url := str(file.get("file") or ""))
    }


def _file_name(url: str) -> str:
    """Return the displayed name of a file without a name."""
    try:
        return urlsplit(url).path.rpartition("/")[2]
    except ValueError:  # an address such as http://[
        return ""
