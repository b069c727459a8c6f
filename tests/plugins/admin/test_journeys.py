"""Journeys through the pages in a real browser: by mouse, by keyboard, without scripts, on a phone."""

import json
import os
import re
import shutil
import subprocess
import sys
from base64 import b64encode
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.npm import install, needs_node
from tests.serving import SECRET, running_service, wait_for
from tests.webhooks.receivers import Receiver

sync_api = pytest.importorskip("playwright.sync_api")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
chromium = os.environ.get("BROWSER_PATH") or next(filter(None, map(shutil.which, BROWSERS)), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not chromium,
        reason="no Chromium installed (or named by BROWSER_PATH): the pages are not used",
    ),
]
AXE = Path(__file__).parents[2] / "browser"
DESKTOP, PHONE = (1366, 768), (320, 640)
SECONDS = 120_000  # milliseconds


class Shop:
    """A running service with some records, and a browser."""

    def __init__(self, service, browser, folder):
        self.service, self.browser, self.folder = service, browser, folder
        with self.page(types_key=True) as page:
            self.signed_in = page.context.storage_state()
        coupon = self.api(
            "POST", "/coupons", {"coupon": {"code": "tea", "type": "percent", "amount": "10"}}
        )
        self.coupon = coupon["coupon"]["id"]
        items = [{"name": "Tea", "product_id": 7, "price": "40", "quantity": 1}]
        order = {"line_items": items, "billing_address": {"email": "ada@example.com"}}
        self.first_order = self.api("POST", "/orders", {"order": order})["order"]["id"]
        campaign = {"name": "Mailing to all customers of the last five years", "budget": "50"}
        self.campaign = self.api("POST", "/campaigns", {"campaign": campaign})["campaign"]["id"]
        generate = {"count": 2, "coupon": {"campaign_id": self.campaign}}
        self.batch = self.api("POST", "/coupons/generate", {"generate": generate})["batch"]["id"]

    def api(self, method, path, body=None):
        pair = f"{self.service.consumer_key}:{self.service.consumer_secret}".encode()
        request = Request(
            self.service.url + path, method=method, data=json.dumps(body).encode() if body else None,
            headers={"Authorization": f"Basic {b64encode(pair).decode()}", "Content-Type": "application/json"},
        )  # fmt: skip
        with urlopen(request, timeout=120) as response:
            return json.load(response)

    @contextmanager
    def page(self, size=DESKTOP, *, types_key=False, **options):
        """A page that is signed in, by typing the key if wanted. Nothing may appear on its console."""
        context = self.browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            accept_downloads=True,
            reduced_motion="reduce",
            storage_state=None if types_key else self.signed_in,
            **options,
        )
        context.set_default_timeout(SECONDS)
        page = context.new_page()
        seen = []
        page.on("console", lambda message: seen.append(message.text))
        page.on("pageerror", lambda error: seen.append(str(error)))
        self.open(page, "/")
        if types_key:
            page.fill("#consumer_key", self.service.consumer_key)
            page.fill("#consumer_secret", self.service.consumer_secret)
            page.click("main button.primary")
        page.wait_for_url("**/admin/")
        yield page
        context.close()
        # The browser itself reports responses with the status of a rejected form.
        assert [text for text in seen if not re.search("status of 4(00|04|09|10)", text)] == []

    def command(self, *words):
        """Return a command of the shop for a shell, and its environment."""
        settings = {
            "DATABASE_URL": f"sqlite:///{self.folder}/shop.db", "SECRET_KEY": SECRET,
            "SHOP_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.0/8",
        }  # fmt: skip
        return [str(Path(sys.executable).parent / "shop-api"), *words], os.environ | settings

    @contextmanager
    def worker(self):
        """A worker that runs for as long as the block lasts."""
        command, environment = self.command("worker")
        with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
            try:
                yield
            finally:
                process.terminate()

    def order(self, **over):
        """Return a new order of two items that costs 80.00."""
        items = [{"name": "Tea", "product_id": 7, "price": "40", "quantity": 2}]
        order = {"line_items": items, "billing_address": {"email": "joan@example.com"}} | over
        return self.api("POST", "/orders", {"order": order})["order"]

    def open(self, page, path):
        page.goto(f"{self.service.url}/admin{path}")


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("journeys")
    with (
        running_service(folder, SHOP_WEBHOOK_ALLOWED_NETWORKS="127.0.0.0/8") as service,
        sync_api.sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield Shop(service, browser, folder)
        browser.close()


def heading(page):
    return " ".join(page.locator("h1").inner_text().split())


def test_creating_a_coupon_and_trying_it_on_a_cart(shop):
    with shop.page() as page:
        page.click("nav.side >> text=Coupons")
        page.click("text=Create coupon")
        page.fill("[name=code]", "Mouse")
        page.select_option("[name=type]", "percent")
        assert page.inner_text("[data-currency]") == "%"
        page.fill("[name=amount]", "10,5")
        page.click("button:has-text('Create coupon')")
        assert page.title().startswith("Error:")
        page.wait_for_selector(".summary:focus")
        page.click(".summary a")
        page.wait_for_selector("[name=amount]:focus")
        page.fill("[name=amount]", "25")
        page.click("button:has-text('Create coupon')")
        assert heading(page) == "mouse Active"
        page.click("text=Try it")
        assert page.input_value("#field-items-0-price") == "40.00"
        page.click("button:has-text('Try it')")
        assert "would pay $30.00 instead of $40.00" in page.inner_text("main")


def test_the_same_by_keyboard_alone(shop):
    with shop.page() as page:
        press = page.keyboard.press
        press("/")
        page.wait_for_selector("#search:focus")
        page.keyboard.type("tea")
        press("Enter")
        page.wait_for_url("**/admin/coupons/*")
        _tab_to(page, "Edit")
        press("Enter")
        page.wait_for_url("**/edit")
        _tab_to(page, "description")
        page.keyboard.type("by keyboard")
        _tab_to(page, "Save")
        press("Enter")
        page.wait_for_url("**done=saved")
        assert "by keyboard" in page.inner_text("main")
        _tab_to(page, "Delete permanently")
        press("Enter")
        assert page.locator("[role=dialog]").is_visible()
        press("Escape")
        assert not page.locator("[role=dialog]").is_visible()
    assert shop.api("GET", f"/coupons/{shop.coupon}")["coupon"]["description"] == "by keyboard"


def _tab_to(page, name):
    """Press Tab until an element with a text or a name has the focus, which is visible."""
    script = (
        "(() => { const e = document.activeElement; return [e.name || '', (e.innerText || '').trim(),"
        " e === document.body || (e.type || '').startsWith('date') || e.matches(':focus-visible')]; })()"
    )
    for _ in range(80):
        page.keyboard.press("Tab")
        field, text, is_visible = page.evaluate(script)
        assert is_visible, (field, text, page.url)
        if name in {field, text.split("\n")[0]}:
            return
    raise AssertionError(f"{name} cannot be reached with Tab")


def test_generating_codes_without_scripts(shop):
    with shop.page(types_key=True, java_script_enabled=False) as page:
        shop.open(page, "/batches/new")
        page.fill("[name=count]", "500")
        page.fill("[name=prefix]", "mail-")
        page.fill("[name='coupon.amount']", "5")
        page.click("button.primary")
        assert "Batch mail-####-####" in heading(page)
        with page.expect_download() as download:
            page.click("main >> text=Download codes")
        lines = Path(download.value.path()).read_text().splitlines()
        assert len(set(lines)) == 501
        shop.open(page, "/coupons?q=mail-")
        page.check("[name=everything]")
        page.click("button:has-text('Move to the trash')")
        while page.locator("button:has-text('Continue')").count():
            page.click("button:has-text('Continue')")
        assert "500 records done" in page.inner_text("main")
    assert shop.api("GET", "/coupons/count?q=mail-") == {"count": 0}


def test_a_conflict_of_two_editors(shop):
    with shop.page() as one, shop.page() as two:
        for page in (one, two):
            shop.open(page, f"/coupons/{shop.coupon}/edit")
        two.fill("[name=amount]", "11")
        two.click("text=Save")
        two.wait_for_url("**done=saved")
        one.fill("[name=amount]", "12")
        one.click("text=Save")
        assert heading(one) == "Someone else changed this coupon"
        assert "Theirs: 11.00" in " ".join(one.inner_text("main").split())
        one.click("text=Save these values")
        one.wait_for_url("**done=saved")
    assert shop.api("GET", f"/coupons/{shop.coupon}")["coupon"]["amount"] == "12.00"


def test_leaving_a_changed_form_asks(shop):
    with shop.page() as page:
        shop.open(page, "/coupons/new")
        page.fill("[name=code]", "typed")
        asked = []
        page.once("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
        shop.open(page, "/coupons")
        assert asked == ["beforeunload"]


def test_a_link_signs_in_once(shop):
    command, environment = shop.command(
        "keys", "link", "--login", "admin", "--url", shop.service.url
    )
    link = subprocess.run(
        command, env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()
    context = shop.browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.click("main button.primary")
    page.wait_for_url("**/admin/")
    page.goto(link)
    assert heading(page) == "This link does not work any more"
    context.close()


@pytest.mark.parametrize("scripts", [True, False])
def test_completing_an_order_and_refunding_a_part(shop, scripts):
    order = shop.order(status="processing")
    size = DESKTOP if scripts else PHONE
    with shop.page(size, java_script_enabled=scripts) as page:
        page.fill("#search", f"#{order['order_number']}")
        page.press("#search", "Enter")
        page.wait_for_url(f"**/orders/{order['id']}")
        page.select_option("main [name=status]", "completed")
        page.click("button:has-text('Change status')")
        assert heading(page).endswith("Completed")
        page.click("main >> text=Refund")
        page.fill("[name=amount]", "12,50")
        page.click("main button.primary")
        assert page.title().startswith("Error:")
        page.fill("[name=amount]", "12.50")
        page.fill("[name=reason]", "Arrived broken")
        page.dblclick("main button.primary")  # sends the form twice
        # wait_for_url would end with the first of the two, which the second aborts.
        page.wait_for_selector("#refunds >> text=Arrived broken")
        assert page.url.endswith("done=refunded")
        assert "Arrived broken" in page.inner_text("#refunds")
        assert "$12.50" in page.inner_text(".sums")
    refunds = shop.api("GET", f"/orders/{order['id']}/refunds")["order_refunds"]
    assert [refund["amount"] for refund in refunds] == ["12.50"]


def test_refunding_by_keyboard_alone(shop):
    order = shop.order(status="completed")
    with shop.page() as page:
        press = page.keyboard.press
        press("/")
        page.keyboard.type(str(order["order_number"]))
        press("Enter")
        page.wait_for_url("**/orders/*")
        _tab_to(page, "Refund")
        press("Enter")
        page.wait_for_url("**/refund")
        _tab_to(page, "amount")
        page.keyboard.type("5")
        _tab_to(page, "reason")
        _tab_to(page, "Refund")
        press("Enter")
        page.wait_for_url("**done=refunded")
        assert "The refund was recorded." in page.inner_text("[role=status]")


def test_repairing_a_failing_webhook(shop):
    receiver = Receiver(lambda _: 500)
    webhook = {"name": "ERP", "topics": ["order.*"], "delivery_url": receiver.url}
    webhook = shop.api("POST", "/webhooks", {"webhook": webhook})["webhook"]
    try:
        with shop.worker(), shop.page() as page:
            shop.order()
            receiver.wait(1)
            path = f"/webhooks/{webhook['id']}"
            _reload_until(page, lambda: shop.open(page, path), "500")
            shop.open(page, "/webhooks")
            page.click("main >> text=ERP")
            receiver.respond = lambda _: 204
            page.click("button:has-text('Ping')")
            assert "The receiver responded with 204" in page.inner_text("main")
            page.click("td >> text=Send again")
            assert "Queued." in page.inner_text("[role=status]")
            _reload_until(page, lambda: shop.open(page, path), "Delivered")
            # The ping was delivered, too, but only the repeated delivery ends the failure.
            wait_for(lambda: "failing" not in _facts_of(shop, page, path), "the end of the failure")
    finally:
        receiver.close()
        shop.api("DELETE", path)


def _facts_of(shop, page, path):
    shop.open(page, path)
    return page.inner_text("main .facts").lower()


def _reload_until(page, load, text):
    """Load a page until it shows a text."""

    def shows():
        load()
        return text in page.inner_text("main")

    wait_for(shows, text)


@pytest.mark.parametrize("scripts", [True, False])
def test_uploading_a_file_with_wrong_lines(shop, scripts):
    name = f"file-{scripts}".lower()
    rows = "".join(f"{name}-{number},percent,{number}\n" for number in range(1, 5))
    wrong = f'{name}-a,percent,"10,50"\n{name}-b,unknown,1\n{name}-1,percent,1\n'
    path = shop.folder / f"{name}.csv"
    path.write_text(f"code,type,amount\n{rows}{wrong}")
    with shop.worker(), shop.page(java_script_enabled=scripts) as page:
        page.click("nav.side >> text=Import and export")
        page.set_input_files("#file", path)
        page.click("button:has-text('Check the file')")
        # The page reloads itself until the worker has checked the file.
        page.wait_for_selector("text=4 would be created", timeout=SECONDS)
        text = page.inner_text("main")
        assert "3 have errors" in text
        assert "1000.50" in text
        page.click("button:has-text('Import 4 records')")
        # The page reloads itself until the worker has finished.
        page.wait_for_selector("text=Finished.", timeout=SECONDS)
        assert "4 created" in page.inner_text("main")
        page.click("main >> text=Open the list")
        assert heading(page) == "Coupons"
    assert shop.api("GET", f"/coupons/count?q={name}") == {"count": 4}


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_finding_a_customer_and_the_last_order(shop, size):
    email = f"grace{size[0]}@example.com"
    customer = {"email": email, "first_name": "Grace", "last_name": "Hopper"}
    customer = shop.api("POST", "/customers", {"customer": customer})["customer"]
    for status in ("completed", "processing"):
        order = shop.order(customer_id=customer["id"], status=status)
    with shop.page(size) as page:
        page.keyboard.press("/")
        page.keyboard.type(email)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**/customers/{customer['id']}")
        assert heading(page) == "Grace Hopper"
        assert "$160.00" in page.inner_text(".tiles")
        page.click(f"main >> text=#{order['order_number']}")
        assert "Processing" in heading(page)
        page.fill("#field-note", "Called: arrives on Friday.")
        page.click("button:has-text('Add note')")
        assert "arrives on Friday" in page.inner_text("#notes")


def test_selecting_rows_and_undoing(shop):
    for number in range(3):
        coupon = {"code": f"pick-{number}", "type": "percent", "amount": "5"}
        shop.api("POST", "/coupons", {"coupon": coupon})
    for size in (DESKTOP, PHONE):
        with shop.page(size) as page:
            shop.open(page, "/coupons?q=pick-")
            box = "thead input" if size is DESKTOP else "[data-select-label] input"
            page.check(box)
            assert "3 selected" in page.inner_text("[data-selected]")
            page.click("button:has-text('Move to the trash')")
            assert "3 records done" in page.inner_text("main")
            assert shop.api("GET", "/coupons/count?q=pick-") == {"count": 0}
            page.click("button:has-text('Undo')")
            assert "3 records done" in page.inner_text("main")
            assert shop.api("GET", "/coupons/count?q=pick-") == {"count": 3}
            if size is DESKTOP:
                page.click("a.back")
                assert heading(page) == "Coupons"
    with shop.page() as page:
        shop.open(page, f"/coupons/{shop.coupon}")
        page.click("main button:has-text('Move to the trash')")
        page.click("[role=status] button:has-text('Undo')")
        page.wait_for_url("**done=restored")
        assert heading(page) == "tea Active"
        for number in range(11):
            shop.api("POST", "/coupons", {"coupon": {"code": f"many-{number}"}})
        shop.open(page, "/coupons?q=many-")
        page.check("td.select input >> nth=0")
        assert not page.is_visible("[name=everything]"), "after the whole page is selected"
        page.check("thead input")
        page.check("[name=everything]")
        assert page.inner_text("[data-selected]") == "11 selected"
        page.uncheck("td.select input >> nth=0")
        assert page.inner_text("[data-selected]") == "9 selected"
        assert not page.is_checked("[name=everything]")
    with shop.page((390, 844)) as page:
        shop.open(page, "/coupons")
        page.check("td.select input >> nth=0")
        assert page.locator(".bulk").bounding_box()["height"] < 844 / 5


@pytest.mark.parametrize("scripts", [True, False])
@pytest.mark.parametrize("kind", ["coupons", "orders"])
def test_restoring_the_first_row_of_the_trash(shop, kind, scripts):
    noun, record = kind.removesuffix("s"), {"code": f"gone-{scripts}"} if kind == "coupons" else {}
    number = shop.api("POST", f"/{kind}", {noun: record})[noun]["id"]
    shop.api("DELETE", f"/{kind}/{number}")
    with shop.page(java_script_enabled=scripts) as page:
        shop.open(page, f"/{kind}?state=trash")
        page.click("tbody button:has-text('Restore') >> nth=0")
        page.wait_for_url(f"**/{kind}/{number}?done=restored")


def pages_of(shop):
    c, b, m = shop.coupon, shop.batch, f"/campaigns/{shop.campaign}"
    return [
        "/campaigns", "/campaigns/new", m, f"{m}/edit", f"/batches/new?campaign={shop.campaign}",
        "/", "/search?q=tea", "/search?q=nothing-like-this", "/coupons", "/coupons?state=trash",
        "/coupons?q=nothing-like-this", "/coupons/new", f"/coupons/{c}", f"/coupons/{c}/edit",
        f"/coupons/{c}/try", f"/coupons/{c}/redeem", f"/coupons/{c}/count", "/batches", "/batches/new",
        f"/batches/{b}", "/sessions", "/invitations/new", "/nothing", "/orders", "/customers",
        "/webhooks", "/webhooks/new", "/events", "/events/1", "/keys", "/keys/new", "/refusals", "/data",
        f"/orders/{shop.first_order}", f"/orders/{shop.first_order}/refund", "/customers/new",
    ]  # fmt: skip


SMALL = """[...document.querySelectorAll(`main :is(a, button, select, summary, textarea, label.check,
    td.select label, input:not([type=hidden], [type=checkbox], [type=radio]))`)]
    .filter(e => e.checkVisibility() && !e.closest("p, thead") && e.getBoundingClientRect().height < 44)
    .map(e => e.outerHTML.slice(0, 120))"""
"""Targets on a touch screen that are too low, without links in a sentence."""

STYLES = """(() => {
  const seen = [...document.querySelectorAll("body *")].filter(e => e.offsetParent);
  const texts = seen.filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()));
  const fields = seen.filter(e => e.matches("select, textarea, input:not([type=checkbox])"));
  const used = [texts.map(e => getComputedStyle(e)), fields.map(e => getComputedStyle(e))];
  const field = document.createElement("b");
  field.style.color = "var(--field)";
  document.body.append(field);
  const color = getComputedStyle(field).color;
  return [used[0].map(s => s.fontSize), used[0].map(s => s.fontWeight),
    used[1].map(s => s.borderTopColor).filter(c => c !== color)];
})()"""

COVERED = """(() => {
  const e = document.activeElement, box = e.getBoundingClientRect();
  if (e === document.body) return "the end";
  const ends = [[box.left + 2, box.top + 2], [box.right - 2, box.bottom - 2]];
  const tops = ends.map(([x, y]) => document.elementFromPoint(x, y));
  const sees = top => top && (e.contains(top) || top.contains(e) || !top.closest(".save, .bar"));
  return tops.every(sees) || box.height > innerHeight / 2 ? null : e.outerHTML.slice(0, 120);
})()"""


def test_the_first_steps_fit_on_a_phone(shop, tmp_path):
    empty = copy(shop)
    with running_service(tmp_path) as empty.service, empty.page(PHONE, types_key=True) as page:
        assert heading(page) == "Welcome"
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
        assert page.evaluate(SMALL) == []


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["laptop", "phone"])
@pytest.mark.parametrize("key", ["Tab", "Shift+Tab"])
def test_nothing_covers_what_has_the_focus(shop, size, key):
    with shop.page(size) as page:
        for path in ("/coupons/new", f"/coupons/{shop.coupon}/edit", "/batches/new", "/customers"):
            shop.open(page, path)
            for _ in range(80):
                page.keyboard.press(key)
                if (covered := page.evaluate(COVERED)) == "the end":
                    break
                assert covered is None, path


INVISIBLE = """(() => {
  const pixel = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const known = {};
  const light = color => known[color] ??= measured(color);
  const measured = color => {
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = color;
    pixel.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pixel.getImageData(0, 0, 1, 1).data;
    const [x, y, z] = [r, g, b].map(c => c / 255).map(
      c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return a ? 0.2126 * x + 0.7152 * y + 0.0722 * z : null;
  };
  const contrast = (one, two) => {
    const [a, b] = [light(one), light(two)];
    return a === null || b === null ? 1 : (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const canvas = getComputedStyle(document.body).backgroundColor;
  const found = [];
  const check = (selector, sees) => {
    for (const element of document.querySelectorAll(selector)) {
      if (element.checkVisibility() && !sees(getComputedStyle(element), element)) {
        found.push(element.outerHTML.slice(0, 120));
      }
    }
  };
  const bordered = style => style.borderTopStyle === "solid" && parseFloat(style.borderTopWidth) >= 1
    && contrast(style.borderTopColor, canvas) >= 3;
  check(".badge, .card", bordered);
  check("main button:not(.link), main .button, main select, main input:not([type=hidden])",
        style => bordered(style) || contrast(style.backgroundColor, canvas) >= 3 || style.appearance !== "none");
  check("main button, main .button, .badge", style => contrast(
    style.color, light(style.backgroundColor) === null ? canvas : style.backgroundColor) >= 4.5);
  check(".series, .bar-mark.open", style => contrast(style.stroke, canvas) >= 3);
  check(".bar-mark:not(.open)", style => contrast(style.fill, canvas) >= 3);
  check("a, button, input:not([type=hidden]), select, textarea, summary", (style, element) => {
    element.focus({focusVisible: true});
    const focused = getComputedStyle(element);
    return element !== document.activeElement || focused.outlineStyle !== "none"
      && parseFloat(focused.outlineWidth) >= 1 && contrast(focused.outlineColor, canvas) >= 3;
  });
  return found;
})()"""


BOXES = """[...document.querySelectorAll("body *")].filter(e => e.offsetParent)
    .map(e => [e.tagName, e.getBoundingClientRect()])
    .map(([tag, box]) => [tag, box.x, box.y, box.width, box.height]).join("\\n")"""
WIDTHS = DESKTOP[0], 1024, 800, 390, PHONE[0]


def boxes_by_width(page, path):
    """The boxes of all elements, and on a phone the targets that are too low.

    Nothing may scroll sideways.
    """
    boxes = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": DESKTOP[1]})
        assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
        boxes.append(page.evaluate(BOXES))
    assert page.evaluate(SMALL) == [], path
    page.set_viewport_size({"width": DESKTOP[0], "height": DESKTOP[1]})
    return boxes


def test_each_page_at_all_sizes_and_in_the_colours_of_the_system(shop):
    """With long texts. Nothing moves when the script runs."""
    name = {"first_name": "Maximiliana Alexandra", "last_name": f"von {'Hohenlohe' * 4}"}
    items = [{"name": "Tea" * 40, "price": "123456.78", "quantity": 12, "sku": "S" * 40}]
    shop.order(billing_address={"email": f"{'joan.' * 10}x@example.com"}, line_items=items)
    shop.order(billing_address=name | {"email": "joan@example.com"}, status="completed")
    with shop.page() as page:
        for path in pages_of(shop):
            shop.open(page, path)
            boxes = boxes_by_width(page, path)
            sizes, weights, borders = page.evaluate(STYLES)
            assert set(sizes) <= {"12px", "14px", "16px", "20px", "24px"}, path
            assert set(weights) <= {"400", "600"}, path
            assert borders == [], path
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme, forced_colors="active")
                assert page.evaluate("matchMedia('(forced-colors: active)').matches")
                assert page.evaluate(INVISIBLE) == [], (path, scheme)
            page.emulate_media(color_scheme="light", forced_colors="none")
            page.route("**/admin.js", lambda route: route.fulfill(body=""))
            shop.open(page, path)
            assert boxes_by_width(page, path) == boxes, path
            page.unroute("**/admin.js")
        shop.open(page, "/coupons")
        rows = page.evaluate("[...document.querySelectorAll('tbody tr')].map(e => e.offsetHeight)")
        assert set(rows) == {40}
        shop.open(page, "/")
        assert page.locator(".series").count() > 2
        assert page.locator(".bar-mark").count() > 0


def test_setting_up_a_campaign(shop):
    with shop.page() as page:
        page.click("nav.side >> text=Campaigns")
        page.click("text=Create campaign")
        page.fill("[name=name]", "Spring mailing")
        page.fill("[name=budget]", "500")
        page.fill("[name=ends_at]", "2020-01-01T00:00")
        page.click("button:has-text('Create campaign')")
        page.wait_for_selector(".summary.warning:focus")
        page.fill("[name=ends_at]", "2040-01-01T00:00")
        page.click("button:has-text('Create campaign')")
        assert heading(page) == "Spring mailing Active"
        page.click("text=Generate codes")
        page.fill("[name=count]", "20")
        page.fill("[name='coupon.amount']", "10")
        page.click("button.primary")
        assert heading(page) == "Batch Spring mailing"
        page.click("dl >> text=Spring mailing")
        assert "Coupons\n20" in page.inner_text(".tiles")
        page.click("button:has-text('Pause')")
        assert heading(page) == "Spring mailing Paused"
        page.click("text=Show its coupons")
        assert page.locator("tbody >> text=Campaign: Paused").count() == 10
        page.check("thead input")
        page.check("[name=everything]")
        page.click("summary:has-text('Move to campaign')")
        page.select_option("[name=campaign_id]", str(shop.campaign))
        page.click(".box button:has-text('Move to campaign')")
        assert "20 records done" in page.inner_text("main")
    moved = shop.api("GET", f"/coupons/count?campaign={shop.campaign}")["count"]
    assert moved == 22


def test_the_form_proposes_one_use_per_customer_for_first_orders(shop):
    with shop.page() as page:
        shop.open(page, "/coupons/new")
        page.check("[name=first_order_only]")
        assert page.input_value("[name=usage_limit_per_user]") == "1"
        page.uncheck("[name=first_order_only]")
        page.fill("[name=usage_limit_per_user]", "3")
        page.check("[name=first_order_only]")
        assert page.input_value("[name=usage_limit_per_user]") == "3"
        page.select_option("[name=type]", "buy_x_get_y")
        assert page.inner_text("[data-currency]") == "%"


def test_scripts_copy_and_name_the_end_of_a_coupon(shop):
    with shop.page(permissions=["clipboard-read", "clipboard-write"]) as page:
        shop.open(page, f"/coupons/{shop.coupon}")
        page.click(".copyable [data-copy]:visible")
        page.wait_for_selector("[role=status] >> text=Copied.")
        text = page.inner_text(".copyable code:visible")
        assert page.evaluate("navigator.clipboard.readText()") == text
        shop.open(page, "/coupons/new")
        page.fill("[name=expiry_date]", "2030-11-30")
        assert page.inner_text("[data-until]") == "Works until Nov 29, 23:59 UTC."
        page.fill("[name=expiry_date]", "")
        assert page.inner_text("[data-until]") == ""


AXE_RUNS = {
    "light": {"rules": {"region": {"enabled": True}}},
    "dark": {"runOnly": ["color-contrast", "link-in-text-block"]},
}
"""The options of axe by colour scheme. The other rules do not depend on colours."""


@needs_node
def test_axe_finds_nothing(shop):
    script = (install(AXE) / "axe-core" / "axe.min.js").read_text()
    with shop.page() as page:
        for path in pages_of(shop):
            if path == "/nothing":
                continue
            shop.open(page, path)
            page.evaluate(script)
            for details in page.locator("main details, header details").all():
                details.evaluate("element => { element.open = true }")
            for scheme, options in AXE_RUNS.items():
                page.emulate_media(color_scheme=scheme)
                found = page.evaluate(
                    "options => axe.run(document, {resultTypes: ['violations'], ...options})"
                    ".then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 160))]))",
                    options,
                )
                assert found == [], (path, scheme)
