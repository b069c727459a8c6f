"""The service without the folder of a built-in plugin: nothing outside of it needs it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGINS = ["admin", "woocommerce"]

SHOP = """
import json, sys
from app import create_app, plugin_api
from app.auth.principals import Permission
from app.services.api_keys.writes import create_key
from app.services.webhooks.deliveries.queue import has_work
from app.worker.loop import CycleInput, run_cycle

folder = sys.argv[1]
app = create_app({
    "SECRET_KEY": "x" * 40, "DATABASE_URL": f"sqlite:///{folder}/shop.db", "INSTANCE_PATH": folder,
})
runner, client = app.test_cli_runner(), app.test_client()
upgraded = runner.invoke(args=["db", "upgrade"])
assert upgraded.exit_code == 0, upgraded.output
demo = runner.invoke(args=["demo", "--customers", "9", "--coupons", "9", "--orders", "9"])
assert demo.exit_code == 0, demo.output
with app.app_context():
    key = create_key("admin", "administrator", Permission.READ_WRITE, "")
    worked = run_cycle("w", CycleInput((), (), {}))
    plugin_api.admin.add_page(app, "gifts", "Gifts", str)
auth = key.consumer_key, key.consumer_secret


def call(method, path, body=None, **headers):
    response = client.open(path, method=method, json=body, auth=auth, headers=headers)
    return response.status_code, response.get_json(silent=True)


print(json.dumps({
    "coupon": call("POST", "/coupons", {"coupon": {"code": "new", "amount": "5"}}),
    "order": call("POST", "/orders", {"order": {
        "customer_id": 2, "coupon_lines": [{"code": "new"}],
        "line_items": [{"name": "Mug", "price": "8.00", "quantity": 2}],
    }}),
    "webhooks": call("GET", "/webhooks"),
    "document": call("GET", "/openapi.json"),
    "page": client.get("/orders", headers={"Accept": "text/html"}).text,
    "admin": client.get("/admin/sign-in").status_code,
    "legacy": call("GET", "/wc-api/v3/orders")[0],
    "wc/v3": client.get("/wp-json/wc/v3/orders").status_code,
    "commands": runner.invoke(args=["import", "--help"]).output,
}))
"""


NAMES = re.compile(r"/wc-api|/wp-json|/admin|tests\.plugins|legacy")
"""How a test says that it uses a built-in plugin."""


def copy_without(plugins, folder):
    for name in ("app", "migrations", "docs", "server", "tests"):
        # What is compiled is copied, but not what another process writes at this moment.
        ignored = shutil.ignore_patterns("*.pyc.*", "site", "node_modules")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for plugin in plugins:
        shutil.rmtree(folder / "app" / "plugins" / plugin)


def run(arguments, code):
    """Run Python with the code in a folder."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=code,
        env={**os.environ, "PYTHONPATH": str(code)},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("plugin", PLUGINS)
def test_shop_runs_without_the_folder_of_a_plugin(tmp_path, plugin):
    code, data = tmp_path / "code", tmp_path / "data"
    data.mkdir()
    copy_without([plugin], code)
    done = run(["-c", SHOP, data], code)
    assert done.returncode == 0, done.stderr[-3000:]
    shop = json.loads(done.stdout.splitlines()[-1])
    assert (shop["coupon"][0], shop["order"][0]) == (201, 201)
    assert shop["order"][1]["order"]["total"] == "11.00"
    assert shop["webhooks"][1]["webhooks"]
    has_pages, has_dialects = plugin != "admin", plugin != "woocommerce"
    expected = json.loads((ROOT / "openapi.json").read_text())
    assert shop["document"][1]["paths"] == expected["paths"]
    assert ("Admin pages" in shop["page"]) == has_pages
    assert shop["admin"] == (200 if has_pages else 404)
    assert shop["legacy"] == (200 if has_dialects else 404)
    assert shop["wc/v3"] == (401 if has_dialects else 404)
    assert ("woocommerce" in shop["commands"]) == has_dialects


@pytest.mark.slow
def test_tests_of_the_core_pass_without_plugins(tmp_path):
    copy_without(PLUGINS, tmp_path)
    files = [
        path.relative_to(tmp_path)
        for names in ("coupons/test_[clsu]*.py", "events/test_*.py")
        for path in sorted((tmp_path / "tests").glob(names))
        if not NAMES.search(path.read_text())
    ]
    assert len(files) > 10
    options = "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "not postgresql"
    done = run(["-m", "pytest", *options, *files], tmp_path)
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(r"[0-9]{3,} passed", done.stdout)
