// What a user of the generated TypeScript client does. Run by test_clients.py, and type-checked.
import assert from "node:assert/strict";
import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./shop.js";

type Shop = Client<paths>;
type Coupon = components["schemas"]["Coupon"];
type CouponCreate = components["schemas"]["CouponCreate"];
type Errors = components["schemas"]["ErrorResponse"];

function setting(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set`);
  return value;
}

function connect(consumerKey: string, consumerSecret: string): Shop {
  return createClient<paths>({
    baseUrl: setting("SHOP_URL"),
    headers: { Authorization: `Basic ${btoa(`${consumerKey}:${consumerSecret}`)}` },
  });
}

async function create(shop: Shop, coupon: CouponCreate): Promise<Coupon> {
  const { data, response } = await shop.POST("/coupons", { body: { coupon } });
  assert.equal(response.status, 201);
  assert.ok(data);
  return data.coupon;
}

/** The codes of all coupons, by id, page by page. */
async function allCodes(shop: Shop): Promise<string[]> {
  const codes: string[] = [];
  let pages = 1;
  for (let page = 1; page <= pages; page += 1) {
    const { data, response } = await shop.GET("/coupons", {
      params: { query: { page, fields: "code", orderby: "id", order: "asc" } },
    });
    assert.ok(data);
    assert.ok(data.coupons.length <= 2);
    codes.push(...data.coupons.map((coupon) => coupon.code));
    pages = Number(response.headers.get("X-TotalPages"));
    assert.equal(Number(response.headers.get("X-Total")) > 0, true);
  }
  return codes;
}

/** Check an error: its status and its one entry, as typed values. */
function refused(
  answer: { error?: Errors; response: Response },
  status: number,
  code: string,
  param?: string,
): void {
  assert.equal(answer.response.status, status);
  assert.ok(answer.error);
  const [entry, ...more] = answer.error.errors;
  assert.ok(entry);
  assert.deepEqual(more, []);
  const told: string = entry.code;
  assert.equal(told, code);
  assert.ok(entry.message.length > 0);
  assert.equal(entry.param, param);
}

async function coupons(shop: Shop): Promise<void> {
  const summer = await create(shop, {
    code: "Summer-2030",
    type: "percent",
    amount: "15",
    usage_limit: 100,
    expiry_date: "2030-12-31",
    product_ids: [7, 12],
  });
  const id: number = summer.id;
  assert.deepEqual([summer.code, summer.type, summer.amount], ["summer-2030", "percent", "15.00"]);
  assert.deepEqual([summer.usage_limit, summer.usage_limit_per_user], [100, null]);
  assert.equal(summer.expiry_date, "2030-12-31T00:00:00Z");
  assert.deepEqual(summer.product_ids, [7, 12]);
  // Only the code: the other fields need no mention.
  for (const code of ["autumn", "winter", "spring"]) {
    assert.equal((await create(shop, { code })).type, "fixed_cart");
  }

  const found = await shop.GET("/coupons/code/{code}", { params: { path: { code: "SUMMER-2030" } } });
  assert.deepEqual(found.data?.coupon, summer);

  const listed = await shop.GET("/coupons", {
    params: { query: { q: "summer", type: "percent" } },
  });
  assert.deepEqual(listed.data?.coupons, [summer]);
  const counted = await shop.GET("/coupons/count", {
    params: { query: { type: "percent" } },
  });
  assert.equal(counted.data?.count, 1);
  assert.deepEqual(await allCodes(shop), ["summer-2030", "autumn", "winter", "spring"]);

  const edited = await shop.PUT("/coupons/{coupon_id}", {
    params: { path: { coupon_id: id } },
    body: { coupon: { amount: "20" } },
  });
  // What the edit does not mention stays as it is.
  assert.deepEqual([edited.data?.coupon.amount, edited.data?.coupon.usage_limit], ["20.00", 100]);

  const bulk = await shop.POST("/coupons/bulk", {
    body: { coupons: [{ code: "fifth" }, { code: "AUTUMN" }, { id, usage_limit: 50 }] },
  });
  assert.ok(bulk.data);
  const [fifth, taken, limited] = bulk.data.coupons;
  assert.ok(fifth && !("error" in fifth));
  assert.equal(fifth.code, "fifth");
  assert.ok(taken && "error" in taken);
  assert.deepEqual([taken.id, taken.error.code], [0, "shop_api_coupon_code_already_exists"]);
  assert.ok(limited && !("error" in limited));
  assert.deepEqual([limited.id, limited.usage_limit], [id, 50]);

  const deleted = await shop.DELETE("/coupons/{coupon_id}", {
    params: { path: { coupon_id: id }, query: { force: true } },
  });
  assert.equal(deleted.data?.message, "Permanently deleted coupon");
  assert.deepEqual(await allCodes(shop), ["autumn", "winter", "spring", "fifth"]);
}

async function others(shop: Shop): Promise<void> {
  const created = await shop.POST("/customers", {
    body: {
      customer: {
        email: "ada+shop@example.com",
        first_name: "Ada",
        billing_address: { city: "London" },
      },
    },
  });
  assert.ok(created.data);
  const account: number = created.data.customer.id;
  assert.equal(created.data.customer.billing_address.city, "London");
  for (const customer_id of [account, 0]) {
    const { data } = await shop.POST("/orders", {
      body: { order: { customer_id, line_items: [{ name: "Mug", quantity: 2, price: "4.00" }] } },
    });
    assert.ok(data);
    assert.deepEqual([data.order.total, data.order.line_items[0]?.quantity], ["8.00", 2]);
    const { customer } = data.order;
    if ("username" in customer) assert.equal(customer.username, created.data.customer.username);
    else assert.deepEqual([customer.id satisfies 0, customer_id], [0, 0]);
  }
  const read = await shop.GET("/customers/email/{email}", {
    params: { path: { email: "ada+shop@example.com" } },
  });
  assert.equal(read.data?.customer.id, account);
  const statuses = await shop.GET("/orders/statuses");
  assert.ok(statuses.data?.order_statuses["completed"]);
}

async function errors(shop: Shop): Promise<void> {
  refused(
    await shop.POST("/coupons", { body: { coupon: { code: "Autumn" } } }),
    400,
    "shop_api_coupon_code_already_exists",
  );
  refused(
    await shop.GET("/coupons", { params: { query: { page: 0 } } }),
    400,
    "shop_api_invalid_param",
    "page",
  );
  refused(
    await connect("ck_nobody", "cs_nobody").GET("/coupons"),
    401,
    "shop_api_authentication_error",
  );
  refused(
    await shop.GET("/coupons/{coupon_id}", { params: { path: { coupon_id: 999 } } }),
    404,
    "shop_api_invalid_coupon_id",
  );
  refused(
    await shop.POST("/coupons/bulk", { body: { coupons: Array.from({ length: 4 }, () => ({ code: "x" })) } }),
    413,
    "shop_api_coupons_request_entity_too_large",
  );
  refused(
    await shop.POST("/coupons", { body: { coupon: { code: "x", description: "x".repeat(30_000) } } }),
    413,
    "shop_api_request_entity_too_large",
  );
}

const shop = connect(setting("SHOP_CONSUMER_KEY"), setting("SHOP_CONSUMER_SECRET"));
await coupons(shop);
await others(shop);
await errors(shop);
