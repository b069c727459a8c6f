"""What a user of the models of datamodel-code-generator does. Run by tests/openapi/test_generators.py."""

import datetime as dt
import os
from typing import Any

import httpx
from pydantic import BaseModel
from shop_models import (
    BulkFailure,
    Coupon,
    CouponBulkItem,
    CouponBulkRequest,
    CouponBulkResponse,
    CouponCreate,
    CouponCreateRequest,
    CouponList,
    CouponResponse,
    CouponType,
    Customer,
    CustomerCreate,
    CustomerCreateRequest,
    CustomerResponse,
    ErrorResponse,
    GuestCustomer,
    LineItemCreate,
    OrderCreate,
    OrderCreateRequest,
    OrderResponse,
)

client = httpx.Client(
    base_url=os.environ["SHOP_URL"],
    auth=(os.environ["SHOP_CONSUMER_KEY"], os.environ["SHOP_CONSUMER_SECRET"]),
)


def post(path: str, body: BaseModel, status: int) -> Any:
    """Send a model and return the JSON of the response."""
    response = client.post(path, json=body.model_dump(mode="json", exclude_unset=True))
    assert response.status_code == status, response.text
    return response.json()


new = CouponCreate(
    code="Summer",
    type=CouponType.percent,
    amount="15",
    usage_limit=100,
    expiry_date=dt.date(2030, 12, 31),
    product_ids=[7],
)
created = CouponResponse.model_validate(post("/coupons", CouponCreateRequest(coupon=new), 201))
assert (created.coupon.code, created.coupon.amount) == ("summer", "15.00")

listed = CouponList.model_validate(client.get("/coupons").json())
assert [coupon.id for coupon in listed.coupons] == [created.coupon.id]

duplicate = CouponCreateRequest(coupon=CouponCreate(code="summer"))
refused = ErrorResponse.model_validate(post("/coupons", duplicate, 400))
assert refused.errors[0].code == "shop_api_coupon_code_already_exists"

items = [CouponBulkItem(code="summer"), CouponBulkItem(id=created.coupon.id, usage_limit=5)]
bulk = CouponBulkResponse.model_validate(
    post("/coupons/bulk", CouponBulkRequest(coupons=items), 200)
)
failed, updated = (result.root for result in bulk.coupons)
assert isinstance(failed, BulkFailure)
assert failed.error.code == "shop_api_coupon_code_already_exists"
assert isinstance(updated, Coupon)
assert updated.usage_limit == 5

account = CustomerResponse.model_validate(
    post("/customers", CustomerCreateRequest(customer=CustomerCreate(email="ada@example.com")), 201)
).customer
for customer_id, kind in ((account.id, Customer), (0, GuestCustomer)):
    line = LineItemCreate(name="Mug", quantity=2, price="4.00")
    body = OrderCreateRequest(order=OrderCreate(customer_id=customer_id, line_items=[line]))
    order = OrderResponse.model_validate(post("/orders", body, 201)).order
    assert isinstance(order.customer.root, kind)
