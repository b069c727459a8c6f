// What a user of the TypeScript client of openapi-generator does. Run by test_generators.py, and
// type-checked.
import assert from "node:assert/strict";
import { Configuration, CouponsApi, CustomersApi, OrdersApi, ResponseError } from "./client";

const { SHOP_URL, SHOP_CONSUMER_KEY, SHOP_CONSUMER_SECRET } = process.env;
const configuration = new Configuration({
  basePath: SHOP_URL,
  username: SHOP_CONSUMER_KEY,
  password: SHOP_CONSUMER_SECRET,
});
const coupons = new CouponsApi(configuration);

const expiryDate = new Date("2030-12-31");
const { coupon: created } = await coupons.createCoupon({
  couponCreateRequest: { coupon: { code: "Summer", amount: "15", usageLimit: 100, productIds: [7], expiryDate } },
});
assert.deepEqual([created.code, created.amount, created.usageLimit], ["summer", "15.00", 100]);

const listed = await coupons.listCoupons({ q: "summer" });
assert.deepEqual(listed.coupons.map((found) => found.id), [created.id]);

await assert.rejects(
  coupons.createCoupon({ couponCreateRequest: { coupon: { code: "summer" } } }),
  (error) => error instanceof ResponseError && error.response.status === 400,
);

const bulk = await coupons.bulkCoupons({
  couponBulkRequest: { coupons: [{ code: "summer" }, { id: created.id, usageLimit: 5 }] },
});
const [failed, updated] = bulk.coupons;
assert.equal(failed?.error.code, "shop_api_coupon_code_already_exists");
// The generator makes one type of a choice, with the properties of all.
assert.deepEqual([updated?.error, updated?.usageLimit], [undefined, 5]);

const { customer } = await new CustomersApi(configuration).createCustomer({
  customerCreateRequest: { customer: { email: "ada@example.com" } },
});
for (const customerId of [customer.id, 0]) {
  const { order } = await new OrdersApi(configuration).createOrder({
    orderCreateRequest: { order: { customerId, lineItems: [{ name: "Mug", quantity: 2, price: "4.00" }] } },
  });
  assert.equal(order.total, "8.00");
  assert.equal(order.customer.id, customerId);
}
