"""Swagger UI in a real browser, against the running service."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.npm import install, needs_node
from tests.serving import running_service

BROWSER_TEST = Path(__file__).parents[1] / "browser"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
browser = os.environ.get("BROWSER_PATH") or next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.mark.slow
@needs_node
@pytest.mark.skipif(
    not browser, reason="no Chromium installed (or named by BROWSER_PATH): Swagger UI is not tested"
)
def test_swagger_ui(tmp_path):
    install(BROWSER_TEST)
    pictures = Path(os.environ.get("SCREENSHOTS") or tmp_path / "pictures").absolute()
    pictures.mkdir(parents=True, exist_ok=True)
    with running_service(tmp_path) as service:
        seen = use(service, tmp_path, pictures)

    assert seen["title"].startswith("Shop Administration API")
    # The browser itself reports the responses to the duplicate, to the wrong key and to the page.
    assert [re.findall("40[01]", complaint)[0] for complaint in seen["complaints"]] == [
        "400", "401", "401",
    ]  # fmt: skip
    statuses = {name: answer["status"] for name, answer in seen["answers"].items()}
    assert statuses == {
        "list": "200", "create": "201", "duplicate": "400", "update": "200", "bulk": "200",
        "order": "201", "afterReload": "200", "wrongKey": "401",
    }  # fmt: skip
    bodies = {name: json.loads(answer["body"]) for name, answer in seen["answers"].items()}
    assert bodies["list"] == {"coupons": []}
    coupon = bodies["create"]["coupon"]
    assert (coupon["id"], coupon["code"], coupon["amount"]) == (1, "summer-2030", "15.00")
    assert bodies["duplicate"]["errors"][0]["code"] == "shop_api_coupon_code_already_exists"
    assert bodies["update"]["coupon"] == coupon | {
        "amount": "20.00", "updated_at": bodies["update"]["coupon"]["updated_at"],
    }  # fmt: skip
    created, failed = bodies["bulk"]["coupons"]
    assert (created["code"], failed["id"]) == ("autumn", 0)
    assert failed["error"]["code"] == "shop_api_coupon_code_already_exists"
    assert (bodies["order"]["order"]["total"], bodies["order"]["order"]["customer"]["id"]) == (
        "8.00",
        0,
    )
    assert len(bodies["afterReload"]["coupons"]) == 2
    assert bodies["wrongKey"]["errors"][0]["code"] == "shop_api_authentication_error"
    # A script's response shows no login window of the browser, that of a page does.
    assert (seen["script"], seen["logins"]) == ([], ["/orders"])
    (tag,) = seen["filtered"]
    assert tag.startswith("Redemptions")
    assert seen["themes"] == {"light": "rgb(250, 250, 250)", "dark": "rgb(28, 32, 34)"}

    # No font, no script, no validator, no picture from anywhere else.
    assert [url for _, url in seen["requests"] if not url.startswith(f"{service.url}/")] == []
    assert ["POST", f"{service.url}/coupons"] in seen["requests"]
    assert sorted(path.name for path in pictures.glob("swagger-ui*.png")) == [
        "swagger-ui-createCoupon.png",
        "swagger-ui-dark.png",
        "swagger-ui-light.png",
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
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
