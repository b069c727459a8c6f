"""Run by tests/openapi/test_generators_dialects.py, which also checks its types."""

import os

import httpx
from shop_models import ApiError, Coupon, CouponCreate, LineItemCreate, Order, OrderCreate

key = os.environ["SHOP_CONSUMER_KEY"], os.environ["SHOP_CONSUMER_SECRET"]
with httpx.Client(base_url=f"{os.environ['SHOP_URL']}/wp-json/wc/v3", auth=key) as shop:
    new = CouponCreate(code="Summer", amount="15")
    body = new.model_dump(mode="json", exclude_unset=True)
    created = Coupon.model_validate_json(shop.post("/coupons", json=body).content)
    assert created.amount == "15.00"

    listed = shop.get("/coupons", params={"search": "summer"}).json()
    assert [Coupon.model_validate(coupon).id for coupon in listed] == [created.id]

    refused = ApiError.model_validate_json(shop.post("/coupons", json=body).content)
    assert refused.code == "woocommerce_rest_coupon_code_already_exists"

    line = LineItemCreate(name="Mug", quantity=2, total="8.00")
    order = OrderCreate(customer_id=0, line_items=[line])
    body = order.model_dump(mode="json", exclude_unset=True)
    placed = Order.model_validate_json(shop.post("/orders", json=body).content)
    assert placed.total == "8.00"
