// Type-checked, and run by tests/openapi/test_generators_dialects.py.
import assert from "node:assert/strict";
import { batchCoupons, createCoupon, createOrder, listCoupons } from "./client/shop";

const { SHOP_CONSUMER_KEY, SHOP_CONSUMER_SECRET } = process.env;
const key = { headers: { Authorization: `Basic ${btoa(`${SHOP_CONSUMER_KEY}:${SHOP_CONSUMER_SECRET}`)}` } };

const created = await createCoupon({ code: "Summer", discount_type: "percent", amount: "15" }, key);
assert.ok(created.status === 201);
assert.equal(created.data.amount, "15.00");

const listed = await listCoupons({ search: "summer", per_page: 5, exclude: [7, 8] }, key);
assert.ok(listed.status === 200);
assert.deepEqual(listed.data.map((coupon) => coupon.id), [created.data.id]);

const batch = await batchCoupons({ create: [{ code: "summer" }, { code: "winter" }] }, key);
assert.ok(batch.status === 200);
assert.deepEqual(batch.data.create?.map((item) => item.error?.data.status), [400, undefined]);

const line_items = [{ name: "Mug", quantity: 2, total: "8.00" }];
const placed = await createOrder({ customer_id: 0, line_items }, key);
assert.ok(placed.status === 201);
assert.equal(placed.data.total, "8.00");
