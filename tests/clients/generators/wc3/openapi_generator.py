"""Run by tests/openapi/test_generators_dialects.py."""

import os

import shop_api_client as shop

configuration = shop.Configuration(
    host=f"{os.environ['SHOP_URL']}/wp-json/wc/v3",
    username=os.environ["SHOP_CONSUMER_KEY"],
    password=os.environ["SHOP_CONSUMER_SECRET"],
)
with shop.ApiClient(configuration) as client:
    coupons, orders = shop.CouponsApi(client), shop.OrdersApi(client)
    new = shop.CouponCreate(code="Summer", amount="15")
    created = coupons.create_coupon(new)
    assert created.amount == "15.00"

    listed = coupons.list_coupons(search="summer", per_page=5, exclude=[7, 8])
    assert [coupon.id for coupon in listed] == [created.id]

    codes = []
    try:
        coupons.create_coupon(new)
    except shop.ApiException as error:
        codes = [error.data.code]
    assert codes == ["woocommerce_rest_coupon_code_already_exists"]

    items = [shop.CouponCreate(code="summer"), shop.CouponCreate(code="winter")]
    results = coupons.batch_coupons(shop.CouponBatch(create=items)).create
    assert [bool(item.error) for item in results] == [True, False]

    line = shop.LineItemCreate(name="Mug", quantity=2, total="8.00")
    order = shop.OrderCreate(customer_id=0, line_items=[line])
    assert orders.create_order(order).total == "8.00"
