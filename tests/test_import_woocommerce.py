"""``import woocommerce``: the imported records of a shop (migration 1)."""

import json
import os
import signal
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

import pytest
from conftest import Client
from sqlalchemy import func, select, update

from app.auth.encryption import decrypt
from app.db.read_pool import fetch
from app.db.session import db, run_in_transaction
from app.imports import order_steps, woocommerce
from app.models import (
    Coupon,
    DownloadPermission,
    ImportedRecord,
    Order,
    OrderNote,
    Redemption,
    User,
    Webhook,
)
from tests.dumps.dialects import DIALECTS, write_dump
from tests.dumps.schemas import LAYOUTS
from tests.dumps.shop import FIRST_COUPON, FIRST_ORDER, KEY, SECRET, Shop, cents
from tests.schemas import create_tables

ISO = "%Y-%m-%dT%H:%M:%SZ"


@dataclass
class ImportedKey:
    """The key of an ERP system at the old server."""

    consumer_key: str = KEY
    consumer_secret: str = SECRET


@pytest.fixture
def shop_file(tmp_path):
    """Return a function: the name of a dump of a shop."""

    def write(shop, dialect="mysqldump", name="shop.sql", **options):
        write_dump(tmp_path / name, shop, dialect, **options)
        return tmp_path / name

    return write


@pytest.fixture
def import_dump(app, tmp_path):
    """Return a function: import a file; return the printed table, the lines, and the result."""

    def run(source, *options, fails=False):
        report = tmp_path / "report.ndjson"
        result = app.test_cli_runner().invoke(
            args=["import", "woocommerce", str(source), "--report", str(report), *options]
        )
        assert (result.exit_code != 0) == fails, result.output
        lines = [json.loads(line) for line in report.read_text().splitlines()]
        return Printed(result.output, table_of(result.stdout), lines)

    return run


@dataclass
class Printed:
    output: str
    table: dict
    lines: list

    def row(self, label):
        """Read, created, updated, unchanged, altered, left out."""
        return self.table[label]


def table_of(output):
    rows = {}
    for line in output.splitlines():
        words = line.replace(",", "").split()
        if len(words) > 7 and all(word.isdigit() for word in words[-7:-1]):
            rows[" ".join(words[:-7])] = [int(word) for word in words[-7:-1]]
    return rows


@pytest.fixture
def erp(app):
    """The client of the ERP system, with its old key."""
    return Client(app, ImportedKey())


def everything(client):
    """What the legacy API answers about all records."""
    paths = (
        "/wc-api/v3/orders?filter[limit]=-1",
        "/wc-api/v3/customers?filter[limit]=-1&filter[role]=all",
        "/wc-api/v2/coupons?filter[limit]=-1",
    )
    answers = [client.http.get(path, headers=headers_of(client)).get_json() for path in paths]
    assert all("errors" not in answer for answer in answers), answers
    return answers


def headers_of(client):
    return {"Authorization": client.get("/healthz").request.headers["Authorization"]}


def rows_of(model):
    """All rows of a table."""
    rows = fetch(select(model.__table__).order_by(*model.__table__.primary_key.columns))
    return [dict(row._mapping) for row in rows]


@pytest.fixture(autouse=True)
def _context(app):
    """Let the tests look into the tables."""
    with app.app_context():
        yield


def expected_order(shop, order):
    """The order of a made-up shop, as its old server showed it."""
    number = order["id"] - FIRST_ORDER
    first = number * 4 + 1
    parts = dict(shop.address(order["id"], f"buyer{order['id'] % 90}@example.net"))
    total = order["subtotal"] - order["discount"]
    unit = Decimal(total) / order["quantity"]
    created = order["created"].strftime(ISO)
    return {
        "id": order["id"],
        "order_number": str(order["id"]),
        "order_key": order["key"],
        "created_at": created,
        "updated_at": created,
        "completed_at": (order["created"] + timedelta(hours=5)).strftime(ISO)
        if order["status"] == "completed"
        else None,
        "status": order["status"],
        "currency": "EUR",
        "total": cents(order["total"]),
        "subtotal": cents(order["subtotal"]),
        "total_line_items_quantity": order["quantity"],
        "total_tax": cents(order["tax"] + order["shipping_tax"]),
        "total_shipping": cents(order["shipping"]),
        "cart_tax": cents(order["tax"]),
        "shipping_tax": cents(order["shipping_tax"]),
        "total_discount": cents(order["discount"]),
        "shipping_methods": "Flat rate",
        "payment_details": {
            "method_id": "bacs", "method_title": "Bank transfer", "paid": order["paid"],
        },
        "billing_address": parts,
        "shipping_address": {
            key: value for key, value in parts.items() if key not in {"email", "phone"}
        },
        "note": "Ring twice" if order["id"] % 5 == 0 else "",
        "customer_ip": "192.0.2.7",
        "customer_user_agent": 'Mozilla/5.0 (it\'s "quoted")',
        "customer_id": order["customer"],
        "line_items": [
            {
                "id": first,
                "subtotal": cents(order["subtotal"]),
                "subtotal_tax": cents(order["subtotal"] * 19 // 100),
                "total": cents(total),
                "total_tax": cents(order["tax"]),
                "price": str((unit + Decimal("0.5")).to_integral_value("ROUND_FLOOR").scaleb(-2)),
                "quantity": order["quantity"],
                "tax_class": None if shop.layout == "2.6" else "",
                "name": f"Tea {order['product'] - 10}",
                "product_id": order["product"],
                "sku": f"SKU-{order['product'] - 10}",
                "meta": [
                    {"key": "pa_size", "label": "Größe", "value": "large"},
                    {"key": "Gravur", "label": "Gravur", "value": "Für Dich"},
                ],
            }
        ],
        "shipping_lines": [
            {
                "id": first + 1, "method_id": "flat_rate", "method_title": "Flat rate",
                "total": cents(order["shipping"]),
            }
        ],
        "tax_lines": [
            {
                "id": first + 2, "rate_id": 1, "code": "DE-VAT-1", "title": "VAT",
                "total": cents(order["tax"] + order["shipping_tax"]), "compound": False,
            }
        ],
        "fee_lines": [],
        "coupon_lines": [
            {"id": first + 3, "code": order["coupon"], "amount": cents(order["discount"])}
        ] if order["coupon"] else [],
    }  # fmt: skip


# --- the records of each layout, in each form of a dump ---

each_layout = pytest.mark.parametrize(
    "layout",
    [
        layout if layout == "3.5" else pytest.param(layout, marks=pytest.mark.one_database)
        for layout in LAYOUTS
    ],
)
"""What is written is the same for each layout."""


@each_layout
def test_orders_are_those_of_the_old_server(shop_file, import_dump, erp, layout):
    shop = Shop(layout=layout)
    printed = import_dump(shop_file(shop))
    webhook = [] if layout == "2.6" else [("wc_webhooks", 3, "left_out")]
    assert [(line["table"], line["id"], line["what"]) for line in printed.lines] == webhook
    assert printed.row("orders") == [60, 60, 0, 0, 0, 0]
    orders = everything(erp)[0]["orders"]
    expected = {order["id"]: expected_order(shop, order) for order in shop.each_order()}
    assert len(orders) == 60
    for order in orders:
        order.pop("customer")
        assert order == expected[order["id"]]


@each_layout
def test_customers_and_coupons_are_those_of_the_old_server(shop_file, import_dump, erp, layout):
    shop = Shop(layout=layout)
    import_dump(shop_file(shop))
    _, customers, coupons = everything(erp)
    assert [each["id"] for each in customers["customers"]] == [1, *range(2, 22)]
    orders = [each for each in shop.each_order() if each["customer"] == 3]
    paid = [each for each in orders if each["status"] in {"completed", "processing"}]
    third = customers["customers"][2]
    assert third["billing_address"] == dict(shop.address(3, "user3@example.com"))
    assert (third["username"], third["email"], third["role"]) == (
        "user1", "user1@example.com", "customer",
    )  # fmt: skip
    assert (third["orders_count"], third["last_order_id"], third["total_spent"]) == (
        len(orders),
        max(each["id"] for each in orders),
        cents(sum(each["total"] for each in paid)),
    )
    assert third["last_update"] == "2021-03-01T09:52:00Z"
    by_id = {each["id"]: each for each in coupons["coupons"]}
    fourth = by_id[FIRST_COUPON + 3]
    uses = sum(1 for key, _ in shop.coupon_meta(3) if key == "_used_by")
    assert fourth | {"updated_at": None} == {
        "id": FIRST_COUPON + 3,
        "code": "code-3",
        "type": "fixed_cart",
        "created_at": shop.time(3).strftime(ISO),
        "updated_at": None,
        "amount": "8.50",
        "individual_use": False,
        "product_ids": [],
        "exclude_product_ids": [],
        "usage_limit": None,
        "usage_limit_per_user": None,
        "limit_usage_to_x_items": 0,
        "usage_count": uses,
        "expiry_date": "2030-12-31T00:00:00Z",
        "enable_free_shipping": False,
        "product_category_ids": [],
        "exclude_product_category_ids": [],
        "exclude_sale_items": False,
        "minimum_amount": "20.00",
        "maximum_amount": "0.00",
        "customer_emails": ["*@example.com", "ä.ö@example.com"],
        "description": "It's campaign 3",
    }
    assert by_id[FIRST_COUPON + 4]["product_category_ids"] == [3, 4]


@pytest.mark.one_database
@pytest.mark.parametrize(
    "layout", ["3.5", *(pytest.param(layout, marks=pytest.mark.slow) for layout in ("2.6", "8"))]
)
def test_every_form_of_a_dump_is_the_same_shop(shop_file, make_app, tmp_path, settings, layout):
    found = []
    for number, dialect in enumerate(DIALECTS):
        name = "shop.sql.gz" if dialect == "mariadb-dump" else "shop.sql"
        file = shop_file(Shop(layout=layout), dialect, name)
        url = f"sqlite:///{tmp_path}/{number}.db"
        create_tables(url)
        other = make_app(DATABASE_URL=url)
        with other.app_context():
            result = other.test_cli_runner().invoke(args=["import", "woocommerce", str(file)])
        assert result.exit_code == 0, result.output
        found.append(everything(Client(other, ImportedKey())))
    assert all(each == found[0] for each in found)
    assert len(found[0][0]["orders"]) == 60


def test_text_of_latin1_tables(shop_file, import_dump, erp):
    shop = Shop()
    import_dump(shop_file(shop, charset="latin1"))
    order = everything(erp)[0]["orders"][0]
    assert order["billing_address"] == dict(
        shop.address(order["id"], f"buyer{order['id'] % 90}@example.net")
    )


def test_dump_in_latin1_bytes(shop_file, import_dump, erp, tmp_path):
    file = shop_file(Shop(orders=0, products=0), "phpmyadmin")
    text = file.read_text()
    text = text.replace("李", "Li").replace("東京", "Tokyo").replace("Łukasz", "Lukas")
    text = text.replace("Kraków", "Krakau €")
    file.write_bytes(text.replace("NAMES utf8mb4", "NAMES latin1").encode("cp1252"))
    import_dump(file)
    customers = everything(erp)[1]["customers"]
    assert {each["billing_address"]["city"] for each in customers} == {
        "Köln", "Zürich", "Krakau €", "São Paulo", "New York", "Tokyo",
    }  # fmt: skip


def test_order_notes_refunds_and_downloads(shop_file, import_dump, erp):
    shop = Shop(offset=-5.5)
    printed = import_dump(shop_file(shop))
    refunded = [order for order in shop.each_order() if order["status"] == "refunded"]
    assert f"Refunded: {cents(500 * len(refunded))} EUR" in printed.output
    order = refunded[0]
    notes = erp.get(f"/orders/{order['id']}/notes").get_json()["order_notes"]
    number, created = order["id"] - FIRST_ORDER + 1, order["created"].strftime(ISO)
    assert notes == [
        {"id": number, "created_at": created, "note": "Note 0: it's\npaid; \\ö",
         "customer_note": number % 4 == 0},
        {"id": notes[1]["id"], "created_at": created, "customer_note": False,
         "note": f"Refunded 5.00 EUR (refund {order['id'] + 10_000_000}): broken"},
    ]  # fmt: skip
    bought = [
        (number, order)
        for number, order in enumerate(shop.each_order(), 1)
        if order["product"] == 10 and order["customer"]
    ]
    assert {row["order_id"] for row in rows_of_downloads()} >= {order["id"] for _, order in bought}
    number, order = next(
        pair for pair in bought if pair[1]["status"] in {"processing", "completed"}
    )
    path = f"/wc-api/v2/customers/{order['customer']}/downloads"
    download = next(
        each for each in erp.get(path).get_json()["downloads"] if each["order_id"] == order["id"]
    )
    assert download == {
        "download_url": "https://old.example/shop/?download_file=10&order="
        f"{order['key']}&email=buyer%2B1%40example.net&key=f1",
        "download_id": "f1",
        "product_id": 10,
        "download_name": "Guide 0",
        "order_id": order["id"],
        "order_key": order["key"],
        "downloads_remaining": "" if number % 3 else "4",
        "access_expires": None if number % 2 else "2035-01-01T00:00:00Z",
        "file": {"name": "Guide 0", "file": "https://old.example/g.pdf"},
    }


def rows_of_downloads():
    return rows_of(DownloadPermission)


@pytest.mark.parametrize("layout", ["2.6", "3.5"])
def test_webhooks_are_paused_and_sign_with_their_old_secret(shop_file, import_dump, erp, layout):
    printed = import_dump(shop_file(Shop(layout=layout)))
    webhooks = erp.get("/wc-api/v3/webhooks").get_json()["webhooks"]
    by_id = {each["id"]: each for each in webhooks}
    assert by_id.keys() == ({7} if layout == "2.6" else {1, 2})
    first = by_id[min(by_id)]
    assert (first["status"], first["topic"], first["delivery_url"], first["name"]) == (
        "paused", "order.updated", "https://erp.example/hook", f"Hook {first['id']}",
    )  # fmt: skip
    stored = fetch(select(Webhook.secret_encrypted).order_by(Webhook.id))
    assert {decrypt(row[0]) for row in stored} == {"old secret"}
    if layout == "3.5":
        assert printed.row("webhooks") == [3, 2, 0, 0, 0, 1]
        assert "its payload is that of another API (api_version 3)" in str(printed.lines)
        again = import_dump(shop_file(Shop(layout=layout)))
        assert again.row("webhooks") == [3, 0, 0, 2, 0, 1]


def test_uses_of_coupons_are_counted_once(shop_file, import_dump, app):
    shop = Shop()
    import_dump(shop_file(shop))
    for number in range(shop.coupons):
        entries = [value for key, value in shop.coupon_meta(number) if key == "_used_by"]
        uses = fetch(
            select(func.count()).where(
                Redemption.coupon_id == FIRST_COUPON + number, Redemption.status == "confirmed"
            )
        )
        stored = fetch(select(Coupon.usage_count).where(Coupon.id == FIRST_COUPON + number))
        assert (uses[0][0], stored[0][0]) == (len(entries), len(entries))


def test_limit_per_user_continues_to_apply(shop_file, import_dump, erp):
    limited = [
        (number, 1000, key, value)
        for number, (key, value) in enumerate(
            [("discount_type", "percent"), ("coupon_amount", "10"), ("usage_limit_per_user", "1"),
             ("usage_count", "2"), ("_used_by", "3"), ("_used_by", "Guest@Example.com")],
            start=900_000,
        )
    ]  # fmt: skip
    shop = Shop(coupons=0)
    shop.extra = {
        "posts": [shop.post(1000, "shop_coupon", "publish", "Once", "", shop.time(1))],
        "postmeta": limited,
    }
    import_dump(shop_file(shop))

    def redeem(reference, **customer):
        return erp.post(
            "/redemptions", {"redemption": {"code": "once", "reference": reference, **customer}}
        )

    for response in (redeem("a", customer_id=3), redeem("b", email="guest@example.com")):
        assert response.status_code == 400
        reasons = response.get_json()["errors"][0]["reasons"]
        assert [reason["code"] for reason in reasons] == ["usage_limit_per_user"]
    assert redeem("c", customer_id=4).status_code == 201


def test_lists_counts_and_search_after_an_import(shop_file, import_dump, erp):
    import_dump(shop_file(Shop()))
    assert erp.get("/orders/count").get_json() == {"count": 60}
    assert erp.get("/customers/count").get_json() == {"count": 20}
    assert erp.get("/coupons/count?filter[q]=campaign").get_json() == {"count": 8}
    assert erp.get("/customers/count?filter[q]=user12@example").get_json() == {"count": 1}
    assert erp.get("/orders?filter[q]=sørensen").headers["X-Total"] == "12"


def test_new_records_get_ids_above_those_of_the_source(shop_file, import_dump, erp):
    import_dump(shop_file(Shop()))
    body = {"order": {"line_items": [{"name": "Tea", "total": "5.00"}]}}
    order = erp.post("/orders", body).get_json()["order"]
    assert order["id"] >= FIRST_ORDER + 60
    coupon = erp.post("/coupons", {"coupon": {"code": "new"}}).get_json()["coupon"]
    assert coupon["id"] >= FIRST_COUPON + 8


# --- the same import again ---


def test_second_import_changes_nothing(shop_file, import_dump):
    file = shop_file(Shop())
    import_dump(file)
    before = [rows_of(model) for model in (User, Coupon, Order, Redemption, OrderNote)]
    printed = import_dump(file)
    assert all(row[1:3] == [0, 0] and row[0] == row[3] + row[5] for row in printed.table.values())
    assert [rows_of(model) for model in (User, Coupon, Order, Redemption, OrderNote)] == before


class Changed(Shop):
    """The same shop, a week later: one order completed, one new one, one coupon used."""

    def order(self, number):
        order = super().order(number)
        if order["id"] == FIRST_ORDER + 5:
            order |= {"status": "completed", "paid": True}
        return order

    def coupon_meta(self, number):
        meta = dict(super().coupon_meta(number))
        return [*(meta | {"usage_count": "50"} if number == 0 else meta).items()]


def test_import_again_adds_and_updates(shop_file, import_dump, erp):
    import_dump(shop_file(Shop()))
    printed = import_dump(shop_file(Changed(orders=61)))
    assert printed.row("orders") == [61, 1, 1, 59, 0, 0]
    assert printed.row("coupons")[:4] == [8, 0, 1, 7]
    assert erp.get(f"/orders/{FIRST_ORDER + 5}").get_json()["order"]["status"] == "completed"
    assert erp.get(f"/coupons/{FIRST_COUPON}").get_json()["coupon"]["usage_count"] == 50
    missing = import_dump(shop_file(Shop(orders=59)))
    assert [line["what"] for line in missing.lines if line["table"] == "posts"] == ["missing"] * 2
    assert erp.get(f"/orders/{FIRST_ORDER + 60}").status_code == 200


def test_uses_here_are_added_to_those_at_the_source(shop_file, import_dump, erp):
    import_dump(shop_file(Shop()))
    made = erp.post("/redemptions", {"redemption": {"code": "code-0", "reference": "cart"}})
    erp.post(f"/redemptions/{made.get_json()['redemption']['id']}/confirm")
    import_dump(shop_file(Changed()))
    assert erp.get(f"/coupons/{FIRST_COUPON}").get_json()["coupon"]["usage_count"] == 51
    import_dump(shop_file(Shop()))
    before = next(v for k, v in Shop().coupon_meta(0) if k == "usage_count")
    assert erp.get(f"/coupons/{FIRST_COUPON}").get_json()["coupon"]["usage_count"] == (
        int(before) + 1
    )


def test_records_edited_in_this_shop_keep_their_edits(shop_file, import_dump, erp):
    import_dump(shop_file(Shop()))
    path = f"/orders/{FIRST_ORDER + 5}"
    assert erp.put(path, {"order": {"note": "edited here"}}).status_code == 200
    printed = import_dump(shop_file(Changed()))
    assert printed.row("orders")[1:4] == [0, 0, 59]
    kept = [line["id"] for line in printed.lines if line["what"] == "kept"]
    assert kept == [FIRST_ORDER + 5]
    assert erp.get(path).get_json()["order"]["note"] == "edited here"
    printed = import_dump(shop_file(Changed()), "--overwrite")
    assert printed.row("orders")[1:4] == [0, 1, 59]
    order = erp.get(path).get_json()["order"]
    assert (order["note"], order["status"]) == ("Ring twice", "completed")


def test_records_deleted_here_stay_deleted(shop_file, import_dump, erp):
    import_dump(shop_file(Shop()))
    assert erp.delete("/customers/3").status_code == 200
    printed = import_dump(shop_file(Shop()))
    assert printed.row("customers")[:4] == [21, 0, 0, 21]
    assert erp.get("/customers/3").status_code == 404


def test_interrupted_import_is_completed_by_the_next_one(shop_file, import_dump, app, monkeypatch):
    file = shop_file(Shop())
    monkeypatch.setattr(order_steps, "PAGE", 25)
    with monkeypatch.context() as patch:
        original, calls = order_steps._uses, []

        def interrupted(*arguments):
            calls.append(1)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return original(*arguments)

        patch.setattr(order_steps, "_uses", interrupted)
        result = app.test_cli_runner().invoke(args=["import", "woocommerce", str(file)])
        assert result.exit_code == 1
    assert len(rows_of(Order)) == 50
    printed = import_dump(file)
    assert "Resuming the interrupted import." in printed.output
    assert printed.row("orders") == [60, 10, 0, 50, 0, 0]
    assert len(rows_of(Order)) == 60
    confirmed = sum(row["status"] == "confirmed" for row in rows_of(Redemption))
    entries = [
        key for number in range(8) for key, _ in Shop().coupon_meta(number) if key == "_used_by"
    ]
    assert confirmed == len(entries)


@pytest.mark.one_database
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("at", ["loading", "writing"])
def test_signal_ends_an_import_after_its_batch(
    shop_file, import_dump, app, monkeypatch, number, code, at
):
    file = shop_file(Shop())
    monkeypatch.setattr(order_steps, "PAGE", 25)
    module, name = (woocommerce, "load") if at == "loading" else (order_steps, "_uses")
    original = getattr(module, name)
    handlers = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]

    def signalled(*arguments):
        os.kill(os.getpid(), number)
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, signalled)
        result = app.test_cli_runner().invoke(args=["import", "woocommerce", str(file)])
    assert result.exit_code == code, result.output
    assert "Run the same command again to continue." in result.output
    assert len(rows_of(Order)) == (25 if at == "writing" else 0)
    assert [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)] == handlers
    printed = import_dump(file)
    assert ("Resuming the interrupted import." in printed.output) == (at == "writing")
    assert len(rows_of(Order)) == 60


@pytest.mark.one_database
def test_second_signal_ends_an_import_at_once(shop_file, app, monkeypatch):
    def signalled(*_):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(order_steps, "_uses", signalled)
    file = str(shop_file(Shop()))
    result = app.test_cli_runner().invoke(args=["import", "woocommerce", file])
    assert result.exit_code == 143
    assert "Run the same command again" not in result.output


def test_dry_run_writes_nothing(shop_file, import_dump, app):
    def stored():
        return {
            table.name: fetch(select(func.count()).select_from(table))[0][0]
            for table in db.metadata.sorted_tables
        }

    before = stored()
    printed = import_dump(shop_file(Shop()), "--dry-run")
    assert "Nothing was written" in printed.output
    assert stored() == before
    real = import_dump(shop_file(Shop()))
    assert printed.table == real.table


# --- IDs ---


def test_import_into_a_shop_with_other_records(shop_file, import_dump, erp, admin):
    for number in range(3):
        admin.post("/customers", {"customer": {"email": f"here{number}@example.com"}})
    mine = admin.get("/customers?filter[limit]=-1").get_json()["customers"]
    printed = import_dump(shop_file(Shop()), "--new-ids")
    assert printed.row("orders") == [60, 60, 0, 0, 0, 0]
    shop = Shop()
    orders = everything(erp)[0]["orders"]
    assert {order["order_number"] for order in orders} == {
        str(order["id"]) for order in shop.each_order()
    }
    by_number = {order["order_number"]: order for order in orders}
    for order in shop.each_order():
        found = by_number[str(order["id"])]
        email = f"user{order['customer'] - 2}@example.com" if order["customer"] else None
        assert (found["customer"].get("username") is not None) == bool(email)
        if email:
            assert found["customer"]["email"] == email
    after = admin.get("/customers?filter[limit]=-1").get_json()["customers"]
    assert [each for each in after if each in mine] == mine
    again = import_dump(shop_file(Shop()), "--new-ids")
    assert again.row("orders") == [60, 0, 0, 60, 0, 0]


def test_id_username_and_email_that_are_in_use(shop_file, import_dump, erp, admin):
    admin.post("/customers", {"customer": {"email": "USER1@example.com", "username": "User2"}})
    here = {row["id"]: row["username"] for row in rows_of(User)}
    printed = import_dump(shop_file(Shop()))
    altered = {line["id"]: line["why"] for line in printed.lines if line["table"] == "users"}
    assert "has the e-mail 'user1@example.com', which was emptied" in altered[3]
    assert "the new username is 'user2-2'" in altered[4]
    assert {row["id"]: row["username"] for row in rows_of(User) if row["id"] in here} == here
    assert len(rows_of(User)) == len(here) + 21
    for taken in here.keys() & set(range(1, 22)):
        assert f"the ID {taken} is in use in this shop" in altered[taken]


class Renamed(Shop):
    """The same shop under another address."""

    def _options(self):
        for number, name, value, autoload in super()._options():
            yield number, name, value.replace("old.example", "new.example"), autoload


def test_address_of_the_shop_has_changed(shop_file, import_dump):
    import_dump(shop_file(Shop()))
    refused = import_dump(shop_file(Renamed()), fails=True)
    assert "contains the shop old.example/shop, and this is new.example/shop" in refused.output
    dry = import_dump(shop_file(Renamed()), "--same-shop", "--dry-run")
    assert dry.row("orders") == [60, 0, 0, 60, 0, 0]
    printed = import_dump(shop_file(Renamed()), "--same-shop")
    assert printed.row("orders") == [60, 0, 0, 60, 0, 0]
    again = import_dump(shop_file(Renamed()))
    assert again.row("orders") == [60, 0, 0, 60, 0, 0]
    beside = import_dump(shop_file(Shop()), "--new-ids")
    assert beside.row("orders")[:2] == [60, 60]


def test_imports_write_one_event(shop_file, import_dump, erp):
    import_dump(shop_file(Shop()))
    events = erp.get("/events").get_json()["events"]
    assert [event["type"] for event in events] == ["import.completed"]
    data = events[0]["data"]["import"]
    assert data["source"] == "old.example/shop wp_"
    assert data["records"]["orders"]["created"] == 60
    assert len(fetch(select(ImportedRecord.kind).distinct())) == 10


# --- verification ---


def verify(app, file, *options):
    return app.test_cli_runner().invoke(args=["import", "verify", str(file), *options])


def test_verification_finds_no_differences(shop_file, import_dump, app):
    file = shop_file(Shop())
    import_dump(file)
    result = verify(app, file)
    assert result.exit_code == 0, result.output
    assert "orders: 60 at the source, 60 here, 0 left out, 0 edited here, 60 compared" in (
        result.stdout
    )
    assert "No differences found." in result.stdout


def test_verification_finds_differences(shop_file, import_dump, app, erp):
    file = shop_file(Shop())
    import_dump(file)

    def damage(session):
        session.execute(
            update(Order).where(Order.id == FIRST_ORDER + 2).values(total=Decimal("1.00"))
        )
        session.execute(update(User).where(User.id == 4).values(first_name="Eve"))

    run_in_transaction(damage)
    erp.delete("/customers/5")
    erp.put("/customers/6", {"customer": {"first_name": "Edited"}})
    result = verify(app, file)
    assert result.exit_code == 1
    found = [line for line in result.stdout.splitlines() if line.startswith("DIFFERENT")]
    assert any(f"orders: posts {FIRST_ORDER + 2}, total:" in line for line in found)
    assert any("customers: users 4, first_name: 'O\"" not in line for line in found)
    assert "DIFFERENT customers: users 5 is not in this shop" in found
    assert any(line.startswith("DIFFERENT orders, completed") for line in found)
    assert "1 edited here" in result.stdout
    sampled = verify(app, file, "--sample", "0")
    assert "users 4" not in sampled.stdout


def test_verification_of_a_shop_that_was_not_imported(shop_file, app):
    result = verify(app, shop_file(Shop()))
    assert result.exit_code == 1
    assert "old.example/shop was never imported into this database." in result.output


# --- sources that cannot be imported ---


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda data: b"hello", [], "contains no tables. It is not a database dump."),
        (lambda data: data[: len(data) // 2], [], "The dump ends within a statement"),
        (lambda data: data, ["--prefix", "shop_"], "add --prefix wp_"),
        (lambda data: data.replace(b"wp_usermeta", b"wp_other"), [], "Missing: wp_usermeta."),
        (lambda data: data.replace(b"`wp_user", b"`net_user"), [], "add --users-prefix net_"),
        (lambda data: data, ["--database", "x"], "Missing: the database named by --database."),
        (
            lambda data: b"USE `a`;" + data + b";\nUSE `b`;\n" + data,
            [],
            "several shops, in the databases a, b. Choose one with --database.",
        ),
        (lambda data: b"\x1f\x8b" + data, [], "is not a complete gzip file."),
    ],
)
def test_source_that_cannot_be_imported(shop_file, import_dump, tmp_path, change, options, message):
    file = shop_file(Shop(orders=3))
    file.write_bytes(change(file.read_bytes()))
    printed = import_dump(file, *options, fails=True)
    assert message in printed.output
    assert "Traceback" not in printed.output
    assert rows_of(User) == []


@pytest.mark.one_database
def test_file_that_does_not_exist(import_dump, tmp_path):
    printed = import_dump(tmp_path / "none.sql", fails=True)
    assert "none.sql: No such file or directory" in printed.output


@pytest.mark.one_database
def test_one_of_several_databases(shop_file, import_dump, erp):
    file = shop_file(Shop(orders=3))
    other = shop_file(Shop(orders=5), name="other.sql")
    data = b"USE `a`;" + other.read_bytes() + b";\nUSE `b`;\n" + file.read_bytes()
    file.write_bytes(data)
    import_dump(file, "--database", "b")
    assert len(rows_of(Order)) == 3
