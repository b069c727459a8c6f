"""``demo``: the same seed creates the same shop (operations)."""

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from flask_migrate import upgrade

from app.services.maintenance.demo import loading as demo
from app.services.maintenance.demo.shop import DemoShop
from tests.api_client import Client
from tests.commands import succeed
from tests.schemas import create_tables

ARGS = ["demo", "--customers", "30", "--coupons", "20", "--orders", "60", "--now", "2026-01-01"]


@pytest.fixture
def demo_shop(make_app, client_for, tmp_path):
    """Return a function: a client of a shop of its own, filled by the demo with a seed."""
    numbers = iter(range(100))

    def make(seed):
        url = f"sqlite:///{tmp_path}/demo-{next(numbers)}.db"
        create_tables(url)
        app = make_app(DATABASE_URL=url)
        result = succeed(app, *ARGS, "--seed", seed)
        return client_of(app, result)

    return make


def client_of(app, result):
    """A client with the key that a demo printed."""
    words = result.stdout.split()
    key = type("Key", (), {})()
    key.consumer_key = next(word for word in words if word.startswith("ck_"))
    key.consumer_secret = next(word for word in words if word.startswith("cs_"))
    return Client(app, key)


def everything(client):
    """What the shop answers, without the account that the key belongs to."""
    every = {"filter[limit]": "-1"}
    return [
        client.http.get(path, query_string=every, headers=authorized(client)).get_json()
        for path in ("/customers", "/orders")
    ] + [client.get("/coupons").get_json()]


def authorized(client):
    return {"Authorization": client.get("/healthz").request.headers["Authorization"]}


DETAILS = [
    "/redemptions", "/campaigns", "/coupons/batches", "/orders/1/notes", "/orders/1/refunds",
    "/webhooks", "/webhooks/1/deliveries", "/customers/1/downloads", "/customers/1/metadata",
    "/coupons/9/metadata", "/orders/1/metadata",
]  # fmt: skip


def details(client):
    """Further records of the shop, with all of their times."""
    return {path: client.get(path, {"filter[limit]": "-1"}).get_json() for path in DETAILS}


@pytest.mark.slow
def test_demo_of_one_seed_is_one_shop(demo_shop, monkeypatch):
    first = demo_shop("7")
    monkeypatch.setattr(demo, "CHUNK", 11)  # where a run is interrupted does not matter either
    second = demo_shop("7")
    assert everything(first) == everything(second)
    assert details(first) == details(second)
    (refund,) = details(first)["/orders/1/refunds"]["order_refunds"]
    assert refund["created_at"] < "2026-01-01"


@pytest.mark.slow
def test_demo_of_another_seed_is_another_shop(demo_shop):
    assert everything(demo_shop("7")) != everything(demo_shop("8"))


def test_new_order_is_not_completed_in_the_future():
    present = datetime(2026, 11, 1, tzinfo=UTC)
    run = {"seed": 7, "present": present, "first_order": 1, "orders": 30_000}
    shop = DemoShop(run, {}, has_example=False)
    orders = [shop.order(number) for number in range(29_970, 30_000)]
    assert {order["status"] for order in orders} >= {"completed", "processing"}
    assert [order for order in orders if order["updated_at"] > present] == []


def test_demo_adds_up(demo_shop):
    client = demo_shop("7")
    customers, orders, coupons = everything(client)
    unlimited = [coupon for coupon in coupons["coupons"] if not coupon["usage_limit"]]
    assert len(unlimited) > 1
    for coupon in unlimited:  # others were used before the demo begins
        used = {"filter[coupon_id]": coupon["id"], "filter[status]": "confirmed"}
        counted = client.get("/redemptions/count", used).get_json()
        assert counted == {"count": coupon["usage_count"]}
    assert len(customers["customers"]) == 30
    assert len(orders["orders"]) == 60
    registered = {row["id"]: row["created_at"] for row in customers["customers"]}
    for order in orders["orders"]:
        amounts = {key: Decimal(order[key]) for key in order if key.startswith(("total", "sub"))}
        lines = order["line_items"]
        assert sum(Decimal(line["subtotal"]) for line in lines) == amounts["subtotal"]
        assert (
            sum(Decimal(line["total"]) for line in lines)
            == amounts["subtotal"] - amounts["total_discount"]
        )
        assert sum(Decimal(line["total"]) for line in order["tax_lines"]) == amounts["total_tax"]
        assert amounts["total"] == (
            amounts["subtotal"]
            - amounts["total_discount"]
            + amounts["total_tax"]
            + amounts["total_shipping"]
        )
        if order["customer_id"]:
            assert registered[order["customer_id"]] <= order["created_at"]
    newest_first = [order["id"] for order in orders["orders"]]
    assert newest_first == sorted(newest_first, reverse=True)


def test_orders_have_the_addresses_of_their_accounts(demo_shop):
    customers, orders, _ = everything(demo_shop("7"))
    by_id = {row["id"]: row for row in customers["customers"]}
    of_accounts = [order for order in orders["orders"] if order["customer_id"]]
    assert of_accounts
    for order in of_accounts:
        account = by_id[order["customer_id"]]
        assert order["billing_address"] == account["billing_address"]
        assert order["shipping_address"] == account["shipping_address"]


def test_demo_leaves_orders_of_the_shop_alone(admin):
    lines = [{"name": "Mug", "quantity": 1, "subtotal": "10.00", "total": "10.00"}]
    order = admin.post("/orders", {"order": {"line_items": lines}}).get_json()["order"]
    succeed(admin.app, *ARGS)
    path = f"/orders/{order['id']}"
    assert admin.get(path).get_json()["order"] == order
    assert admin.get(f"{path}/notes").get_json() == {"order_notes": []}
    assert admin.get(f"{path}/refunds").get_json() == {"order_refunds": []}


@pytest.mark.slow
@pytest.mark.parametrize("is_new", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_demo_has_the_records_of_the_examples(make_app, fresh_database_url, is_new):
    """Each GET of both OpenAPI documents works as it is, in a new shop or after ``make run``."""
    app = make_app(DATABASE_URL=fresh_database_url)
    with app.app_context():
        upgrade()
    commands = [ARGS] if is_new else [["keys", "create", "--role=administrator"], ARGS]
    results = [app.test_cli_runner().invoke(args=args) for args in commands]
    client = client_of(app, results[-1])
    statuses = {}
    for document in ("/openapi.json", "/wc-api/v3/openapi.json"):
        for path, item in client.get(document).get_json()["paths"].items():
            if "get" in item:
                parameters = item["get"].get("parameters", [])
                ids = {each["name"]: each["example"] for each in parameters if each["in"] == "path"}
                # What names a person, or a second account, has no example that fits every shop.
                if not path.startswith("/persons/") and not path.endswith("/merge"):
                    statuses[path.format(**ids)] = client.get(path.format(**ids)).status_code
    assert len(statuses) > 50
    assert {path: status for path, status in statuses.items() if status != 200} == {}


def test_demo_has_its_example_coupons_in_a_shop_with_coupons(admin):
    for code in ("first", "second", "demo-vip"):
        admin.post("/coupons", {"coupon": {"code": code}})
    succeed(admin.app, *ARGS)
    percent = admin.get("/coupons/code/demo-percent").get_json()["coupon"]
    assert (percent["type"], percent["amount"]) == ("percent", "10.00")
    assert percent["usage_count"] > 0
    own = admin.get("/coupons/code/demo-vip").get_json()["coupon"]  # was there before
    assert (own["type"], own["amount"]) == ("fixed_cart", "0.00")
    uses = {"filter[code]": "demo-percent"}
    assert admin.get("/redemptions/count", uses).get_json()["count"] > 10
    (batch,) = admin.get("/coupons/batches").get_json()["batches"]
    assert batch["count"] == 5


def test_demo_prints_the_numbers_of_its_records(app):
    result = app.test_cli_runner().invoke(args=ARGS)
    loaded = [line.split() for line in result.stderr.splitlines() if line.endswith("loaded")]
    assert [name for name, *_ in loaded] == ["customers:", "coupons:", "orders:"]
    assert all(int(number.replace(",", "")) > 0 for _, number, _ in loaded)


def test_demo_keeps_an_account_that_the_examples_name(admin, make_customer):
    mine = make_customer(email="Grace@example.com", username="Grace")
    succeed(admin.app, *ARGS)
    assert admin.get("/customers/email/grace@example.com").get_json()["customer"] == mine


def run(app, *args):
    """Run the demo; return its exit code and what it printed as an error."""
    result = app.test_cli_runner().invoke(args=[*ARGS, *args])
    return result.exit_code, result.stderr.rpartition("Error: ")[2]


def test_second_demo_says_what_to_do(admin):
    assert run(admin.app)[0] == 0
    assert run(admin.app) == (
        1,
        "The database already contains a demo shop. Use --add to add another one.\n",
    )
    assert run(admin.app, "--seed", "2")[0] == 1
    assert admin.get("/orders").headers["X-Total"] == "60"
    assert run(admin.app, "--add")[0] == 0
    assert admin.get("/orders").headers["X-Total"] == "120"
    assert admin.get("/customers").headers["X-Total"] == "60"


@pytest.mark.parametrize(
    "part",
    ["order", *(pytest.param(part, marks=pytest.mark.slow) for part in ("customer", "coupon"))],
)
def test_interrupted_demo_is_resumed(demo_shop, make_app, tmp_path, monkeypatch, part):
    """What was committed before remains, and the shop is the one of a run without interruption."""
    monkeypatch.setattr(demo, "CHUNK", 7)
    whole = everything(demo_shop("7"))
    url = f"sqlite:///{tmp_path}/interrupted.db"
    create_tables(url)
    app = make_app(DATABASE_URL=url)
    made = getattr(DemoShop, part)

    def interrupt(shop, number):
        if number == 10:
            raise KeyboardInterrupt
        return made(shop, number)

    index = ("customer", "coupon", "order").index(part)
    parts = list(demo.PARTS)
    parts[index] = parts[index]._replace(make=interrupt)
    with monkeypatch.context() as patched:
        patched.setattr(demo, "PARTS", parts)
        assert run(app, "--seed", "7")[0] == 1
    message = (
        "A demo run was interrupted. Resume it with `.venv/bin/shop-api demo --customers 30 "
        "--coupons 20 --orders 60 --seed 7 --now 2026-01-01T00:00:00+00:00`, "
        "or use --add to load another shop.\n"
    )
    assert run(app, "--seed", "8") == (1, message)
    result = succeed(app, *ARGS, "--seed", "7")
    assert "Resuming the interrupted run." in result.stderr
    assert everything(client_of(app, result)) == whole
    assert run(app, "--seed", "7")[0] == 1  # it is finished now


@pytest.mark.one_database
def test_another_demo_beside_coupons_that_no_longer_apply(admin):
    assert run(admin.app, "--seed", "7")[0] == 0
    for coupon in admin.get("/coupons", {"filter[q]": "demo-"}).json["coupons"]:
        changes = {"usage_limit": 1} if coupon["code"] == "demo-percent" else {"active": False}
        assert admin.put(f"/coupons/{coupon['id']}", {"coupon": changes}).status_code == 200
    assert run(admin.app, "--seed", "8", "--add")[0] == 0
    assert admin.get("/orders/count").json["count"] == 120


@pytest.mark.one_database
def test_demo_beside_a_coupon_of_the_shop_that_does_not_apply(admin):
    coupon = {"code": "demo-percent", "active": False}
    assert admin.post("/coupons", {"coupon": coupon}).status_code == 201
    assert run(admin.app, "--seed", "7")[0] == 0
    carts = {"filter[reference]": "cart-1"}
    assert admin.get("/redemptions/count", carts).json["count"] == 0


def test_demo_leaves_the_customers_of_the_shop_alone(make_app, admin, make_customer):
    mine = make_customer()
    app = admin.app
    succeed(app, *ARGS)
    assert admin.get(f"/customers/{mine['id']}").get_json() == {"customer": mine}


def test_demo_without_a_schema_says_what_to_do(make_app, fresh_database_url):
    result = make_app(DATABASE_URL=fresh_database_url).test_cli_runner().invoke(args=ARGS)
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: The database schema is not current. Run: .venv/bin/shop-api db upgrade\n",
    )


# --- plausible records ---

FIRST_DIGITS = {
    "DE": "+49 ", "AT": "+43 ", "CH": "+41 ", "FR": "+33 ", "IT": "+39 ", "ES": "+34 ",
    "PL": "+48 ", "DK": "+45 ", "GB": "+44 ", "US": "+1 ", "CA": "+1 ",
}  # fmt: skip


def test_telephone_numbers_fit_the_country(demo_shop):
    customers = demo_shop("7").get("/customers", {"filter[limit]": "-1"}).get_json()["customers"]
    addresses = [customer["billing_address"] for customer in customers]
    assert len({address["country"] for address in addresses}) > 3
    for address in addresses:
        assert address["phone"].startswith(FIRST_DIGITS[address["country"]])
        assert "#" not in address["phone"]


def test_orders_have_the_currency_of_the_shop(make_app, tmp_path):
    url = f"sqlite:///{tmp_path}/demo.db"
    create_tables(url)
    app = make_app(DATABASE_URL=url, SHOP_CURRENCY="USD")
    result = app.test_cli_runner().invoke(args=[*ARGS, "--seed", "7"])
    orders = client_of(app, result).get("/orders", {"filter[limit]": "-1"}).get_json()["orders"]
    assert {order["currency"] for order in orders} == {"USD"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--now", "9999-12-31"], "--now: must be between the years 1000 and 9900."),
        (["--orders", "9" * 20], "A number is above 999999999999999."),
        (["--seed", "-" + "9" * 20], "A number is above 999999999999999."),
    ],
)
def test_numbers_and_times_that_cannot_be_stored(app, options, message):
    result = app.test_cli_runner().invoke(args=["demo", *options])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1].endswith(message)
    succeed(app, *ARGS, "--orders", "0")
