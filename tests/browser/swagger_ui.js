// Uses Swagger UI as a person does, and prints what it saw as one line of JSON. What was seen is
// judged in test_swagger_ui.py.
import { chromium } from "playwright-core";

const { SHOP_URL, SHOP_CONSUMER_KEY, SHOP_CONSUMER_SECRET, BROWSER, PROFILE, PICTURES } =
  process.env;

const context = await chromium.launchPersistentContext(PROFILE, {
  executablePath: BROWSER,
  headless: true,
  viewport: { width: 1000, height: 900 },
  args: [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
  ],
});
try {
  context.setDefaultTimeout(180_000);
  const requests = [];
  const complaints = [];
  context.on("request", (request) => requests.push([request.method(), request.url()]));
  const page = context.pages()[0] ?? (await context.newPage());
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));

  await page.goto(`${SHOP_URL}/docs`);
  const title = await page.locator(".info .title").innerText();

  const dialog = page.locator(".dialog-ux");
  const authorize = async (key, secret) => {
    await dialog.locator("input[name=username]").fill(key);
    await dialog.locator("input[name=password]").fill(secret);
    await dialog.locator("button.authorize").click();
    await dialog.getByRole("button", { name: "Close" }).last().click();
  };
  await page.locator(".auth-wrapper > .authorize").click();
  await authorize(SHOP_CONSUMER_KEY, SHOP_CONSUMER_SECRET);

  await page.screenshot({ path: `${PICTURES}/swagger-ui.png` });

  // Sends a request with an operation's form, and returns what the page shows of the response.
  const execute = async (tag, operation, body) => {
    const block = page.locator(`#operations-${tag}-${operation}`);
    if (!(await block.locator("button.execute").isVisible())) {
      await block.locator(".opblock-summary-control").click();
    }
    if (body) await block.locator("textarea.body-param__text").fill(JSON.stringify(body, null, 2));
    const path = /\/(coupons|customers|orders)/;
    const [response] = await Promise.all([
      page.waitForResponse((each) => path.test(each.url())),
      block.locator("button.execute").click(),
    ]);
    const live = block.locator(".live-responses-table .response");
    await live.locator(".response-col_status", { hasText: String(response.status()) }).waitFor();
    const text = live.locator(".response-col_description .highlight-code code").first();
    const body_shown = await text.innerText();
    await block.locator(".responses-wrapper").evaluate((element) => element.scrollIntoView());
    return { status: String(response.status()), body: body_shown };
  };
  const coupon = { coupon: { code: "Summer-2030", type: "percent", amount: "15" } };
  const answers = {};
  answers.list = await execute("Coupons", "listCoupons", null);
  await page.screenshot({ path: `${PICTURES}/swagger-ui-listCoupons.png` });
  answers.create = await execute("Coupons", "createCoupon", coupon);
  await page.screenshot({ path: `${PICTURES}/swagger-ui-createCoupon.png` });
  answers.duplicate = await execute("Coupons", "createCoupon", coupon);
  // The path parameter has the example that is filled in: the ID of the new coupon.
  answers.update = await execute("Coupons", "updateCoupon", { coupon: { amount: "20" } });
  answers.bulk = await execute("Coupons", "bulkCoupons", {
    coupons: [{ code: "autumn" }, { code: "summer-2030" }],
  });
  const order = { order: { line_items: [{ name: "Mug", quantity: 2, price: "4.00" }] } };
  answers.order = await execute("Orders", "createOrder", order);

  // The key survives a reload, and a link opens an operation. Until the link has opened it, a click
  // on its summary would close it again.
  await page.goto(`${SHOP_URL}/docs#/Coupons/listCoupons`);
  await page.reload();
  await page.locator("#operations-Coupons-listCoupons button.execute").waitFor();
  answers.afterReload = await execute("Coupons", "listCoupons", null);

  const tags = page.locator(".opblock-tag");
  await page.locator(".operation-filter-input").fill("Redemptions");
  await page.waitForFunction(() => document.querySelectorAll(".opblock-tag").length === 1);
  const filtered = await tags.allInnerTexts();
  await page.locator(".operation-filter-input").fill("");

  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const themes = {};
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.waitForFunction(
      (dark) => document.documentElement.classList.contains("dark-mode") === dark,
      colorScheme === "dark",
    );
    themes[colorScheme] = await background();
    await page.evaluate(() => window.scrollTo(0, 0));
    await page.screenshot({ path: `${PICTURES}/swagger-ui-${colorScheme}.png` });
  }

  // From here on, the browser reports when it would show its login window.
  const logins = [];
  const devtools = await context.newCDPSession(page);
  // A request can begin while the page closes.
  const ifOpen = (error) => {
    if (!page.isClosed()) throw error;
  };
  devtools.on("Fetch.requestPaused", ({ requestId }) =>
    devtools.send("Fetch.continueRequest", { requestId }).catch(ifOpen),
  );
  devtools.on("Fetch.authRequired", ({ requestId, request }) => {
    logins.push(new URL(request.url).pathname);
    const authChallengeResponse = { response: "CancelAuth" };
    return devtools.send("Fetch.continueWithAuth", { requestId, authChallengeResponse }).catch(ifOpen);
  });
  await devtools.send("Fetch.enable", { handleAuthRequests: true });
  await page.locator(".auth-wrapper > .authorize").click();
  await dialog.locator("button", { hasText: "Logout" }).click();
  await authorize(SHOP_CONSUMER_KEY, "cs_wrong");
  answers.wrongKey = await execute("Coupons", "listCoupons", null);
  const script = [...logins];
  await page.goto(`${SHOP_URL}/orders`); // a page, not a script
  console.log(
    JSON.stringify({ title, answers, requests, complaints, filtered, themes, logins, script }),
  );
} finally {
  await context.close();
}
