// What a user of a client that @hey-api/openapi-ts generates does. Run by test_generators.py, and
// type-checked.
import assert from "node:assert/strict";
import { client } from "./client/client.gen";
import { bulkCoupons, createCoupon, createCustomer, createOrder, listCoupons } from "./client";

const { SHOP_URL, SHOP_CONSUMER_KEY, SHOP_CONSUMER_SECRET } = process.env;
client.setConfig({
  baseUrl: SHOP_URL,
  headers: { Authorization: `Basic ${btoa(`${SHOP_CONSUMER_KEY}:${SHOP_CONSUMER_SECRET}`)}` },
});

const created = await createCoupon({
  body: {
    coupon: { code: "Summer", type: "percent", amount: "15", usage_limit: 100, expiry_date: "2030-12-31", product_ids: [7] },
  },
});
assert.ok(created.data);
const id: number = created.data.coupon.id;
assert.equal(created.data.coupon.amount, "15.00");

const listed = await listCoupons({ query: { q: "summer" } });
assert.deepEqual(listed.data?.coupons.map((coupon) => coupon.code.toUpperCase()), ["SUMMER"]);

const refused = await createCoupon({ body: { coupon: { code: "summer" } } });
assert.equal(refused.error?.errors[0]?.code, "shop_api_coupon_code_already_exists");

const bulk = await bulkCoupons({ body: { coupons: [{ code: "summer" }, { id, usage_limit: 5 }] } });
assert.ok(bulk.data);
const [failed, updated] = bulk.data.coupons;
assert.ok(failed && "error" in failed);
assert.equal(failed.error.code, "shop_api_coupon_code_already_exists");
assert.ok(updated && !("error" in updated));
assert.equal(updated.usage_limit, 5);

const customer = await createCustomer({ body: { customer: { email: "ada@example.com" } } });
assert.ok(customer.data);
for (const customer_id of [customer.data.customer.id, 0]) {
  const order = { customer_id, line_items: [{ name: "Mug", quantity: 2, price: "4.00" }] };
  const placed = await createOrder({ body: { order } });
  assert.ok(placed.data);
  const buyer = placed.data.order.customer;
  if ("username" in buyer) assert.equal(buyer.username, customer.data.customer.username);
  else assert.deepEqual([buyer.id satisfies 0, customer_id], [0, 0]);
}
