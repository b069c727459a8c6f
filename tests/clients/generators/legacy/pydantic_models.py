"""Run by tests/openapi/test_generators_dialects.py, which also checks its types."""

import os

import httpx
from shop_models import (
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

key = os.environ["SHOP_CONSUMER_KEY"], os.environ["SHOP_CONSUMER_SECRET"]
with httpx.Client(base_url=f"{os.environ['SHOP_URL']}/wc-api/v3", auth=key) as shop:
    new = CouponCreateRequest(coupon=CouponCreate(code="Summer", amount="15"))
    body = new.model_dump(mode="json", exclude_unset=True)
    created = CouponResponse.model_validate_json(shop.post("/coupons", json=body).content)
    assert created.coupon.amount == "15.00"

    response = shop.get("/coupons", params={"filter[q]": "summer"})
    listed = CouponList.model_validate_json(response.content)
    assert [coupon.id for coupon in listed.coupons] == [created.coupon.id]

    refused = ErrorResponse.model_validate_json(shop.post("/coupons", json=body).content)
    assert refused.errors[0].code == "woocommerce_api_coupon_code_already_exists"

    line = LineItemCreate(name="Mug", quantity=2, price="4.00")
    order = OrderCreateRequest(order=OrderCreate(customer_id=0, line_items=[line]))
    body = order.model_dump(mode="json", exclude_unset=True)
    placed = OrderResponse.model_validate_json(shop.post("/orders", json=body).content)
    assert placed.order.total == "8.00"
