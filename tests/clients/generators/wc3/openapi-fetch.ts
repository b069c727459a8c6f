// Type-checked, and run by tests/openapi/test_generators_dialects.py.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "./shop";

const { SHOP_CONSUMER_KEY, SHOP_CONSUMER_SECRET } = process.env;
const key = { headers: { Authorization: `Basic ${btoa(`${SHOP_CONSUMER_KEY}:${SHOP_CONSUMER_SECRET}`)}` } };
const shop = createClient<paths>({ baseUrl: `${process.env.SHOP_URL}/wp-json/wc/v3`, ...key });

const body = { code: "Summer", discount_type: "percent" as const, amount: "15" };
const created = await shop.POST("/coupons", { body });
assert.equal(created.data?.amount, "15.00");

const query = { search: "summer", per_page: 5, exclude: [7, 8] };
const listed = await shop.GET("/coupons", { params: { query } });
assert.deepEqual(listed.data?.map((coupon) => coupon.id), [created.data.id]);

const refused = await shop.POST("/coupons", { body });
assert.equal(refused.error?.code, "woocommerce_rest_coupon_code_already_exists");

const line_items = [{ name: "Mug", quantity: 2, total: "8.00" }];
const placed = await shop.POST("/orders", { body: { customer_id: 0, line_items } });
assert.equal(placed.data?.total, "8.00");
