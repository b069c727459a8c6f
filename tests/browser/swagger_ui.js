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
  context.setDefaultTimeout(60_000);
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

  await page.locator(".auth-wrapper > .authorize").click();
  const dialog = page.locator(".dialog-ux");
  await dialog.locator("input[name=username]").fill(SHOP_CONSUMER_KEY);
  await dialog.locator("input[name=password]").fill(SHOP_CONSUMER_SECRET);
  await dialog.locator("button.authorize").click();
  await dialog.getByRole("button", { name: "Close" }).last().click();

  await page.screenshot({ path: `${PICTURES}/swagger-ui.png` });

  const answers = {};
  for (const [operation, body] of [
    ["listCoupons", null],
    ["createCoupon", { coupon: { code: "Summer-2030", type: "percent", amount: "15" } }],
  ]) {
    const block = page.locator(`#operations-coupons-${operation}`);
    await block.locator(".opblock-summary-control").click();
    if (body) await block.locator("textarea.body-param__text").fill(JSON.stringify(body, null, 2));
    await block.locator("button.execute").click();
    const answer = block.locator(".live-responses-table .response");
    const text = answer.locator(".response-col_description .highlight-code code").first();
    answers[operation] = {
      status: (await answer.locator(".response-col_status").innerText()).trim(),
      body: await text.innerText(),
    };
    await block.locator(".responses-wrapper").evaluate((element) => element.scrollIntoView());
    await page.screenshot({ path: `${PICTURES}/swagger-ui-${operation}.png` });
  }
  console.log(JSON.stringify({ title, answers, requests, complaints }));
} finally {
  await context.close();
}
