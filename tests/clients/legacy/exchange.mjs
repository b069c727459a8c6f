// What a program does through one of the client libraries for Node.js.
// Run by test_legacy_clients.py, which does the same through the one for Python.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const { SHOP_URL, SHOP_CONSUMER_KEY, SHOP_CONSUMER_SECRET } = process.env;
const [library, version, way] = process.argv.slice(2);
const name = `node-${library.length}-${version}-${way}`;
const Library = createRequire(import.meta.url)(library);

function connect(consumerSecret) {
  return new (Library.default ?? Library)({
    url: SHOP_URL,
    consumerKey: SHOP_CONSUMER_KEY,
    consumerSecret,
    version,
    queryStringAuth: way === "query",
    ...(library === "woocommerce-api" ? {} : { wpAPIPrefix: "wc-api" }),
  });
}

// One way to call both: what comes back is status, headers and body.
const send =
  library === "woocommerce-api"
    ? async (api, method, endpoint, data) => {
        const args = data === undefined ? [] : [data];
        const { statusCode, headers, body } = await api[`${method}Async`](endpoint, ...args);
        return { status: statusCode, headers, body: JSON.parse(body) };
      }
    : async (api, method, endpoint, data) => {
        const args = data === undefined ? [] : [data];
        const { status, headers, data: body } = await api[method](endpoint, ...args).catch(
          (refused) => refused.response,
        );
        return { status, headers, body };
      };

const shop = connect(SHOP_CONSUMER_SECRET);

async function answer(status, method, endpoint, data) {
  const response = await send(shop, method, endpoint, data);
  assert.equal(response.status, status, JSON.stringify(response.body));
  return response.body;
}

async function refused(status, code, method, endpoint, data) {
  const { errors } = await answer(status, method, endpoint, data);
  assert.deepEqual(errors.map((error) => error.code), [code]);
}

function query(parameters) {
  return Object.entries(parameters)
    .map(([key, value]) => `${key}=${encodeURIComponent(value)}`)
    .join("&");
}

// Create and read, one and many.
const sale = "50% off & more/less: a+b=c, Été ~*'()!";
const { coupon: first } = await answer(201, "post", "coupons", {
  coupon: { code: name, description: sale },
});
assert.deepEqual([first.code, first.description, first.amount], [name, sale, "0.00"]);
assert.deepEqual((await answer(200, "get", `coupons/${first.id}`)).coupon, first);
const byCode = await answer(200, "get", `coupons/code/${name.toUpperCase()}`);
assert.deepEqual(byCode.coupon, first);

const items = [1, 2, 3, 4].map((amount) => ({ code: `${name} ${amount}`, amount }));
const { coupons: results } = await answer(201, "post", "coupons/bulk", {
  coupons: [...items, { code: name }],
});
const created = results.slice(0, 4);
assert.deepEqual(created.map((coupon) => coupon.code), items.map((item) => item.code));
assert.equal(results[4].error.code, "woocommerce_api_coupon_code_already_exists");

// List, with the parameters in the address and, where a library has that, in an object.
for (const [text, codes] of [
  [sale, [name]],
  [`${name} 3`, [`${name} 3`]],
  ["100%25", []],
]) {
  const found = codes.map((code) => ({ code }));
  const ids = `${first.id},${created[2].id}`;
  const parameters = { "filter[q]": text, "filter[in]": ids, fields: "code", page: 1 };
  const listed = await answer(200, "get", `coupons?${query(parameters)}`);
  assert.deepEqual(listed.coupons, found, text);
  if (library !== "woocommerce-api") {
    for (const object of [parameters, { filter: { q: text, in: ids }, fields: "code", page: 1 }]) {
      assert.deepEqual((await shop.get("coupons", object)).data.coupons, found, text);
    }
  }
}
const counted = query({ "filter[q]": name, "filter[type]": "percent" });
assert.deepEqual(await answer(200, "get", `coupons/count?${counted}`), { count: 0 });

// Page by page, as the headers lead.
const pages = [];
for (let more = true; more; ) {
  const parameters = { "filter[q]": name, "filter[limit]": 2, "filter[orderby]": "id" };
  const page = query({ ...parameters, page: pages.length + 1 });
  const { status, headers, body } = await send(shop, "get", `coupons?${page}`);
  assert.equal(status, 200);
  pages.push(body.coupons.map((coupon) => coupon.id));
  assert.deepEqual([headers["x-wc-total"], headers["x-wc-totalpages"]], ["5", "3"]);
  more = headers.link.includes('rel="next"');
  assert.ok(headers.link.startsWith(`<${SHOP_URL}/wc-api/${version}/coupons?`));
  assert.ok(!headers.link.includes("consumer"));
}
const ids = [...created].reverse().map((coupon) => coupon.id);
assert.deepEqual(pages, [ids.slice(0, 2), ids.slice(2), [first.id]]);

// Edit, one and many.
const path = `coupons/${first.id}`;
const { coupon: edited } = await answer(200, "put", path, {
  coupon: { amount: 7.5, product_ids: [4] },
});
assert.deepEqual([edited.amount, edited.product_ids, edited.code], ["7.50", [4], name]);
const { coupons: changed } = await answer(200, "put", "coupons/bulk", {
  coupons: [{ id: first.id, amount: "8" }, { id: 0 }],
});
assert.equal(changed[0].amount, "8.00");
assert.equal(changed[1].error.code, "woocommerce_api_missing_coupon_code");

// Delete, and what is refused.
const permanently = { message: "Permanently deleted coupon" };
assert.deepEqual(await answer(202, "delete", path), { message: "Deleted coupon" });
await refused(404, "woocommerce_api_invalid_coupon_id", "get", path);
const forced = `coupons/${created[0].id}?force=true`;
assert.deepEqual(await answer(200, "delete", forced), permanently);
if (library !== "woocommerce-api") {
  const { data } = await shop.delete(`coupons/${created[1].id}`, { force: true });
  assert.deepEqual(data, permanently);
}
const noCode = { coupon: {} };
await refused(404, "woocommerce_api_invalid_coupon_id", "put", path, { coupon: { amount: 1 } });
await refused(400, "woocommerce_api_missing_coupon_code", "post", "coupons", noCode);
await refused(404, "woocommerce_api_no_route", "get", "products");
const wrong = await send(connect("cs_wrong"), "get", "coupons");
assert.equal(wrong.status, 401);
assert.equal(wrong.body.errors[0].code, "woocommerce_api_authentication_error");

// Customers.
const email = `ada+${name}@example.com`;
const body = { customer: { email, billing_address: { city: "Zürich" } } };
const { customer: ada } = await answer(201, "post", "customers", body);
assert.deepEqual([ada.email, ada.billing_address.city], [email, "Zürich"]);
assert.equal("last_update" in ada, version === "v3");
assert.deepEqual((await answer(200, "get", `customers/email/${email}`)).customer, ada);
const search = query({ "filter[q]": email, "filter[limit]": -1 });
assert.deepEqual(await answer(200, "get", `customers?${search}`), { customers: [ada] });
const account = `customers/${ada.id}`;
assert.deepEqual(await answer(200, "get", `${account}/orders`), { orders: [] });
assert.deepEqual(await answer(200, "get", `${account}/downloads`), { downloads: [] });
const named = await answer(200, "put", account, { customer: { first_name: "Ada" } });
assert.deepEqual([named.customer.first_name, named.customer.email], ["Ada", email]);
await refused(400, "registration-error-email-exists", "post", "customers", body);
const deleted = await answer(200, "delete", account);
assert.deepEqual(deleted, { message: "Permanently deleted customer" });
await refused(404, "woocommerce_api_invalid_customer", "get", account);

// An order, from its creation to its deletion.
const { order } = await answer(201, "post", "orders", {
  order: {
    order_number: name,
    payment_details: { method_id: "bacs", method_title: "Bank transfer" },
    billing_address: { first_name: "Ada", email: "ada@example.com", city: "Zürich" },
    line_items: [{ product_id: 4, quantity: 2, total: "16.00" }],
    shipping_lines: [{ method_id: "flat_rate", method_title: "Flat", total: 4 }],
  },
});
assert.deepEqual([order.status, order.total, order.order_number], ["pending", "20.00", name]);
assert.equal(order.customer.billing_address.city, "Zürich");
const orderPath = `orders/${order.id}`;
assert.deepEqual((await answer(200, "get", orderPath)).order, order);
const { order: updated } = await answer(200, "put", orderPath, {
  order: { status: "completed", line_items: [{ id: order.line_items[0].id, quantity: 3 }] },
});
assert.deepEqual([updated.status, updated.total], ["completed", "28.00"]);
assert.ok(updated.completed_at);

const note = { note: `Sent by ${name}: 50% & more`, customer_note: true };
const written = await answer(201, "post", `${orderPath}/notes`, { order_note: note });
const { order_notes: notes } = await answer(200, "get", `${orderPath}/notes`);
assert.equal(notes[0].note, "Order status changed from Pending payment to Completed.");
assert.deepEqual(notes[1], written.order_note);
assert.deepEqual([notes[1].note, notes[1].customer_note], [note.note, true]);
const notePath = `${orderPath}/notes/${notes[1].id}`;
const sent = await answer(200, "put", notePath, { order_note: { note: "Sent." } });
assert.deepEqual(sent.order_note, { ...notes[1], note: "Sent." });
assert.deepEqual(await answer(200, "get", notePath), sent);
const noteDeleted = { message: "Permanently deleted order note" };
assert.deepEqual(await answer(200, "delete", notePath), noteDeleted);
await refused(404, "woocommerce_api_invalid_order_note_id", "get", notePath);

for (const [status, found] of [
  ["completed", [{ id: order.id }]],
  ["pending,on-hold", []],
]) {
  const parameters = query({ "filter[status]": status, "filter[q]": name, fields: "id" });
  assert.deepEqual(await answer(200, "get", `orders?${parameters}`), { orders: found });
}
const bulk = await answer(200, "post", "orders/bulk", {
  orders: [{ id: order.id, note: "Ring twice." }, { status: "unknown" }],
});
assert.equal(bulk.orders[0].note, "Ring twice.");
assert.equal(bulk.orders[1].error.code, "woocommerce_api_invalid_order_status");

assert.deepEqual(await answer(202, "delete", orderPath), { message: "Deleted order" });
await refused(404, "woocommerce_api_invalid_order_id", "get", orderPath);
assert.deepEqual(await answer(200, "delete", `${orderPath}?force=true`), {
  message: "Permanently deleted order",
});
