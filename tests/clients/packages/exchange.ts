// What a user of @shop-api/client does. Run by tests/openapi/test_packages.py, and type-checked.
import assert from "node:assert/strict";
import { connect, docUrl, followEvents, pages, RejectedError, verifyWebhook } from "@shop-api/client";

const { SHOP_URL = "", SHOP_CONSUMER_KEY = "", SHOP_CONSUMER_SECRET = "", DELIVERY = "" } = process.env;
const options = { baseUrl: SHOP_URL, consumerKey: SHOP_CONSUMER_KEY, consumerSecret: SHOP_CONSUMER_SECRET };
const shop = connect(options);

for (let number = 0; number < 5; number++) {
  const body = { coupon: { code: `summer-${number}` } };
  const { data, response } = await shop.POST("/coupons", { body });
  assert.equal(data?.coupon.code, `summer-${number}`);
  // The proxy has lost the first response, and rejected the next request once.
  assert.equal(response.headers.get("Idempotent-Replayed"), number ? null : "true");
}

const rejected = await shop.POST("/coupons", { body: { coupon: { code: "summer-0" } } });
assert.equal(rejected.error?.errors[0]?.code, "shop_api_coupon_code_already_exists");
assert.equal(docUrl(rejected.response), "/docs/guides/errors.md#shop_api_coupon_code_already_exists");

const list = (page: number) => shop.GET("/coupons", { params: { query: { q: "summer", page } } });
const sizes: number[] = [];
for await (const { coupons } of pages(list)) sizes.push(coupons.length);
assert.deepEqual(sizes, [2, 2, 1]);

const codes: string[] = [];
for await (const event of followEvents(shop, 0))
  if (event.type === "coupon.created") codes.push(event.data.coupon.code);
assert.equal(codes.length, 5);

const stranger = connect({ ...options, consumerSecret: "cs_wrong" });
await assert.rejects(
  async () => {
    for await (const _ of pages((page) => stranger.GET("/coupons", { params: { query: { page } } })));
  },
  (error) => error instanceof RejectedError &&
    error.status === 401 &&
    error.docUrl === "/docs/guides/errors.md#shop_api_authentication_error",
);

const [headers, text, secret] = JSON.parse(DELIVERY) as [Record<string, string>, string, string];
const delivery = verifyWebhook(text, headers, secret);
assert.equal(delivery.type, "order.created");
if (delivery.type === "order.created") assert.equal(delivery.data.order.order_number, "ERP-1");
assert.throws(() => verifyWebhook(text.replace("ERP-1", "ERP-2"), headers, secret));
