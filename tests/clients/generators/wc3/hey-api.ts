// Type-checked, and run by tests/openapi/test_generators_dialects.py.
import assert from "node:assert/strict";
import { batchCoupons, createCoupon, createOrder, listCoupons } from "./client";
import { client } from "./client/client.gen";

const { SHOP_URL, SHOP_CONSUMER_KEY, SHOP_CONSUMER_SECRET } = process.env;
const auth = `${SHOP_CONSUMER_KEY}:${SHOP_CONSUMER_SECRET}`;
client.setConfig({ baseUrl: `${SHOP_URL}/wp-json/wc/v3`, auth });

const created = await createCoupon({ body: { code: "Summer", discount_type: "percent", amount: "15" } });
assert.equal(created.data?.amount, "15.00");

const listed = await listCoupons({ query: { search: "summer", per_page: 5, exclude: [7, 8] } });
assert.deepEqual(listed.data?.map((coupon) => coupon.id), [created.data.id]);

const refused = await createCoupon({ body: { code: "summer" } });
assert.equal(refused.error?.code, "woocommerce_rest_coupon_code_already_exists");

const batch = await batchCoupons({ body: { create: [{ code: "summer" }, { code: "winter" }] } });
assert.deepEqual(batch.data?.create?.map((item) => item.error?.data.status), [400, undefined]);

const line_items = [{ name: "Mug", quantity: 2, total: "8.00" }];
const placed = await createOrder({ body: { customer_id: 0, line_items } });
assert.equal(placed.data?.total, "8.00");
