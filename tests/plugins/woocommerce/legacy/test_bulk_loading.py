"""The items of bulk requests are loaded without a conversion of absent fields, as with it."""

import pytest

from app.plugins.woocommerce.legacy.store import DIALECTS
from app.schemas.orders.input import OrderCreate, OrderUpdate
from tests.api.test_bulk_loading import ITEMS, assert_loaded_alike

pytestmark = pytest.mark.one_database

ORDER = {"status": "wc-completed"}
"""An order that has another form in the native API."""


@pytest.mark.parametrize("version", DIALECTS)
def test_items_without_some_fields_are_loaded_alike(version):
    for schema, items in ITEMS.items():
        more = [ORDER] if schema in {OrderCreate, OrderUpdate} else []
        assert_loaded_alike(DIALECTS[version].schema(schema), [*items, *more])
