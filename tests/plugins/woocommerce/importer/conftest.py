"""The fixtures of this folder."""

import pytest

from tests.plugins.woocommerce.importer.imports import erp, import_dump, shop_file

__all__ = ["erp", "import_dump", "shop_file"]


@pytest.fixture
def in_app(app):
    """Let a test look into the tables."""
    with app.app_context():
        yield
