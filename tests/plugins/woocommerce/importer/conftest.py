"""The fixtures of this folder."""

from tests.plugins.woocommerce.importer.imports import erp, import_dump, shop_file

__all__ = ["erp", "import_dump", "shop_file"]
