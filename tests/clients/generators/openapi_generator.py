"""What a user of the Python client of openapi-generator does. Run by tests/openapi/test_generators.py."""

import datetime as dt
import os

import shop_api_client as shop

configuration = shop.Configuration(
    host=os.environ["SHOP_URL"],
    username=os.environ["SHOP_CONSUMER_KEY"],
    password=os.environ["SHOP_CONSUMER_SECRET"],
)
with shop.ApiClient(configuration) as client:
    coupons, customers, orders = (
        api(client) for api in (shop.CouponsApi, shop.CustomersApi, shop.OrdersApi)
    )
    new = shop.CouponCreate(
        code="Summer",
        type="percent",
        amount="15",
        usage_limit=100,
        expiry_date=dt.date(2030, 12, 31),
        product_ids=[7],
    )
    created = coupons.create_coupon(shop.CouponCreateRequest(coupon=new)).coupon
    assert (created.code, created.amount, created.usage_limit) == ("summer", "15.00", 100)

    listed = coupons.list_coupons(q="summer").coupons
    assert [coupon.id for coupon in listed] == [created.id]

    again = shop.CouponCreateRequest(coupon=shop.CouponCreate(code="x", amount="15"))
    assert coupons.create_coupon(again).coupon.code == "x"
    codes = []
    try:
        coupons.create_coupon(again)
    except shop.ApiException as error:
        codes = [each.code for each in error.data.errors]
    assert codes == ["shop_api_coupon_code_already_exists"]

    items = [shop.CouponBulkItem(code="x"), shop.CouponBulkItem(id=created.id, usage_limit=5)]
    failed, updated = coupons.bulk_coupons(shop.CouponBulkRequest(coupons=items)).coupons
    assert isinstance(failed.actual_instance, shop.BulkFailure)
    assert failed.actual_instance.error.code == "shop_api_coupon_code_already_exists"
    assert isinstance(updated.actual_instance, shop.Coupon)
    assert updated.actual_instance.usage_limit == 5

    customer = customers.create_customer(
        shop.CustomerCreateRequest(customer=shop.CustomerCreate(email="ada@example.com"))
    ).customer
    for customer_id, kind in ((customer.id, shop.Customer), (0, shop.GuestCustomer)):
        line = shop.LineItemCreate(name="Mug", quantity=2, price="4.00")
        body = shop.OrderCreate(customer_id=customer_id, line_items=[line])
        order = orders.create_order(shop.OrderCreateRequest(order=body)).order
        assert isinstance(order.customer.actual_instance, kind), order.customer
