"""Write the pictures of the admin pages in docs/: a demo shop in the system's Chromium.

.venv/bin/python tools/screenshots.py
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from pathlib import Path

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
        server = make_server("127.0.0.1", 0, app, threaded=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        take_pictures(f"http://127.0.0.1:{server.server_port}/admin", token)
        server.shutdown()


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
