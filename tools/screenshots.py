"""Write the pictures of the admin pages in docs/: a demo shop in the system's Chromium.

.venv/bin/python tools/screenshots.py
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

from flask import Flask
from flask_migrate import upgrade
from playwright.sync_api import sync_playwright
from werkzeug.serving import make_server

from app import create_app
from app.auth.principals import Permission
from app.services.api_keys.links import create_link
from app.services.api_keys.writes import create_key
from app.services.maintenance.demo.loading import load_demo_shop

ROOT = Path(__file__).resolve().parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LAPTOP, PHONE = (1280, 800), (390, 780)
DEMO = {"customers": 400, "coupons": 80, "orders": 6000}
PICTURES = (
    ("admin-overview", "/", LAPTOP, "light"),
    ("admin-coupons", "/coupons", LAPTOP, "light"),
    ("admin-coupon", "/coupons/1", LAPTOP, "light"),
    ("admin-campaign", "/campaigns/1", LAPTOP, "light"),
    ("admin-form", "/coupons/1/edit", LAPTOP, "dark"),
    ("admin-phone", "/coupons", PHONE, "light"),
)
"""Name, path, size and colours of each picture."""


def main() -> None:
    """Load a demo shop into a temporary database, serve it, and take the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        app = create_app(
            {
                "DATABASE_URL": f"sqlite:///{folder}/shop.db",
                "INSTANCE_PATH": folder,
                "SECRET_KEY": os.urandom(20).hex(),
                "SHOP_NAME": "Tea House",
            }
        )
        with app.app_context():
            upgrade()
            key = create_key("ada", "administrator", Permission.READ_WRITE, "Ada's laptop")
            load_demo_shop(DEMO, seed=1, owner_id=key.user_id)
            token = create_link(key.key_id)
        use_campaign(app, (key.consumer_key, key.consumer_secret))
        server = make_server("127.0.0.1", 0, app, threaded=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        take_pictures(f"http://127.0.0.1:{server.server_port}/admin", token)
        server.shutdown()


def use_campaign(app: Flask, auth: tuple[str, str]) -> None:
    """Generate codes for the campaign of the demo shop, and use some of them."""
    client = app.test_client()

    def post(path: str, body: object = None) -> Any:
        return next(iter(client.post(path, json=body, auth=auth).get_json().values()))

    coupon = {"type": "percent", "amount": "15", "usage_limit": 1, "campaign_id": 1}
    given = {"count": 250, "prefix": "MAY-", "name": "Letters of May", "coupon": coupon}
    batch = post("/coupons/generate", {"generate": given})["id"]
    coupons = client.get(f"/coupons?batch={batch}", auth=auth).get_json()["coupons"]
    for place, each in enumerate(coupons):
        use = {
            "code": each["code"],
            "reference": f"letter-{place}",
            "amount": f"{61 - 4 * place}.20",
        }
        post(f"/redemptions/{post('/redemptions', {'redemption': use})['id']}/confirm")


def take_pictures(url: str, token: str) -> None:
    """Sign in with a link, and write each picture to docs/."""
    chromium = os.environ.get("BROWSER_PATH") or next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-background-networking"]
        )
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"{url}/sign-in?token={token}")
        page.click("main button.primary")
        page.wait_for_url(f"{url}/")
        state = context.storage_state()
        for name, path, (width, height), colours in PICTURES:
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=colours,  # type: ignore[arg-type]  # light or dark
                storage_state=state,
            )
            page = context.new_page()
            page.goto(url + path)
            page.screenshot(path=ROOT / "docs" / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
