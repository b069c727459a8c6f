// A session of a model with an MCP server for WooCommerce (tests/plugins/woocommerce/rest/test_clients.py).
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const { SHOP_URL, SHOP_CONSUMER_KEY, SHOP_CONSUMER_SECRET } = process.env;
const server = spawn(process.execPath, ["node_modules/@lockon0927/woocommerce-mcp/dist/index.js"], {
  env: {
    ...process.env,
    WORDPRESS_SITE_URL: SHOP_URL,
    WOOCOMMERCE_CONSUMER_KEY: SHOP_CONSUMER_KEY,
    WOOCOMMERCE_CONSUMER_SECRET: SHOP_CONSUMER_SECRET,
  },
  stdio: ["pipe", "pipe", "ignore"],
});
const waiting = new Map();
createInterface({ input: server.stdout }).on("line", (line) => {
  if (!line.startsWith("{")) return; // the server also prints plain sentences
  const message = JSON.parse(line);
  waiting.get(message.id)?.(message);
});
let last = 0;
const ask = (method, params) =>
  new Promise((resolve) => {
    last += 1;
    waiting.set(last, resolve);
    server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: last, method, params })}\n`);
  });
const call = async (name, args = {}) => {
  const { result, error } = await ask("tools/call", { name: `woo_${name}`, arguments: args });
  assert.ok(result && !result.isError, `${name}: ${JSON.stringify(error ?? result)}`);
  return JSON.parse(result.content[0].text);
};

await ask("initialize", {
  protocolVersion: "2024-11-05",
  capabilities: {},
  clientInfo: { name: "test", version: "1" },
});
const coupon = await call("coupons_create", { couponData: { code: "mcp", amount: "10", discount_type: "percent" } });
assert.equal(coupon.amount, "10.00");
assert.deepEqual((await call("coupons_list", { search: "mcp" })).map((each) => each.id), [coupon.id]);

const customer = await call("customers_create", { customerData: { email: "mcp@mail.example", first_name: "Ada" } });
assert.equal((await call("customers_get", { customerId: customer.id })).first_name, "Ada");

// Without a coupon line: the server prints escaped quotes, which `coupon_info` contains, as plain ones.
const order = await call("orders_create", {
  orderData: {
    customer_id: customer.id,
    set_paid: true,
    line_items: [{ name: "Mug", quantity: 2, total: "20.00" }],
  },
});
assert.equal(order.total, "20.00");
assert.deepEqual(await call("orders_get", { orderId: order.id }), order);
const listed = await call("orders_list", { status: "processing", perPage: 5 });
assert.deepEqual(listed.map((each) => each.id), [order.id]);
await call("orders_notes_create", { orderId: order.id, note: "Packed." });
const refund = await call("orders_refunds_create", { orderId: order.id, amount: "3.00", reason: "Late" });
assert.equal(refund.amount, "3.00");
const changed = await call("orders_update", { orderId: order.id, orderData: { status: "completed" } });
assert.deepEqual([changed.status, changed.refunds[0].total], ["completed", "-3.00"]);

const [sales] = await call("reports_sales", { period: "week" });
assert.deepEqual([sales.total_orders, sales.total_sales], [1, "17.00"]);
assert.equal((await call("system_status")).environment.site_url.length > 0, true);
assert.deepEqual(await call("system_tools_list"), []);
assert.equal((await call("coupons_delete", { couponId: coupon.id, force: true })).id, coupon.id);
const missing = await ask("tools/call", { name: "woo_coupons_get", arguments: { couponId: coupon.id } });
assert.ok(missing.error || missing.result.isError);
server.kill();
