// Type-checked, and run by tests/openapi/test_generators_dialects.py.
import assert from "node:assert/strict";
import { bulkCoupons, createCoupon, createOrder, listCoupons } from "./client/shop";

const { SHOP_CONSUMER_KEY, SHOP_CONSUMER_SECRET } = process.env;
const key = { headers: { Authorization: `Basic ${btoa(`${SHOP_CONSUMER_KEY}:${SHOP_CONSUMER_SECRET}`)}` } };

const created = await createCoupon({ coupon: { code: "Summer", type: "percent", amount: "15" } }, key);
assert.ok(created.status === 201);
assert.equal(created.data.coupon.amount, "15.00");

const listed = await listCoupons({ "filter[q]": "summer", "filter[limit]": 5 }, key);
assert.ok(listed.status === 200);
assert.deepEqual(listed.data.coupons.map((coupon) => coupon.id), [created.data.coupon.id]);

const bulk = await bulkCoupons({ coupons: [{ code: "summer" }, { code: "winter" }] }, key);
assert.ok(bulk.status === 201); // as on the old server
assert.deepEqual(bulk.data.coupons.map((result) => "error" in result), [true, false]);

const line_items = [{ name: "Mug", quantity: 2, price: "4.00" }];
const placed = await createOrder({ order: { customer_id: 0, line_items } }, key);
assert.ok(placed.status === 201);
assert.equal(placed.data.order.total, "8.00");
