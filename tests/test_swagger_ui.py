"""Swagger UI in a real browser, against the running service."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from npm import install, needs_node
from serving import running_service

BROWSER_TEST = Path(__file__).parent / "browser"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
browser = os.environ.get("BROWSER_PATH") or next(filter(None, map(shutil.which, BROWSERS)), None)


@needs_node
@pytest.mark.skipif(
    not browser,
    reason="no Chromium installed (or named by BROWSER_PATH): Swagger UI is not tested",
)
def test_swagger_ui(tmp_path):
    install(BROWSER_TEST)
    pictures = Path(os.environ.get("SCREENSHOTS") or tmp_path / "pictures").absolute()
    pictures.mkdir(parents=True, exist_ok=True)
    with running_service(tmp_path) as service:
        seen = use(service, tmp_path, pictures)

    assert seen["title"].startswith("Shop Administration API")
    assert seen["complaints"] == []
    listed, created = seen["answers"]["listCoupons"], seen["answers"]["createCoupon"]
    assert (listed["status"], json.loads(listed["body"])) == ("200", {"coupons": []})
    assert created["status"] == "201"
    coupon = json.loads(created["body"])["coupon"]
    assert (coupon["id"], coupon["code"], coupon["amount"]) == (1, "summer-2030", "15.00")

    # No font, no script, no validator, no picture from anywhere else.
    assert [url for _, url in seen["requests"] if not url.startswith(f"{service.url}/")] == []
    assert ["POST", f"{service.url}/coupons"] in seen["requests"]
    assert sorted(path.name for path in pictures.glob("swagger-ui*.png")) == [
        "swagger-ui-createCoupon.png",
        "swagger-ui-listCoupons.png",
        "swagger-ui.png",
    ]


def use(service, folder, pictures):
    """Use Swagger UI with a key; return what the page showed and asked for."""
    done = subprocess.run(
        ["node", "swagger_ui.js"],
        cwd=BROWSER_TEST,
        env=os.environ
        | {
            "SHOP_URL": service.url,
            "SHOP_CONSUMER_KEY": service.consumer_key,
            "SHOP_CONSUMER_SECRET": service.consumer_secret,
            "BROWSER": browser,
            "PROFILE": str(folder / "profile"),
            "PICTURES": str(pictures),
        },
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
