// A whole session of wc/v3 through the official client for Node.js (tests/plugins/woocommerce/rest/test_clients.py).
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const { SHOP_URL, SHOP_CONSUMER_KEY, SHOP_CONSUMER_SECRET } = process.env;
const [way] = process.argv.slice(2);
const { default: WooCommerce } = createRequire(import.meta.url)("@woocommerce/woocommerce-rest-api");

const shop = new WooCommerce({
  url: SHOP_URL,
  consumerKey: SHOP_CONSUMER_KEY,
  consumerSecret: SHOP_CONSUMER_SECRET,
  version: "wc/v3",
  queryStringAuth: way === "query",
});

const coupon = (await shop.post("coupons", { code: `node-${way}`, amount: "10", discount_type: "percent" })).data;
assert.equal(coupon.amount, "10.00");
const line = { name: "Mug", quantity: 2, total: "20.00" };
const created = await shop.post("orders", { line_items: [line], coupon_lines: [{ code: coupon.code }] });
assert.equal(created.status, 201);
const order = created.data;
assert.equal(order.total, "18.00");
assert.deepEqual((await shop.get(`orders/${order.id}`)).data, order);

const customer = (await shop.post("customers", { email: `node-${way}@mail.example`, first_name: "Ada" })).data;
const updated = (await shop.put(`orders/${order.id}`, { customer_id: customer.id, status: "processing" })).data;
assert.equal(updated.customer.first_name, "Ada");

const batch = await shop.post("coupons/batch", {
  create: [1, 2, 3].map((number) => ({ code: `node-${way}-${number}` })),
});
assert.equal(batch.data.create.length, 3);
const pages = [];
for (let page = 1, last = 1; page <= last; page += 1) {
  const response = await shop.get("coupons", { per_page: 2, page, orderby: "id", order: "asc" });
  last = Number(response.headers["x-wp-totalpages"]);
  assert.ok(response.headers.link.includes("api.w.org"));
  pages.push(...response.data.map((each) => each.code));
}
assert.ok(pages.includes(`node-${way}-3`));

const note = (await shop.post(`orders/${order.id}/notes`, { note: "Packed." })).data;
assert.equal(note.author, "WooCommerce");
const refund = (await shop.post(`orders/${order.id}/refunds`, { amount: "5.00", reason: "Late" })).data;
assert.equal(refund.amount, "5.00");
assert.deepEqual((await shop.get(`orders/${order.id}`)).data.refunds, [
  { id: refund.id, reason: "Late", total: "-5.00" },
]);
const hook = { topic: "order.updated", delivery_url: "https://receiver.example/hooks" };
const webhook = (await shop.post("webhooks", hook)).data;
assert.equal(webhook.status, "active");
await shop.delete(`webhooks/${webhook.id}`, { force: true });
await assert.rejects(shop.get("coupons/99999"), (error) => {
  assert.equal(error.response.data.code, "woocommerce_rest_shop_coupon_invalid_id");
  return true;
});
assert.equal((await shop.delete(`orders/${order.id}`)).data.id, order.id);
assert.equal((await shop.delete(`orders/${order.id}`, { force: true })).status, 200);
