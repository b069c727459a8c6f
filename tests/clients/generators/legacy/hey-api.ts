// Type-checked, and run by tests/openapi/test_generators_dialects.py.
import assert from "node:assert/strict";
import { bulkCoupons, createCoupon, createOrder, listCoupons } from "./client";
import { client } from "./client/client.gen";

const { SHOP_URL, SHOP_CONSUMER_KEY, SHOP_CONSUMER_SECRET } = process.env;
client.setConfig({ baseUrl: SHOP_URL, auth: `${SHOP_CONSUMER_KEY}:${SHOP_CONSUMER_SECRET}` });

const created = await createCoupon({ body: { coupon: { code: "Summer", type: "percent", amount: "15" } } });
assert.equal(created.data?.coupon.amount, "15.00");

const listed = await listCoupons({ query: { "filter[q]": "summer", "filter[limit]": 5 } });
assert.deepEqual(listed.data?.coupons.map((coupon) => coupon.id), [created.data.coupon.id]);

const refused = await createCoupon({ body: { coupon: { code: "summer" } } });
assert.equal(refused.error?.errors[0]?.code, "woocommerce_api_coupon_code_already_exists");

const bulk = await bulkCoupons({ body: { coupons: [{ code: "summer" }, { code: "winter" }] } });
assert.deepEqual(bulk.data?.coupons.map((result) => "error" in result), [true, false]);

const line_items = [{ name: "Mug", quantity: 2, price: "4.00" }];
const placed = await createOrder({ body: { order: { customer_id: 0, line_items } } });
assert.equal(placed.data?.order.total, "8.00");
