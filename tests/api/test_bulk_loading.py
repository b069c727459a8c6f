"""The items of bulk requests are loaded without a conversion of absent fields, as with it."""

import marshmallow as ma
import pytest

from app.schemas.coupons.coupon import CouponCreate, CouponUpdate
from app.schemas.customers import CustomerCreate, CustomerUpdate
from app.schemas.examples import coupons, customers, orders
from app.schemas.fields.given import defaults_of, load_given
from app.schemas.loading import instance_of
from app.schemas.orders.input import OrderCreate, OrderUpdate

pytestmark = pytest.mark.one_database

ITEMS = {
    CouponCreate: [*coupons.COUPON_ITEMS, coupons.NEW_COUPON, coupons.COUPON_UPDATE],
    CustomerCreate: [*customers.CUSTOMER_ITEMS, customers.NEW_CUSTOMER, customers.CUSTOMER_UPDATE],
    OrderCreate: [*orders.ORDER_ITEMS, orders.NEW_ORDER, orders.ORDER_UPDATE],
}
ITEMS |= {
    update: ITEMS[create]
    for create, update in (
        (CouponCreate, CouponUpdate),
        (CustomerCreate, CustomerUpdate),
        (OrderCreate, OrderUpdate),
    )
}
"""The schemas of items of bulk requests, each with objects."""


def assert_loaded_alike(schema, items):
    """Objects, and objects with no, with empty and with null fields, have the same results."""
    for strict in (False, True):
        instance = instance_of(schema, strict=strict)
        fields = instance.load_fields.items()
        empty = [{name: {}} for name, field in fields if isinstance(field, ma.fields.Nested)]
        null = [{name: None} for name, _ in fields]
        defaults = defaults_of(instance)
        for item in (*items, *empty, *null, {}):
            assert load_given(instance, item, defaults) == instance.load(item)
            # A default that is a list is not shared by two records.
            once, again = (load_given(instance, item, defaults) for _ in range(2))
            lists = [name for name, value in once.items() if isinstance(value, list)]
            assert not [name for name in lists if once[name] is again[name]]


@pytest.mark.parametrize("schema", ITEMS, ids=lambda schema: schema.__name__)
def test_items_without_some_fields_are_loaded_alike(schema):
    assert_loaded_alike(schema, ITEMS[schema])
