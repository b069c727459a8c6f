"""Imports of invalid rows, as old shops contain them (migration 1)."""

import json

import pytest
from sqlalchemy import select

from app.db.read_pool import fetch
from app.models import Coupon, Order, User
from tests.api_client import Client
from tests.commands import succeed
from tests.dumps.dialects import DIALECTS, write_dump
from tests.dumps.shop import BEGIN, ZERO, Shop, php
from tests.plugins.woocommerce.importer.test_import import ImportedKey

HOSTILE = "'; DROP TABLE x; -- \\' \\\\ \"q\" `b`, (1,'a'),\r\n\x1a 100% _x 李 😀 '')"
"""Text with everything that ends a value, a row or a statement in another place."""


class HostileShop(Shop):
    """A small shop with hostile rows in every table."""

    def __init__(self, layout="3.5"):
        super().__init__(customers=3, coupons=2, orders=4, layout=layout)
        self._number = 5_000_000
        self.extra = {
            "users": [
                self._user(50, "Twin", "same@example.com", 1),
                self._user(51, "TWIN", "SAME@Example.com", 2),
                self._user(52, "odd'name\\", "", 3),
                (53, "zero", "", "", "zero@example.com", "", ZERO, "", 0, ""),
                (54, "", "", "", "nameless@example.com", "", ZERO, "", 0, ""),
                self._user(55, "bytes", b"b@example.com", 4),
            ],
            "usermeta": self.meta(
                (50, "first_name", HOSTILE), (50, "billing_city", HOSTILE),
                (50, "wp_capabilities", php({"shop_manager": True, "wholesale buyer é": True})),
                (50, "last_name", "first one wins"), (50, "last_name", "second one"),
                (51, "wp_capabilities", 'a:1:{s:99:"customer";b:1;}'),
                (52, "wp_capabilities", 'O:8:"stdClass":1:{s:1:"a";i:1;}'),
                (99999, "first_name", "orphan"), (52, None, None), (53, "first_name", None),
                (55, "first_name", b"\xc3\x84\x00da"),
            ),
            "posts": [
                self.post(60, "shop_coupon", "publish", "Twice", "older", self.time(1)),
                self.post(61, "shop_coupon", "publish", "TWICE", "newer", self.time(2)),
                self.post(62, "shop_coupon", "draft", "draft", "", self.time(1)),
                self.post(63, "shop_coupon", "publish", " <b></b> ", "", self.time(1)),
                self.post(64, "shop_coupon", "trash", "gone", "", self.time(1)),
                self.post(65, "shop_coupon", "publish", "a &amp; b", HOSTILE, self.time(1)),
                self.post(66, "shop_coupon", "publish", "strange", "", self.time(1)),
                self.post(67, "shop_coupon", "publish", "plugin", "", self.time(1)),
                self.post(68, "shop_coupon", "publish", "zero-dates", "", BEGIN, gmt=False),
                self.post(70, "shop_order", "auto-draft", "", "", self.time(1)),
                self.post(71, "shop_order", "wc-checkout-draft", "", "", self.time(1)),
                self.post(72, "shop_order", "wc-unknown", "", "", self.time(1)),
                self.post(73, "shop_order", "wc-completed", "", HOSTILE, self.time(1), gmt=False),
                self.post(74, "shop_order", "trash", "", "", self.time(1)),
                self.post(75, "shop_order", "wc-completed", "", "", self.time(1)),
                self.post(76, "shop_order_refund", "wc-completed", "", "", self.time(1), parent=7),
            ],
            "postmeta": self.meta(
                (65, "coupon_amount", "12.345"), (65, "discount_type", "percent"),
                (65, "customer_email", php(["not an address", "A@b.co"])),
                (65, "product_ids", "4,4,-5,x,0"),
                (66, "discount_type", "<b>percent</b>"), (66, "coupon_amount", "5 USD"),
                (66, "usage_limit", "-5"), (66, "product_categories", "a:1:{broken"),
                (66, "expiry_date", "garbage"),
                (66, "product_ids", 'a:2:{i:0;i:7;i:1;O:8:"stdClass":1:{s:1:"a";i:1;}}'),
                (66, "exclude_product_ids", 'O:8:"stdClass":1:{s:1:"a";i:1;}'),
                (67, "discount_type", "recurring_percent"),
                (68, "date_expires", "1924905600"),  # 2030-12-31 00:00 UTC
                (73, "_customer_user", "424242"), (73, "_order_total", "1e3"),
                (73, "_order_key", "wc_order_same"), (73, "_order_number", "SHOP-0073"),
                (73, "_billing_first_name", HOSTILE), (73, "_completed_date", ZERO),
                (74, "_wp_trash_meta_status", "wc-processing"), (74, "_order_total", "7.005"),
                (74, "_wp_trash_meta_time", "1614600000"), (74, "_customer_user", "3"),
                (74, "_order_currency", "KWD"),
                (75, "_order_key", "wc_order_same"), (75, "_order_currency", "€"),
                (888888, "_order_total", "1.00"), (75, "_order_total", "abc"),
                (60, "_used_by", ""), (61, "_used_by", "424242"),
                (61, "_used_by", "²"), (61, "_used_by", "9" * 5000),
            ),
            "woocommerce_order_items": [
                (700, HOSTILE, "line_item", 73), (701, "x", "line_item", 999999),
                (702, "Zero", "line_item", 75), (703, "unknown", "gift", 75),
                (704, "nameless coupon", "coupon", 75), (705, "TWICE", "coupon", 75),
                (706, "twice", "coupon", 75),
            ],
            "woocommerce_order_itemmeta": self.meta(
                (700, "_qty", "2.5"), (700, "_line_total", "10.005"), (700, "Note", HOSTILE),
                (700, "_variation_id", "4711"), (700, "list", php([1])), (702, "_qty", "0"),
                (702, "_line_total", "3.3333"), (999999, "_qty", "1"),
            ),
            "comments": [
                (900, 999999, "", "", "", "", ZERO, ZERO, "orphan", 0, "1", "", "order_note", 0, 0),
                (901, 73, "", "", "", "", "2021-03-01 09:00:00", ZERO, HOSTILE, 0, "1", "",
                 "order_note", 0, 0),
                (902, 73, "", "", "", "", ZERO, ZERO, " ", 0, "1", "", "order_note", 0, 0),
                (903, 5, "", "", "", "", ZERO, ZERO, "a review", 0, "1", "", "review", 0, 0),
            ],
            "woocommerce_downloadable_product_permissions": [
                (950, "gone", 99, 73, "k", "x@example.com", 0, "0", None, ZERO, 0),
                (951, "gone", 99, 999999, "k", "x@example.com", 0, "", None, None, 0),
            ],
            "woocommerce_api_keys": [
                (20, 999999, "orphan", "read", "0" * 64, "cs_x", None, "x", None),
                (21, 1, "odd", "admin", "1" * 64, "cs_x", None, "x", None),
                (22, 1, "empty", "read", "2" * 64, "", None, "x", None),
                (23, "²", "no number", "read", "3" * 64, "cs_x", None, "x", None),
            ],
        }  # fmt: skip

    def meta(self, *rows):
        """Yield metadata with IDs of their own."""
        found = []
        for owner, key, value in rows:
            self._number += 1
            found.append((self._number, owner, key, value))
        return found


@pytest.fixture(params=DIALECTS)
def hostile(app, tmp_path, request):
    """Import the hostile shop, and return the report by table and ID."""
    write_dump(tmp_path / "shop.sql", HostileShop(), request.param)
    report = tmp_path / "report"
    with app.app_context():
        succeed(app, "import", "woocommerce", tmp_path / "shop.sql", "--report", report)
        lines = [json.loads(line) for line in report.read_text().splitlines()]
        yield {(line["table"], line["id"]): (line["what"], line["why"]) for line in lines}


def row_of(model, record_id):
    table = model.__table__
    found = fetch(select(table).where(table.c.id == record_id))
    return dict(found[0]._mapping) if found else None


@pytest.mark.sample(1)
def test_hostile_accounts(hostile, app):
    twin, other = row_of(User, 50), row_of(User, 51)
    assert (twin["first_name"], twin["billing_city"], twin["last_name"]) == (
        HOSTILE, HOSTILE, "first one wins",
    )  # fmt: skip
    assert (twin["email"], other["email"]) == ("same@example.com", "")
    assert (twin["username"], other["username"]) == ("Twin", "TWIN-2")
    assert hostile["users", 51][0] == "altered"
    assert "the roles cannot be read" in hostile["users", 51][1]
    client = Client(app, ImportedKey())
    for path, role in (("", ""), ("/wc-api/v2", "customer"), ("/wc-api/v3", "customer")):
        assert client.get(f"{path}/customers/51").get_json()["customer"]["role"] == role
        assert client.get(f"{path}/customers/50").get_json()["customer"]["role"] == "shop_manager"
    assert row_of(User, 52)["username"] == "odd'name\\"
    assert "the roles cannot be read" in hostile["users", 52][1]
    assert row_of(User, 53)["created_at"].year == 1970
    assert hostile["users", 54] == ("left_out", "the account has no username")
    assert row_of(User, 55)["email"] == "b@example.com"
    assert row_of(User, 55)["first_name"] == "Äda"
    assert hostile["users", 55] == ("altered", "NUL characters were removed")
    client = Client(app, ImportedKey())
    assert client.get("/customers/50").get_json()["customer"]["role"] == "shop_manager"
    found = client.get("/customers?filter[role]=wholesale buyer é").get_json()["customers"]
    assert [each["id"] for each in found] == [50]


@pytest.mark.sample(1)
def test_hostile_coupons(hostile):
    assert row_of(Coupon, 60)["status"] == "trash"
    assert hostile["posts", 60] == (
        "altered",
        "the newer coupon 61 has the same code, so the coupon was moved to the trash",
    )
    assert row_of(Coupon, 61)["status"] == "published"
    draft = "the coupon has the status 'draft' and is published and paused"
    assert hostile["posts", 62] == ("altered", draft)
    assert row_of(Coupon, 62)["status"] == "published"
    assert row_of(Coupon, 62)["active"] is False
    assert hostile["posts", 63] == ("left_out", "the code is empty")
    assert row_of(Coupon, 64)["status"] == "trash"
    assert row_of(Coupon, 64)["trashed_at"] is not None
    found = row_of(Coupon, 65)
    assert (found["code"], str(found["amount"]), found["description"]) == (
        "a & b", "12.35", HOSTILE,
    )  # fmt: skip
    assert (found["product_ids"], found["customer_emails"]) == ([4, 5], ["a@b.co"])
    assert "the code 'a &amp; b' is stored as 'a & b'" in hostile["posts", 65][1]
    found = row_of(Coupon, 66)
    assert (found["type"], str(found["amount"]), found["usage_limit"]) == ("fixed_cart", "5.00", 5)
    assert (found["product_category_ids"], found["expiry_date"]) == ([], None)
    assert (found["product_ids"], found["exclude_product_ids"]) == ([7], [])
    for part in ("coupon_amount '5 USD'", "is read as fixed_cart", "product_categories cannot",
                 "expiry_date 'garbage'", "entries of product_ids that are not IDs were removed",
                 "exclude_product_ids cannot be read, and was emptied"):  # fmt: skip
        assert part in hostile["posts", 66][1]
    assert row_of(Coupon, 67)["status"] == "trash"
    assert "'recurring_percent' is unknown" in hostile["posts", 67][1]
    found = row_of(Coupon, 68)
    assert found["created_at"].isoformat() == "2021-03-01T08:00:00+00:00"
    assert found["expiry_date"].isoformat() == "2030-12-31"


@pytest.mark.sample(1)
def test_hostile_orders(hostile, app):
    for order_id, why in ((70, "the order is a draft (auto-draft)"),
                          (71, "the order is a draft (checkout-draft)"),
                          (72, "the status 'unknown' is unknown")):  # fmt: skip
        assert hostile["posts", order_id] == ("left_out", why)
    order = Client(app, ImportedKey()).get("/orders/73").get_json()["order"]
    assert (order["order_number"], order["note"], order["customer_id"], order["total"]) == (
        "SHOP-0073", HOSTILE, 0, "1000.00",
    )  # fmt: skip
    assert order["billing_address"]["first_name"] == HOSTILE
    assert order["created_at"] == HostileShop().time(1).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert order["completed_at"] is None
    assert "account 424242 does not exist" in hostile["posts", 73][1]
    (line,) = order["line_items"]
    assert (line["name"], line["quantity"], line["total"], line["price"]) == (
        HOSTILE, 2, "10.01", "5.00",
    )  # fmt: skip
    assert (line["product_id"], line["variation_id"], line["sku"]) == (0, 4711, None)
    assert line["meta"] == [{"key": "Note", "label": "Note", "value": HOSTILE}]
    trashed = row_of(Order, 74)
    assert (trashed["status"], trashed["status_before_trash"]) == ("trash", "processing")
    assert trashed["trashed_at"].isoformat() == "2021-03-01T12:00:00+00:00"
    assert (trashed["currency"], str(trashed["total"])) == ("KWD", "7.01")
    assert "amounts in KWD were rounded to two decimals" in hostile["posts", 74][1]
    last = row_of(Order, 75)
    assert (last["currency"], str(last["total"])) == ("EUR", "0.00")
    assert last["order_key"].startswith("order_")
    for part in ("the currency '€' was replaced", "total 'abc' is not an amount",
                 "order 73 also has the order key", "the item 703 of the kind 'gift'"):  # fmt: skip
        assert part in hostile["posts", 75][1]
    assert last["line_items"][0]["quantity"] == 0
    assert [line["code"] for line in last["coupon_lines"]] == ["nameless coupon", "twice", "twice"]


@pytest.mark.sample(1)
def test_hostile_records_of_orders(hostile, app):
    assert hostile["posts", 76] == ("left_out", "the amount of the refund is 0")
    assert hostile["comments", 900] == ("left_out", "its order was not imported")
    assert hostile["comments", 902] == ("left_out", "the note is empty")
    client = Client(app, ImportedKey())
    notes = client.get("/orders/73/notes").get_json()["order_notes"]
    assert notes == [
        {"id": 901, "created_at": "2021-03-01T08:00:00Z", "note": HOSTILE, "customer_note": False}
    ]
    table = "woocommerce_downloadable_product_permissions"
    assert hostile[table, 950] == ("left_out", "the product no longer has this file")
    assert hostile[table, 951] == ("left_out", "the product no longer has this file")
    keys = "woocommerce_api_keys"
    assert hostile[keys, 20] == ("left_out", "its account 999999 was not imported")
    assert hostile[keys, 21] == ("left_out", "the permission 'admin' is unknown")
    assert hostile[keys, 22] == ("left_out", "the key or its secret is empty")
    uses = client.get("/redemptions?filter[code]=twice").get_json()["redemptions"]
    assert [(use["order_id"], use["customer_id"]) for use in uses] == [
        (None, 0), (None, 0), (None, 0), (75, 0),
    ]  # fmt: skip


def test_shop_of_order_tables_ignores_the_posts_of_orders(app, tmp_path):
    write_dump(tmp_path / "shop.sql", HostileShop("8"))
    with app.app_context():
        succeed(app, "import", "woocommerce", tmp_path / "shop.sql")
        assert row_of(Order, 73) is None
