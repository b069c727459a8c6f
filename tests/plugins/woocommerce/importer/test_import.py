"""``import woocommerce``: the imported records of a shop (migration 1)."""

from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal

import pytest
from sqlalchemy import func, select

from app.auth.encryption import decrypt
from app.db.read_pool import fetch
from app.models import Coupon, DownloadPermission, Redemption, Webhook
from app.plugins.woocommerce.importer.importer import Location, Options, import_shop
from app.plugins.woocommerce.importer.report import ImportReport
from tests.api_client import Client
from tests.commands import succeed
from tests.dumps.dialects import DIALECTS
from tests.dumps.schemas import LAYOUTS
from tests.dumps.shop import FIRST_COUPON, FIRST_ORDER, Shop, cents
from tests.plugins.woocommerce.importer.imports import ImportedKey, everything, rows_of
from tests.schemas import create_tables

ISO = "%Y-%m-%dT%H:%M:%SZ"

pytestmark = pytest.mark.usefixtures("in_app")  # they look into the tables


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


each_layout = pytest.mark.parametrize(
    "layout",
    [
        pytest.param(layout, marks=pytest.mark.both_databases) if layout == "3.5" else layout
        for layout in LAYOUTS
    ],
)
"""What is written is the same for each layout."""


@pytest.mark.sample(1)
@each_layout
def test_orders_are_those_of_the_old_server(shop_file, import_dump, erp, layout):
    shop = Shop(layout=layout)
    printed = import_dump(shop_file(shop))
    assert printed.lines == []
    assert printed.row("orders") == [60, 60, 0, 0, 0, 0]
    orders = everything(erp)[0]["orders"]
    expected = {order["id"]: expected_order(shop, order) for order in shop.each_order()}
    assert len(orders) == 60
    for order in orders:
        order.pop("customer")
        assert order == expected[order["id"]]


@pytest.mark.sample(1)
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


@pytest.mark.slow
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
            succeed(other, "import", "woocommerce", file)
        found.append(everything(Client(other, ImportedKey())))
    assert all(each == found[0] for each in found)
    assert len(found[0][0]["orders"]) == 60


@pytest.mark.slow
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


@pytest.mark.slow
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
    ]  # fmt: skip
    assert erp.get(f"/orders/{order['id']}/refunds").get_json() == {"order_refunds": [
        {"id": order["id"] + 10_000_000, "order_id": order["id"], "created_at": created,
         "updated_at": created, "amount": "5.00", "reason": "broken", "refunded_by": None,
         "line_items": []},
    ]}  # fmt: skip
    shown = erp.get(f"/orders/{order['id']}", {"fields": "total_refunded"}).get_json()["order"]
    assert shown == {"total_refunded": "5.00"}
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


@pytest.mark.sample(1)
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
        assert printed.row("webhooks") == [3, 3, 0, 0, 0, 0]
        again = import_dump(shop_file(Shop(layout=layout)))
        assert again.row("webhooks") == [3, 0, 0, 3, 0, 0]
        stored = fetch(select(Webhook.id, Webhook.is_bare).order_by(Webhook.id))
        assert [row for row in stored if row.is_bare] == [(3, True)]


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


@pytest.mark.slow
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


@pytest.mark.both_databases
def test_lists_counts_and_search_after_an_import(shop_file, import_dump, erp):
    import_dump(shop_file(Shop()))
    assert erp.get("/orders/count").get_json() == {"count": 60}
    assert erp.get("/customers/count").get_json() == {"count": 20}
    assert erp.get("/coupons/count?filter[q]=campaign").get_json() == {"count": 8}
    assert erp.get("/customers/count?filter[q]=user12@example").get_json() == {"count": 1}
    # 12 by their address, and 10 others by the name of their account
    assert erp.get("/orders?filter[q]=sørensen").headers["X-Total"] == "22"


@pytest.mark.both_databases
def test_new_records_get_ids_above_those_of_the_source(shop_file, import_dump, erp):
    import_dump(shop_file(Shop()))
    body = {"order": {"line_items": [{"name": "Tea", "total": "5.00"}]}}
    order = erp.post("/orders", body).get_json()["order"]
    assert order["id"] >= FIRST_ORDER + 60
    coupon = erp.post("/coupons", {"coupon": {"code": "new"}}).get_json()["coupon"]
    assert coupon["id"] >= FIRST_COUPON + 8


@pytest.mark.slow
def test_order_without_a_use_keeps_its_coupon(shop_file, import_dump, erp):
    """A cancelled order of the source has no redemption that would identify its coupon."""
    shop = Shop()
    number = next(
        number
        for number in range(shop.orders)
        if shop.order(number)["coupon"] and shop.order(number)["status"] == "on-hold"
    )
    original = shop.order
    shop.order = lambda each: original(each) | ({"status": "cancelled"} if each == number else {})
    import_dump(shop_file(shop))
    order = erp.get(f"/orders/{shop.order(number)['id']}").get_json()["order"]
    assert order["status"] == "cancelled"
    found = {"filter[q]": order["coupon_lines"][0]["code"]}
    (coupon,) = erp.get("/coupons", found).get_json()["coupons"]
    assert erp.delete(f"/coupons/{coupon['id']}").status_code == 200
    completed = {"order": {"status": "completed"}}
    response = erp.put(f"/orders/{order['id']}", completed)
    assert response.status_code == 400
    assert [reason["code"] for reason in response.get_json()["errors"][0]["reasons"]] == [
        "not_found"
    ]
    assert erp.post(f"/coupons/{coupon['id']}/restore").status_code == 200
    assert erp.put(f"/orders/{order['id']}", completed).status_code == 200
    shown = erp.get(f"/coupons/{coupon['id']}").get_json()["coupon"]
    assert shown["usage_count"] == coupon["usage_count"] + 1


@pytest.mark.slow
def test_progress_of_redemptions_reaches_its_total(app, shop_file):
    """A use of an order is not imported again, and one coupon can have several uses."""
    shown = {}

    @contextmanager
    def progress(label, total):
        def note(done):
            shown[label] = done, total

        yield note

    file = shop_file(Shop())
    with app.app_context():
        location, report = Location(str(file)), ImportReport()
        import_shop(location, Options(), report, progress=progress, say=print)
    done, total = shown["redemptions"]
    assert done == total > 0
