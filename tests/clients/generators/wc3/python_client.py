"""Run by tests/openapi/test_generators_dialects.py, which also checks its types."""

import os
from base64 import b64encode

from shop_client import AuthenticatedClient
from shop_client.api.coupons import batch_coupons, create_coupon, list_coupons
from shop_client.api.orders import create_order
from shop_client.models import (
    ApiError,
    Coupon,
    CouponBatch,
    CouponBatchResult,
    CouponCreate,
    LineItemCreate,
    Order,
    OrderCreate,
)

url = f"{os.environ['SHOP_URL']}/wp-json/wc/v3"
key = f"{os.environ['SHOP_CONSUMER_KEY']}:{os.environ['SHOP_CONSUMER_SECRET']}"
token = b64encode(key.encode()).decode()
with AuthenticatedClient(base_url=url, token=token, prefix="Basic") as shop:
    new = CouponCreate(code="Summer", amount="15")
    created = create_coupon.sync(client=shop, body=new)
    assert isinstance(created, Coupon)
    assert created.amount == "15.00"

    listed = list_coupons.sync(client=shop, search="summer", per_page=5, exclude=[7, 8])
    assert isinstance(listed, list)
    assert [coupon.id for coupon in listed] == [created.id]

    refused = create_coupon.sync(client=shop, body=new)
    assert isinstance(refused, ApiError)
    assert refused.code == "woocommerce_rest_coupon_code_already_exists"

    batch = CouponBatch(create=[CouponCreate(code="summer"), CouponCreate(code="winter")])
    result = batch_coupons.sync(client=shop, body=batch)
    assert isinstance(result, CouponBatchResult)
    assert isinstance(result.create, list)
    assert [isinstance(item.error, ApiError) for item in result.create] == [True, False]

    line = LineItemCreate(name="Mug", quantity=2, total="8.00")
    placed = create_order.sync(client=shop, body=OrderCreate(customer_id=0, line_items=[line]))
    assert isinstance(placed, Order)
    assert placed.total == "8.00"
