"""Run by tests/openapi/test_generators_dialects.py."""

import os

import shop_api_client as shop

configuration = shop.Configuration(
    host=os.environ["SHOP_URL"],
    username=os.environ["SHOP_CONSUMER_KEY"],
    password=os.environ["SHOP_CONSUMER_SECRET"],
)
with shop.ApiClient(configuration) as client:
    coupons, orders = shop.CouponsApi(client), shop.OrdersApi(client)
    new = shop.CouponCreateRequest(coupon=shop.CouponCreate(code="Summer", amount="15"))
    created = coupons.create_coupon(new).coupon
    assert created.amount == "15.00"

    listed = coupons.list_coupons(filter_q="summer", filter_limit=5).coupons
    assert [coupon.id for coupon in listed] == [created.id]

    codes = []
    try:
        coupons.create_coupon(new)
    except shop.ApiException as error:
        codes = [each.code for each in error.data.errors]
    assert codes == ["woocommerce_api_coupon_code_already_exists"]

    items = [shop.CouponBulkItem(code="summer"), shop.CouponBulkItem(code="winter")]
    results = coupons.bulk_coupons(shop.CouponBulkRequest(coupons=items)).coupons
    kinds = [type(result.actual_instance) for result in results]
    assert kinds == [shop.BulkFailure, shop.Coupon]

    line = shop.LineItemCreate(name="Mug", quantity=2, price="4.00")
    order = shop.OrderCreate(customer_id=0, line_items=[line])
    assert orders.create_order(shop.OrderCreateRequest(order=order)).order.total == "8.00"
