// Type-checked, and run by tests/openapi/test_generators_dialects.py.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "./shop";

const { SHOP_CONSUMER_KEY, SHOP_CONSUMER_SECRET } = process.env;
const key = { headers: { Authorization: `Basic ${btoa(`${SHOP_CONSUMER_KEY}:${SHOP_CONSUMER_SECRET}`)}` } };
const shop = createClient<paths>({ baseUrl: process.env.SHOP_URL, ...key });

const body = { coupon: { code: "Summer", type: "percent" as const, amount: "15" } };
const created = await shop.POST("/wc-api/v3/coupons", { body });
assert.equal(created.data?.coupon.amount, "15.00");

const query = { "filter[q]": "summer", "filter[limit]": 5 };
const listed = await shop.GET("/wc-api/v3/coupons", { params: { query } });
assert.deepEqual(listed.data?.coupons.map((coupon) => coupon.id), [created.data.coupon.id]);

const refused = await shop.POST("/wc-api/v3/coupons", { body });
assert.equal(refused.error?.errors[0]?.code, "woocommerce_api_coupon_code_already_exists");

const line_items = [{ name: "Mug", quantity: 2, price: "4.00" }];
const placed = await shop.POST("/wc-api/v3/orders", { body: { order: { customer_id: 0, line_items } } });
assert.equal(placed.data?.order.total, "8.00");
