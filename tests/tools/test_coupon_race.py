"""``qa/coupon_race`` against this service, and against a shop with a race."""

import os
import re
import subprocess
import sys

import pytest

from qa.cluster.client import Client
from tests.serving import ROOT, reserved_port, running_service
from tests.tools.shop_server import KEY, SECRET, Mode, running_shop

CLIENTS, LIMIT = 20, 5
NOTHING = {"coupons": {}, "products": {}, "orders": {}}


def race(url, adapter, *options, key=KEY, secret=SECRET):
    """Run the program. Return its exit status, its output with a fixed code, and its errors."""
    ours = {"COUPON_RACE_KEY": key, "COUPON_RACE_SECRET": secret}
    numbers = ["--clients", str(CLIENTS), "--limit", str(LIMIT)]
    done = subprocess.run(
        [sys.executable, "qa/coupon_race", url, "--adapter", adapter, *numbers, *options],
        cwd=ROOT,
        env=os.environ | ours,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done.returncode, re.sub("race-[0-9a-f]{12}", "CODE", done.stdout), done.stderr


def plan(url, creates, then="keeps"):
    return (
        f"{url}: creates the coupon CODE with {LIMIT} uses and up to {CLIENTS} {creates} at once, "
        f"and {then} them\n"
    )


def counts(output):
    """The line about the responses, and the verdict."""
    lines = output.splitlines()
    (number,) = (i for i, line in enumerate(lines) if line.startswith("limit "))
    return lines[number - 1], lines[number]


def overlap(output):
    found = re.search(
        rf"^{CLIENTS} clients, at most (\d+) requests at the same time$", output, re.M
    )
    return int(found[1])


REJECTED = CLIENTS - LIMIT
EXACT = (
    f"{LIMIT} acknowledged, {REJECTED} rejected, 0 without a result; the shop counts {LIMIT} uses",
    f"limit {LIMIT}, granted {LIMIT}: exact",
)
OWN_ADAPTERS = ("shop-api", "shop-api-orders", "shop-api-legacy")
WOOCOMMERCE = "orders, of a hidden product that it creates as well,"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service that all tests use. Each leaves it without coupons and orders."""
    with running_service(tmp_path_factory.mktemp("shop"), WEB_THREADS="8") as service:
        yield service


def client_of(service):
    return Client(int(service.url.rpartition(":")[2]), service)


def contents(client):
    """The coupons, the orders and the uses that the service has."""
    found = {}
    for path, name in {
        "/coupons": "coupons",
        "/coupons/trash": "coupons",
        "/orders": "orders",
        "/orders/trash": "orders",
        "/redemptions?filter[status]=reserved": "redemptions",
        "/redemptions?filter[status]=confirmed": "redemptions",
    }.items():
        found[path] = client.get(path).body[name]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("adapter", OWN_ADAPTERS)
def test_service_is_exact_and_clean_leaves_nothing(service, adapter):
    client = client_of(service)
    key = {"key": service.consumer_key, "secret": service.consumer_secret}
    status, output, errors = race(service.url, adapter, "--clean", **key)
    assert (status, errors) == (0, "")
    creates = "redemptions" if adapter == "shop-api" else "orders"
    assert output.startswith(plan(service.url, creates, "removes"))
    assert counts(output) == EXACT
    assert 1 <= overlap(output) <= CLIENTS
    assert output.endswith("Removed. The released redemptions remain as a record.\n")
    assert not any(contents(client).values())


@pytest.mark.slow
@pytest.mark.parametrize("adapter", OWN_ADAPTERS)
@pytest.mark.parametrize("kind", ["limit", "budget"])
def test_codes_of_a_campaign_are_exact_together(service, adapter, kind):
    client = client_of(service)
    key = {"key": service.consumer_key, "secret": service.consumer_secret}
    status, output, errors = race(service.url, adapter, "--campaign", kind, "--clean", **key)
    assert (status, errors) == (0, "")
    assert counts(output) == EXACT
    assert client.get("/campaigns").body == {"campaigns": []}
    assert not any(contents(client).values())


def test_other_shops_have_no_campaigns():
    status, _, errors = race("http://127.0.0.1:9", "medusa", "--campaign", "limit")
    assert status == 2
    assert "medusa has no campaigns" in errors


@pytest.mark.slow
def test_service_is_exact_with_the_api_of_woocommerce(service):
    key = {"key": service.consumer_key, "secret": service.consumer_secret}
    status, output, errors = race(service.url, "woocommerce", "--clean", **key)
    assert (status, errors) == (0, "")
    assert counts(output) == EXACT
    assert output.endswith("Removed.\n")
    assert not any(contents(client_of(service)).values())


@pytest.mark.slow
def test_service_keeps_orders_without_clean(service):
    client = client_of(service)
    key = {"key": service.consumer_key, "secret": service.consumer_secret}
    status, output, _ = race(service.url, "shop-api-orders", **key)
    assert (status, *counts(output)) == (0, *EXACT)
    assert output.splitlines()[-1] == EXACT[1]
    (coupon,) = client.get("/coupons").body["coupons"]
    orders = client.get("/orders").body["orders"]
    assert (coupon["usage_limit"], coupon["usage_count"], len(orders)) == (LIMIT, LIMIT, LIMIT)
    assert {line["code"] for each in orders for line in each["coupon_lines"]} == {coupon["code"]}
    for order in orders:
        client.send("DELETE", f"/orders/{order['id']}?force=true")
    client.send("DELETE", f"/coupons/{coupon['id']}?force=true")


@pytest.mark.slow
@pytest.mark.parametrize("adapter", OWN_ADAPTERS)
def test_service_with_wrong_secret(service, adapter):
    wrong = "cs_" + "0" * 40
    status, output, errors = race(
        service.url, adapter, "--clean", key=service.consumer_key, secret=wrong
    )
    assert status == 2
    path = "/wc-api/v3/coupons" if adapter == "shop-api-legacy" else "/coupons"
    assert errors.startswith(f"coupon_race: 401 for POST {path}: ")
    assert wrong not in output + errors
    assert service.consumer_key not in output + errors
    assert not any(contents(client_of(service)).values())


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("mode", "granted", "line"),
    [
        pytest.param(
            Mode(locks=False, counts_each=False),
            CLIENTS,
            f"{CLIENTS} acknowledged, 0 rejected, 0 without a result; the shop counts 1 uses",
            id="uses-not-counted",
        ),
        pytest.param(
            Mode(locks=False, responds_above_limit=False),
            CLIENTS,
            f"{LIMIT} acknowledged, 0 rejected, {CLIENTS - LIMIT} without a result; "
            f"the shop counts {CLIENTS} uses",
            id="uses-not-acknowledged",
        ),
    ],
)
def test_race_is_found(mode, granted, line):
    with running_shop(mode, CLIENTS) as shop:
        url = f"http://127.0.0.1:{shop.port}"
        status, output, errors = race(url, "woocommerce", "--clean")
        assert (status, errors) == (1, "")
        assert output == (
            plan(url, WOOCOMMERCE, "removes")
            + f"{CLIENTS} clients, at most {CLIENTS} requests at the same time\n{line}\n"
            f"limit {LIMIT}, granted {granted}: {granted - LIMIT} too many\nRemoved.\n"
        )
        assert shop.records == NOTHING


@pytest.mark.slow
def test_race_is_reported_if_nothing_can_be_removed():
    with running_shop(Mode(locks=False, removable=False), CLIENTS) as shop:
        url = f"http://127.0.0.1:{shop.port}"
        status, output, errors = race(url, "woocommerce", "--clean")
        assert status == 1
        assert output.endswith(f"limit {LIMIT}, granted {CLIENTS}: {CLIENTS - LIMIT} too many\n")
        assert errors.startswith("coupon_race: 403 for DELETE /wp-json/wc/v3/orders/")


@pytest.mark.slow
def test_shop_without_race_is_exact():
    with running_shop(Mode(), CLIENTS) as shop:
        status, output, errors = race(f"http://127.0.0.1:{shop.port}/", "woocommerce", "--clean")
        assert (status, counts(output), errors) == (0, EXACT, "")
        assert shop.records == NOTHING


@pytest.mark.slow
def test_records_are_kept_without_clean():
    with running_shop(Mode(), CLIENTS) as shop:
        url = f"http://127.0.0.1:{shop.port}"
        status, output, _ = race(url, "woocommerce")
        assert (status, output.partition("\n")[0] + "\n") == (0, plan(url, WOOCOMMERCE))
        assert [len(records) for records in shop.records.values()] == [1, 1, CLIENTS]


@pytest.mark.slow
def test_shop_that_accepts_no_orders():
    with running_shop(Mode(available=False), CLIENTS) as shop:
        status, output, errors = race(f"http://127.0.0.1:{shop.port}", "woocommerce", "--clean")
        assert (status, errors) == (2, "")
        assert (
            f"limit {LIMIT}, granted 0: {LIMIT} too few\n  {CLIENTS} times: 503 for POST" in output
        )
        assert shop.records == NOTHING


@pytest.mark.slow
def test_other_host_needs_yes():
    with running_shop(Mode(), CLIENTS) as shop:
        url = f"http://127.1:{shop.port}"  # only a resolver knows that this is a loopback address
        assert race(url, "woocommerce") == (
            2,
            plan(url, WOOCOMMERCE),
            "This is not a loopback address. Repeat the command with --yes.\n",
        )
        assert shop.requests == 0
        status, output, errors = race(url, "woocommerce", "--yes")
        assert (status, counts(output), errors) == (0, EXACT, "")


@pytest.mark.slow
def test_wrong_key_is_not_printed():
    with running_shop(Mode(), CLIENTS) as shop:
        url = f"http://127.0.0.1:{shop.port}"
        assert race(url, "woocommerce", "--clean", key="ck_wrong", secret="cs_wrong") == (
            2,
            plan(url, WOOCOMMERCE, "removes"),
            'coupon_race: 401 for POST /wp-json/wc/v3/coupons: {"message": "Unknown key: ***"}\n',
        )
        assert shop.records == NOTHING


def test_shop_that_does_not_run():
    with reserved_port() as reserved:
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        assert race(url, "shop-api") == (
            2,
            plan(url, "redemptions"),
            f"coupon_race: no connection to {url}: [Errno 111] Connection refused\n",
        )


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("ftp://127.0.0.1", (), "URL must be an http or https URL without credentials and query"),
        ("http://a:b@127.0.0.1", (), "URL must be an http or https URL without credentials"),
        ("http://127.0.0.1:port", (), "URL must be an http or https URL"),
        ("http://127.0.0.1:65536", (), "URL must be an http or https URL"),
        ("http://127.0.0.1?a=b", (), "URL must be an http or https URL"),
        ("http://127.0.0.1", ("--limit", "0"), "--limit must be at least 1"),
        ("http://127.0.0.1", ("--limit", "20"), "--clients greater than that, at most 500"),
        ("http://127.0.0.1", ("--clients", "501"), "--clients greater than that, at most 500"),
        ("http://127.0.0.1", ("--key", ""), "set COUPON_RACE_KEY and COUPON_RACE_SECRET"),
        ("http://127.0.0.1", ("--adapter", "paper"), "invalid choice: 'paper'"),
    ],
)
def test_usage_errors(url, options, message):
    status, output, errors = race(url, "shop-api", *options)
    assert (status, output) == (2, "")
    assert errors.startswith("usage: coupon_race")
    assert message in errors
