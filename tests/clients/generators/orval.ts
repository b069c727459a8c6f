// What a user of a client that orval generates does. Run by test_generators.py, and type-checked.
import assert from "node:assert/strict";
import { bulkCoupons, createCoupon, createCustomer, createOrder, listCoupons } from "./client/shop";

const { SHOP_CONSUMER_KEY, SHOP_CONSUMER_SECRET } = process.env;
const key = { headers: { Authorization: `Basic ${btoa(`${SHOP_CONSUMER_KEY}:${SHOP_CONSUMER_SECRET}`)}` } };

const created = await createCoupon(
  { coupon: { code: "Summer", type: "percent", amount: "15", usage_limit: 100, expiry_date: "2030-12-31", product_ids: [7] } },
  key,
);
assert.ok(created.status === 201);
const id: number = created.data.coupon.id;
assert.equal(created.data.coupon.amount, "15.00");

const listed = await listCoupons({ q: "summer" }, key);
assert.ok(listed.status === 200);
assert.deepEqual(listed.data.coupons.map((coupon) => coupon.code.toUpperCase()), ["SUMMER"]);

const refused = await createCoupon({ coupon: { code: "summer" } }, key);
assert.ok(refused.status === 400);
assert.equal(refused.data.errors[0]?.code, "shop_api_coupon_code_already_exists");

const bulk = await bulkCoupons({ coupons: [{ code: "summer" }, { id, usage_limit: 5 }] }, key);
assert.ok(bulk.status === 200);
const [failed, updated] = bulk.data.coupons;
assert.ok(failed && "error" in failed);
assert.equal(failed.error.code, "shop_api_coupon_code_already_exists");
assert.ok(updated && !("error" in updated));
assert.equal(updated.usage_limit, 5);

const customer = await createCustomer({ customer: { email: "ada@example.com" } }, key);
assert.ok(customer.status === 201);
for (const customer_id of [customer.data.customer.id, 0]) {
  const order = { customer_id, line_items: [{ name: "Mug", quantity: 2, price: "4.00" }] };
  const placed = await createOrder({ order }, key);
  assert.ok(placed.status === 201);
  const buyer = placed.data.order.customer;
  if ("username" in buyer) assert.equal(buyer.username, customer.data.customer.username);
  else assert.deepEqual([buyer.id satisfies 0, customer_id], [0, 0]);
}
