// Visits the service with a key, so that the browser remembers it, then a page of another site, and
// prints what happened as one line of JSON. What was seen is judged in test_cross_site.py.
import { chromium } from "playwright-core";

const { SHOP_URL, SHOP_CONSUMER_KEY, SHOP_CONSUMER_SECRET, ELSEWHERE, BROWSER, PROFILE } =
  process.env;

const options = {
  executablePath: BROWSER,
  headless: true,
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
};

// A key in the address is what a person would type into the browser's prompt: from then on the
// browser sends it by itself.
async function visitWithKey(page) {
  const address = new URL(`${SHOP_URL}/coupons`);
  address.username = SHOP_CONSUMER_KEY;
  address.password = SHOP_CONSUMER_SECRET;
  return page.goto(address.href);
}

const context = await chromium.launchPersistentContext(PROFILE, options);
try {
  context.setDefaultTimeout(180_000);
  const page = context.pages()[0] ?? (await context.newPage());
  await visitWithKey(page);
  await page.goto(`${SHOP_URL}/coupons`);
  const here = await page.evaluate(async () => {
    const body = JSON.stringify({ coupon: { code: "mine" } });
    const created = await fetch("/coupons", { method: "POST", body });
    const read = await fetch("/coupons/1");
    return [created.status, read.status];
  });

  const arrive = async (click) => {
    await page.goto(ELSEWHERE);
    const [response] = await Promise.all([page.waitForNavigation(), page.evaluate(click)]);
    return response.status();
  };
  const create = await arrive(() => document.getElementById("create").submit());
  const remove = await arrive(() => document.getElementById("remove").click());

  await page.goto(ELSEWHERE);
  const fetched = await page.evaluate(async (url) => {
    const body = JSON.stringify({ customer: { email: "evil2@example.com" } });
    const options = { method: "POST", body, credentials: "include" };
    try {
      await fetch(`${url}/customers`, { ...options, mode: "no-cors" });
      return (await fetch(`${url}/customers`, options)).status;
    } catch (error) {
      return error.name;
    }
  }, SHOP_URL);

  await page.goto(`${SHOP_URL}/coupons`);
  const after = await page.evaluate(async () => {
    const count = async (path) => (await (await fetch(path)).json()).count;
    return { coupons: await count("/coupons/count"), customers: await count("/customers/count") };
  });

  // A script that sends no key is told so, without a prompt.
  const script = await page.evaluate(async () => {
    const answer = await fetch("/coupons", { credentials: "omit" });
    return [answer.status, answer.headers.get("WWW-Authenticate")];
  });

  console.log(JSON.stringify({ here, create, remove, fetch: fetched, after, script }));
} finally {
  await context.close();
}
