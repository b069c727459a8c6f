"""Metadata, refunds and payments in an import from WooCommerce (records 4 and 5)."""

import json
import re
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select

from app.db.read_pool import fetch
from app.db.session import db
from app.models import (
    COUPON_METADATA,
    CUSTOMER_METADATA,
    IMPORT_SOURCES,
    IMPORTED_RECORDS,
    ITEM_METADATA,
    ORDER_METADATA,
    ORDER_NOTES,
    ORDERS,
    REFUND_METADATA,
)
from app.plugins.woocommerce.importer.convert.metadata import (
    LEFT_OUT,
    REPEATED,
    reason_to_leave_out,
)
from app.plugins.woocommerce.importer.tables import COUPON_KEYS, ITEM_KEYS, ORDER_KEYS, REFUND_KEYS
from app.plugins.woocommerce.stored_keys import USER_KEYS
from tests.dumps.schemas import LAYOUTS
from tests.dumps.shop import FIRST_COUPON, FIRST_ORDER, Shop, php
from tests.plugins.woocommerce.importer.test_import import ISO

REFUNDED, CHILD = FIRST_ORDER + 5, FIRST_ORDER + 7
"""Orders: completed with refunds, and with a parent."""
REFUND = 20_000_000
OBJECT = 'O:8:"stdClass":1:{s:1:"a";i:1;}'
each_layout = pytest.mark.parametrize("layout", LAYOUTS)


class FullShop(Shop):
    """A shop with metadata of every kind, and refunds of items."""

    def __init__(self, layout, **options):
        super().__init__(layout=layout, orders=20, plugin_keys=3, **options)
        self._last = 7_000_000
        of_orders = [
            (REFUNDED, "_erp_id", "4711"), (REFUNDED, "tracking", php({"carrier": "dhl"})),
            (REFUNDED, "twice", "first"), (REFUNDED, "twice", "second"),
            (REFUNDED, "parts", php([1, 2.5, True, None])), (REFUNDED, "object", OBJECT),
            (REFUNDED, "nothing", None), (REFUNDED, "empty", ""), (REFUNDED, "text", "a:b;"),
            (REFUNDED, "gaps", php({1: "x", 3: "y"})), (REFUNDED, "nul", "a\0b"),
            (REFUNDED, "_stripe_token", "tok"), (REFUNDED, "_edit_lock", "1:1"),
            (REFUNDED, "_order_number", "A-17"), (REFUNDED, "ümlaut", "Größe 李"),
            (REFUND, "_refund_amount", "7.50"), (REFUND, "_refund_reason", "Broken"),
            (REFUND, "_refunded_by", "1"), (REFUND, "_refunded_payment", "1"),
            (REFUND, "rma", php({"no": 5})),
        ]  # fmt: skip
        orders = "wc_orders_meta" if layout == "8" else "postmeta"
        self.extra = {
            orders: self.meta(of_orders),
            "usermeta": self.meta(
                [(2, "vat_number", "DE1"), (2, "_hidden", php(["a"])), (2, "session_tokens", "x"),
                 (2, "wp_2_capabilities", "x"), (2, "billing_city", "a second row"),
                 (2, "my_api_key", "k"), (2, "_money_spent", "5")]
            ),
            "woocommerce_order_items": [
                (90_001, "Tea", "line_item", REFUND), (90_002, "Flat rate", "shipping", REFUND),
                (90_003, "DE-VAT-1", "tax", REFUND),
                (90_010, "Gift", "fee", REFUNDED),
            ],
            "woocommerce_order_itemmeta": self.meta(
                [(90_001, "_qty", "-1"), (90_001, "_line_total", "-5.00"),
                 (90_001, "_line_tax", "-0.95"), (90_001, "_product_id", "10"),
                 (90_001, "_variation_id", "12"), (90_001, "_refunded_item_id", str(self.line)),
                 (90_001, "_restocked", "yes"),
                 (90_001, "_line_tax_data", php({"total": {1: "-0.95"}})),
                 (90_002, "cost", "-1.55"), (90_002, "method_id", "flat_rate"),
                 (90_002, "_refunded_item_id", str(self.line + 1)),
                 (90_010, "_line_total", "3.00"), (90_010, "_line_tax", "0.57"),
                 (90_010, "_fee_amount", "3"), (90_010, "_line_subtotal", "3"),
                 (self.line, "_reduced_stock", "2"), (self.line, "box", php({"w": 1}))]
            ),
        }  # fmt: skip
        if layout != "8":
            self.extra |= {"postmeta": [*self.extra["postmeta"], *self._of_coupons()]}
        else:
            self.extra["postmeta"] = self._of_coupons()

    line = (REFUNDED - FIRST_ORDER) * 4 + 1

    def meta(self, rows):
        found = []
        for owner, key, value in rows:
            self._last += 1
            found.append((self._last, owner, key, value))
        return found

    def _of_coupons(self):
        return self.meta(
            [(FIRST_COUPON, "_campaign", php({"id": 7})), (FIRST_COUPON, "_edit_last", "1"),
             (FIRST_COUPON, "budget", "12.5")]
        )  # fmt: skip

    def _posts(self):
        yield from super()._posts()
        if self.layout != "8":
            created = self.time(5) + timedelta(days=1)
            yield self.post(REFUND, "shop_order_refund", "wc-completed", "Refund", "", created,
                            parent=REFUNDED)  # fmt: skip

    def _wc_orders(self):
        yield from super()._wc_orders()
        created = f"{self.time(5) + timedelta(days=1):%F %T}"
        yield (REFUND, "wc-completed", "EUR", "shop_order_refund", "0", "-7.50", 0, None, created,
               created, REFUNDED, *[None] * 6)  # fmt: skip


def entries(table, owner, *more):
    """The rows of a table of metadata by their ID."""
    columns = [table.c[name] for name in ("id", owner, *more, "key", "value", "internal")]
    return {row[0]: tuple(row[1:]) for row in fetch(select(*columns))}


@pytest.mark.sample(1)
@pytest.mark.both_databases
@each_layout
def test_every_row_is_found_again_or_left_out(app, shop_file, import_dump, layout):
    """Each row became a field, is metadata with its ID, or is counted by its key."""
    shop = FullShop(layout)
    with app.app_context():
        printed = import_dump(shop_file(shop))
        tables = {
            "usermeta": entries(CUSTOMER_METADATA, "customer_id"),
            "coupons": entries(COUPON_METADATA, "coupon_id"),
            "orders": entries(ORDER_METADATA, "order_id"),
            "refunds": entries(REFUND_METADATA, "refund_id"),
            "items": entries(ITEM_METADATA, "order_id", "item_id"),
        }
    fields = {
        "usermeta": USER_KEYS | {"wp_capabilities"},
        "coupons": COUPON_KEYS,
        "orders": (ORDER_KEYS if layout != "8" else frozenset()) | {"_order_number"},
        "refunds": REFUND_KEYS | (frozenset() if layout == "8" else {"_order_total"}),
    }
    kinds = {row[0]: (row[2], row[3]) for row in shop.rows("woocommerce_order_items")}
    left_out, checked = {}, 0
    seen = set()
    for table in ("usermeta", "postmeta", "wc_orders_meta", "woocommerce_order_itemmeta"):
        for row_id, owner, key, value in shop.rows(table) if table in shop.tables else ():
            where, known = kind_of(table, owner, kinds, fields)
            if where is None or key == "_used_by":  # becomes a redemption
                continue
            if key in known and ((where, owner, key) not in seen or where == "items_of_refunds"):
                seen.add((where, owner, key))
                continue
            if reason_to_leave_out(table, key):
                left_out[key] = left_out.get(key, 0) + 1
                continue
            if where == "items" and key in {"pa_size", "Gravur"}:
                continue  # shown in the attributes of the line
            found = tables["items" if where.startswith("items") else where][row_id]
            assert (found[-3], found[-1]) == (key, key.startswith("_"))
            assert owner in found[:2]
            text = json.loads(found[-2])
            if value is None or not value.startswith(("a:", "O:")) or value == "a:b;":
                assert text == (value and value.replace("\0", "\ufffd")), key
            checked += 1
    assert printed.keys == left_out
    assert {"_stripe_token", "session_tokens", "my_api_key", "_edit_lock"} <= left_out.keys()
    assert ("_recorded_coupon_usage_counts" in left_out) == (layout != "8")
    assert checked > 60
    stored = sum(len(rows) for rows in tables.values())
    assert stored == checked


def kind_of(table, owner, kinds, fields):
    """Where the metadata of a row goes, and the keys that are fields there."""
    if table == "usermeta":
        return "usermeta", fields["usermeta"]
    if table == "woocommerce_order_itemmeta":
        kind, order = kinds[owner]
        if order >= 10_000_000:
            return ("items_of_refunds", REPEATED) if kind != "tax" else (None, ())
        return "items", ITEM_KEYS[kind]
    if owner >= 10_000_000:
        return "refunds", fields["refunds"]
    if owner >= FIRST_ORDER:
        return "orders", fields["orders"]
    return ("coupons", fields["coupons"]) if owner >= FIRST_COUPON else (None, ())


def test_invalid_utf8_is_replaced_and_reported(shop_file, import_dump, erp):
    file = shop_file(FullShop("3.5"))
    file.write_bytes(file.read_bytes().replace("Größe 李".encode(), "Größe ".encode() + b"\xff"))
    printed = import_dump(file)
    query = {"fields": "metadata.ümlaut"}
    order = erp.get(f"/orders/{REFUNDED}", query).get_json()["order"]
    assert order == {"metadata": {"ümlaut": "Größe \ufffd"}}
    (why,) = [line["why"] for line in printed.lines if line["id"] == REFUNDED]
    assert "'ümlaut' were replaced by U+FFFD" in why


@pytest.mark.sample(1)
@pytest.mark.both_databases
@each_layout
def test_values_become_json(shop_file, import_dump, erp, layout):
    printed = import_dump(shop_file(FullShop(layout)))
    order = erp.get(f"/orders/{REFUNDED}", {"filter[meta]": "true"}).get_json()["order"]
    found = {key: value for key, value in order["metadata"].items() if "_plugin" not in key}
    assert found == {
        "_erp_id": "4711", "tracking": {"carrier": "dhl"}, "twice": "first",
        "parts": [1, 2.5, True, None], "object": OBJECT, "nothing": None, "empty": "",
        "text": "a:b;", "gaps": {"1": "x", "3": "y"}, "nul": "a\ufffdb", "ümlaut": "Größe 李",
    }  # fmt: skip
    assert order["order_number"] == "A-17"
    (why,) = [line["why"] for line in printed.lines if line["id"] == REFUNDED]
    assert "'object' contains an object of PHP" in why
    assert "'nul' were replaced by U+FFFD" in why
    ids = erp.get("/orders", {"filter[metadata][_erp_id]": "4711", "fields": "id"}).get_json()
    assert ids == {"orders": [{"id": REFUNDED}]}
    legacy = erp.get(f"/wc-api/v3/orders/{REFUNDED}", {"filter[meta]": "true"}).get_json()["order"]
    assert legacy["order_meta"].keys() == {key for key in found if not key.startswith("_")}
    line = order["line_items"][0]["metadata"]
    assert line == {"_reduced_stock": "2", "box": {"w": 1}}
    coupon = erp.get(f"/coupons/{FIRST_COUPON}", {"fields": "metadata"}).get_json()["coupon"]
    assert coupon == {"metadata": {"_campaign": {"id": 7}, "budget": "12.5"}}


@pytest.mark.sample(1)
@each_layout
def test_refunds_have_their_items_and_metadata(shop_file, import_dump, erp, layout):
    import_dump(shop_file(FullShop(layout)))
    shop = FullShop(layout)
    created = (shop.time(5) + timedelta(days=1)).strftime(ISO)
    path = f"/orders/{REFUNDED}/refunds/{REFUND}"
    assert erp.get(path, {"filter[meta]": "true"}).get_json()["order_refund"] == {
        "id": REFUND, "order_id": REFUNDED, "created_at": created, "updated_at": created,
        "amount": "7.50", "reason": "Broken", "refunded_by": 1,
        "line_items": [
            {"id": shop.line, "quantity": 1, "total": "5.00", "total_tax": "0.95",
             "metadata": {"_restocked": "yes", "_line_tax_data": {"total": {"1": "-0.95"}}}},
            {"id": shop.line + 1, "quantity": 0, "total": "1.55", "total_tax": "0.00",
             "metadata": {}},
        ],
        "metadata": {"_refunded_payment": "1", "rma": {"no": 5}},
    }  # fmt: skip
    order = erp.get(f"/orders/{REFUNDED}", {"fields": "status,total_refunded"}).get_json()
    assert order["order"]["total_refunded"] == "7.50"
    # What is left of the line is one unit less.
    body = {"order_refund": {"line_items": [{"id": shop.line, "quantity": 3}], "amount": "1.00"}}
    assert erp.post(f"/orders/{REFUNDED}/refunds", body).status_code == 400


@pytest.mark.sample(1)
@each_layout
def test_payment_and_origin(shop_file, import_dump, erp, layout):
    import_dump(shop_file(FullShop(layout)))
    shop = FullShop(layout)
    order = erp.get(f"/orders/{REFUNDED}").get_json()["order"]
    paid = shop.order(5)["created"].strftime(ISO) if shop.order(5)["paid"] else None
    wanted = ("paid_at", "created_via", "prices_include_tax", "discount_tax", "version")
    assert [order[name] for name in wanted] == [paid, "checkout", False, "0.00", order["version"]]
    assert order["version"] == ("8" if layout == "8" else layout)
    line = order["line_items"][0]
    assert line["taxes"] == [{"id": 1, "total": line["total_tax"], "subtotal": line["total_tax"]}]
    (fee,) = order["fee_lines"]
    assert (fee["id"], fee["total"], fee["total_tax"]) == (90_010, "3.00", "0.57")
    changed = erp.put(f"/orders/{REFUNDED}", {"order": {"line_items": [
        {"name": "Cup", "total": "1.00"}]}}).get_json()["order"]  # fmt: skip
    assert changed["line_items"][-1]["id"] > 90_010
    made = erp.post("/coupons", {"coupon": {"code": "new", "metadata": {"a": 1}}})
    assert made.status_code == 201


def test_list_of_the_page_is_that_of_the_code():
    page = Path("docs/moving-in.md").read_text()
    for _, keys, why in LEFT_OUT:
        named = re.findall(r"\w+", keys[7:]) if keys.startswith("(?i:") else keys.split()
        for key in named:
            assert f"`{key.replace('.+', '*').replace('.*', '*')}`" in page, key
        assert f"| {why} |" in page
    fields = {"_refunded_item_id", "_qty", "_line_total", "_line_tax", "cost", "total_tax"}
    for key in REPEATED - fields:
        assert f"`{key}`" in page


@pytest.mark.slow
def test_key_that_is_kept(app, shop_file, import_dump):
    options = ("--keep-key", "_stripe_token", "--keep-key", "wp_2_capabilities")
    printed = import_dump(shop_file(FullShop("3.5")), *options)
    assert not printed.keys.keys() & {"_stripe_token", "wp_2_capabilities"}
    with app.app_context():
        keys = set(fetch(select(ORDER_METADATA.c.key)))
        assert ("_stripe_token",) in keys
        assert ("wp_2_capabilities",) in set(fetch(select(CUSTOMER_METADATA.c.key)))
    result = verified(app, shop_file(FullShop("3.5")), *options)
    assert result.exit_code == 0, result.output


def verified(app, source, *options):
    return app.test_cli_runner().invoke(args=["import", "verify", str(source), *options])


@pytest.mark.slow
@each_layout
def test_verification_compares_metadata_and_refunds(app, shop_file, import_dump, layout):
    source = shop_file(FullShop(layout))
    import_dump(source)
    result = verified(app, source, "--sample", "1000")
    assert result.exit_code == 0, result.output
    assert "  metadata: " in result.output
    with app.app_context(), db.engine.begin() as connection:
        connection.execute(
            ITEM_METADATA.update().where(ITEM_METADATA.c.item_id == 90_001).values(value='"no"')
        )
        connection.execute(
            CUSTOMER_METADATA.delete().where(CUSTOMER_METADATA.c.key == "vat_number")
        )
    result = verified(app, source)
    assert result.exit_code == 1
    assert f"{REFUND}, metadata: " in result.output
    assert "users 2, metadata: 'vat_number' differ" in result.output


@pytest.mark.slow
@pytest.mark.both_databases
def test_second_import_replaces_what_has_changed(app, shop_file, import_dump, erp):
    first, second = FullShop("3.5"), FullShop("3.5")
    import_dump(shop_file(first))
    changed = [
        (row_id, owner, key, "4712" if key == "_erp_id" else value)
        for row_id, owner, key, value in second.extra["postmeta"]
        if key not in {"tracking", "rma"}
    ]
    second.extra["postmeta"] = changed
    printed = import_dump(shop_file(second))
    assert printed.row("orders")[1:4] == [0, 1, 19]
    assert printed.row("refunds")[1:4] == [0, 1, 2]
    order = erp.get(f"/orders/{REFUNDED}", {"filter[meta]": "true"}).get_json()["order"]
    assert order["metadata"]["_erp_id"] == "4712"
    assert "tracking" not in order["metadata"]
    assert order["line_items"][0]["metadata"]["_reduced_stock"] == "2"
    path = f"/orders/{REFUNDED}/refunds/{REFUND}"
    refund = erp.get(path, {"filter[meta]": "true"}).get_json()["order_refund"]
    assert refund["metadata"] == {"_refunded_payment": "1"}
    assert refund["line_items"][0]["metadata"]["_restocked"] == "yes"
    # What was edited here stays.
    erp.put(f"/orders/{REFUNDED}", {"order": {"metadata": {"_erp_id": "mine"}}})
    erp.put(path, {"order_refund": {"reason": "mine"}})
    import_dump(shop_file(first))
    order = erp.get(f"/orders/{REFUNDED}", {"filter[meta]": "true"}).get_json()["order"]
    assert order["metadata"]["_erp_id"] == "mine"
    assert erp.get(path).get_json()["order_refund"]["reason"] == "mine"


@pytest.mark.slow
def test_notes_of_an_earlier_import_are_replaced(app, shop_file, import_dump, erp):
    source = shop_file(FullShop("3.5"))
    import_dump(source)
    with app.app_context(), db.engine.begin() as connection:
        note = {"order_id": REFUNDED, "created_at": FullShop("3.5").time(5), "customer_note": False,
                "note": f"Refunded 7.50 EUR (refund {REFUND}): Broken"}  # fmt: skip
        (note_id,) = connection.execute(
            insert(ORDER_NOTES).values(note).returning(ORDER_NOTES.c.id)
        ).one()
        (of,) = connection.execute(select(IMPORT_SOURCES.c.id)).one()
        record = {"import_source_id": of, "kind": "refund", "source_id": REFUND,
                  "target_id": note_id, "fingerprint": b"x"}  # fmt: skip
        connection.execute(insert(IMPORTED_RECORDS).values(record))
    import_dump(source)
    notes = erp.get(f"/orders/{REFUNDED}/notes").get_json()["order_notes"]
    assert [each for each in notes if each["note"].startswith("Refunded")] == []
    with app.app_context():
        former = select(func.count()).where(IMPORTED_RECORDS.c.kind == "refund")
        assert fetch(former)[0][0] == 0


@pytest.mark.slow
@pytest.mark.both_databases
def test_ids_that_are_in_use(app, shop_file, import_dump, erp):
    """Metadata and refunds of another shop get new IDs."""
    import_dump(shop_file(FullShop("3.5")))
    other = FullShop("3.5")
    with app.app_context():
        before = fetch(select(func.count()).select_from(ORDER_METADATA))[0][0]
    source = shop_file(other)
    source.write_text(source.read_text().replace("https://old.example/shop", "https://b.example"))
    import_dump(source, "--new-ids")
    with app.app_context():
        rows = fetch(select(ORDER_METADATA.c.id, ORDER_METADATA.c.order_id))
        assert len(rows) == 2 * before
        assert len({row[0] for row in rows}) == 2 * before
        sums = fetch(select(ORDERS.c.total_refunded).where(ORDERS.c.total_refunded > Decimal(0)))
        assert len(sums) == 6
    assert erp.get("/refunds/count").get_json() == {"count": 6}
