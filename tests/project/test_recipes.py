"""The programs of docs/recipes.md, run as they are written against a running service."""

import csv
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from tests.serving import ROOT, running_service

PROGRAMS = dict(
    re.findall(
        r'^```python title="(\w+\.py)"\n(.+?)^```$',
        (ROOT / "docs" / "recipes.md").read_text(),
        re.DOTALL | re.MULTILINE,
    )
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with running_service(tmp_path_factory.mktemp("service"), SHOP_PAGE_SIZE="2") as running:
        yield running


@pytest.fixture
def api(service):
    key = (service.consumer_key, service.consumer_secret)
    with httpx.Client(base_url=service.url, auth=key) as client:
        yield client


@pytest.fixture
def run(service, tmp_path):
    """Return a function: run a program of the page, and return its status and its output."""

    def call(name, *arguments, program=None):
        (tmp_path / name).write_text(program or PROGRAMS[name])
        done = subprocess.run(
            [sys.executable, "-W", "error", name, *map(str, arguments)],
            env=os.environ
            | {
                "SHOP_URL": service.url,
                "SHOP_CONSUMER_KEY": service.consumer_key,
                "SHOP_CONSUMER_SECRET": service.consumer_secret,
            },
            cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.returncode, (done.stdout or done.stderr).strip()

    return call


def order(api, **fields):
    response = api.post("/orders", json={"order": fields}).raise_for_status()
    return response.json()["order"]


def test_page_has_these_programs():
    assert list(PROGRAMS) == [
        "erp_sync.py", "erp_export.py", "erp_customers.py", "newsletter.py", "checkout.py", "refund.py",
    ]  # fmt: skip


def test_orders_are_exported_until_all_are_read(api, run, tmp_path):
    ids = [order(api, line_items=[{"name": "Mug", "price": "4.00"}])["id"] for _ in range(3)]
    status, output = run("erp_sync.py")
    assert status == 0
    assert [int(line.split()[0]) for line in output.splitlines()][-3:] == ids
    assert re.fullmatch(r"\d{4}-.*Z", (tmp_path / "erp-cursor").read_text())
    api.put(f"/orders/{ids[0]}", json={"order": {"status": "completed"}}).raise_for_status()
    status, output = run("erp_sync.py")
    assert f"{ids[0]} " in output
    assert "completed" in output


def test_customers_are_exported_after_each_update(api, run, tmp_path):
    def customer(**fields):
        response = api.post("/customers", json={"customer": fields}).raise_for_status()
        return response.json()["customer"]["id"]

    ids = [customer(email=f"export-{number}@example.com") for number in range(3)]
    status, output = run("erp_export.py")
    assert status == 0
    assert [int(line.split()[0]) for line in output.splitlines()][-3:] == ids
    cursor = tmp_path / "customers-cursor"
    assert re.fullmatch(r"\d{4}-.*Z", cursor.read_text())
    cursor.write_text((datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ"))
    assert run("erp_export.py") == (0, "")
    api.put(f"/customers/{ids[0]}", json={"customer": {"first_name": "Joan"}}).raise_for_status()
    assert f"{ids[0]} export-0@example.com Joan" in run("erp_export.py")[1]


def test_export_reads_each_order_although_orders_move_between_its_pages(api, run):
    """More orders than a page have one time, and each request is followed by a change."""
    orders = [{"line_items": [{"name": "Mug", "price": "4.00"}]}] * 80
    ids = []
    for _ in range(3):
        response = api.post("/orders/bulk", json={"orders": orders}).raise_for_status()
        ids += [each["id"] for each in response.json()["orders"]]
    change = {"order": {"note": "changed between two pages"}}
    proxied = PROGRAMS["erp_sync.py"].replace(
        '    orders = response.json()["orders"]\n',
        '    orders = response.json()["orders"]\n'
        f"    shop.put(f'/orders/{{orders[0][\"id\"]}}', json={change}).raise_for_status()\n"
        "    pages = globals().get('pages', 0) + 1\n"
        "    if pages == 5: break\n",
    )
    status, output = run("erp_sync.py", program=proxied)
    assert status == 0, output
    assert set(ids) <= {int(line.split()[0]) for line in output.splitlines()}


def test_customers_of_an_erp_system_are_created_once_and_updated(api, run, tmp_path):
    account = {"email": "known@example.com", "first_name": "Known"}
    response = api.post("/customers", json={"customer": account}).raise_for_status()
    known = response.json()["customer"]["id"]

    def write(rows):
        with (tmp_path / "customers.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["erp_id", "email", "first_name", "last_name"], *rows])

    rows = [[f"E-{number}", f"erp-{number}@example.com", "Ada", "King"] for number in range(104)]
    write([*rows, ["E-known", "known@example.com", "Grace", "Hopper"]])
    for _ in range(2):
        assert run("erp_customers.py", "customers.csv") == (0, "")
    write([["E-7", "erp-7@example.com", "Joan", "King"], ["E-bad", "no address", "", ""],
           ["E-other", "known@example.com", "Not", "Grace"]])  # fmt: skip
    status, output = run("erp_customers.py", "customers.csv")
    assert (status, [line.split()[0] for line in output.splitlines()]) == (1, ["E-bad", "E-other"])
    query = {"metadata_key": "erp_id", "fields": "id,first_name,metadata.erp_id", "limit": -1}
    stored = api.get("/customers", params=query).json()["customers"]
    names = {each["metadata"]["erp_id"]: (each["id"], each["first_name"]) for each in stored}
    assert len(stored) == len(names) == 105
    assert names["E-known"] == (known, "Grace")
    assert [names["E-6"][1], names["E-7"][1]] == ["Ada", "Joan"]


def test_each_recipient_gets_a_code_once(api, run, tmp_path):
    recipients = [f"reader-{number}@example.com" for number in range(5)]
    (tmp_path / "recipients.txt").write_text("\n".join(recipients))
    for _ in range(2):
        status, output = run("newsletter.py", "recipients.txt")
        assert (status, output[:8]) == (0, "5 codes ")
    with (tmp_path / "newsletter.csv").open() as file:
        rows = list(csv.reader(file))
    assert [address for address, _ in rows] == recipients
    assert len({code for _, code in rows}) == 5
    assert api.get("/coupons/count", params={"q": "spring-"}).json() == {"count": 5}


def test_a_checkout_takes_the_last_use_once(api, run):
    coupon = {"code": "last", "type": "fixed_cart", "amount": "5", "usage_limit": 1}
    api.post("/coupons", json={"coupon": coupon}).raise_for_status()
    status, output = run("checkout.py", "cart-1", "last")
    assert (status, output.splitlines()[0]) == (0, "discount 5.00")
    created = int(output.splitlines()[1].split()[1])
    shown = api.get(f"/orders/{created}").json()["order"]
    assert (shown["status"], shown["total"]) == ("processing", "22.90")
    status, output = run("checkout.py", "cart-2", "last")
    assert status == 1
    assert "limit" in output


def test_a_return_is_refunded_once(api, run):
    line = {"name": "Mug", "price": "4.00"}
    paid = order(api, status="completed", line_items=[line])["id"]
    for _ in range(2):
        assert run("refund.py", paid, "1.50", "R-1")[0] == 0
    refunds = api.get(f"/orders/{paid}/refunds").json()["order_refunds"]
    assert [refund["amount"] for refund in refunds] == ["1.50"]
    status, output = run("refund.py", paid, "9.00", "R-2")
    assert status == 1
    assert "2.50" in output
