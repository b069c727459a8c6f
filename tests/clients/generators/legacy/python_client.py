"""Run by tests/openapi/test_generators_dialects.py, which also checks its types."""

import os
from base64 import b64encode

from shop_client import AuthenticatedClient
from shop_client.api.coupons import bulk_coupons, create_coupon, list_coupons
from shop_client.api.orders import create_order
from shop_client.models import (
    BulkFailure,
    Coupon,
    CouponBulkItem,
    CouponBulkRequest,
    CouponBulkResponse,
    CouponCreate,
    CouponCreateRequest,
    CouponList,
    CouponResponse,
    ErrorResponse,
    LineItemCreate,
    OrderCreate,
    OrderCreateRequest,
    OrderResponse,
)

key = f"{os.environ['SHOP_CONSUMER_KEY']}:{os.environ['SHOP_CONSUMER_SECRET']}"
token = b64encode(key.encode()).decode()
with AuthenticatedClient(base_url=os.environ["SHOP_URL"], token=token, prefix="Basic") as shop:
    new = CouponCreateRequest(coupon=CouponCreate(code="Summer", amount="15"))
    created = create_coupon.sync(client=shop, body=new)
    assert isinstance(created, CouponResponse)
    assert created.coupon.amount == "15.00"

    listed = list_coupons.sync(client=shop, filterq="summer", filterlimit=5)
    assert isinstance(listed, CouponList)
    assert [coupon.id for coupon in listed.coupons] == [created.coupon.id]

    refused = create_coupon.sync(client=shop, body=new)
    assert isinstance(refused, ErrorResponse)
    assert refused.errors[0].code == "woocommerce_api_coupon_code_already_exists"

    items = [CouponBulkItem(code="summer"), CouponBulkItem(code="winter")]
    bulk = bulk_coupons.sync(client=shop, body=CouponBulkRequest(coupons=items))
    assert isinstance(bulk, CouponBulkResponse)
    assert [type(result) for result in bulk.coupons] == [BulkFailure, Coupon]

    line = LineItemCreate(name="Mug", quantity=2, price="4.00")
    order = OrderCreate(customer_id=0, line_items=[line])
    placed = create_order.sync(client=shop, body=OrderCreateRequest(order=order))
    assert isinstance(placed, OrderResponse)
    assert placed.order.total == "8.00"
