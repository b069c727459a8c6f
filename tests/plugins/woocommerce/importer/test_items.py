"""Items of imported orders: what the legacy API of the source showed of them (migration 1)."""

import pytest

from tests.api_client import Client
from tests.commands import succeed
from tests.dumps.dialects import write_dump
from tests.dumps.schemas import LAYOUTS
from tests.dumps.shop import BEGIN, Shop, php
from tests.plugins.woocommerce.importer.test_import import ImportedKey

ORDER, PRODUCT, VARIATION = 500, 30, 31
ATTRIBUTES = {
    "engraving-text": {"name": "Engraving Text", "value": "a | b", "is_taxonomy": 0},
    "pa_size": {"name": "pa_size", "value": "", "is_taxonomy": 1},
}


class ShopWithItems(Shop):
    """A shop with one order, which has the given items."""

    def __init__(self, layout, *items):
        super().__init__(customers=0, coupons=0, orders=0, layout=layout)
        posts = [
            self.post(PRODUCT, "product", "publish", "Hoodie", "", BEGIN),
            self.post(VARIATION, "product_variation", "publish", "Hoodie", "", BEGIN, parent=PRODUCT),
        ]  # fmt: skip
        self.extra = {
            "posts": posts,
            "postmeta": [
                (900_001, PRODUCT, "_sku", "HOODIE"),
                (900_002, PRODUCT, "_product_attributes", php(ATTRIBUTES)),
            ],
            "woocommerce_order_items": [
                (number, name, kind, ORDER) for number, (name, kind, _) in enumerate(items, 1)
            ],
            "woocommerce_order_itemmeta": [
                (number * 100 + place, number, key, value)
                for number, (_, _, meta) in enumerate(items, 1)
                for place, (key, value) in enumerate(meta)
            ],
        }
        created = f"{BEGIN:%F %T}"
        if layout == "8":
            self.extra["wc_orders"] = [
                (ORDER, "wc-completed", "EUR", "shop_order", "0", "10", 0, "", created, created, 0,
                 "", "", "", "", "", "")
            ]  # fmt: skip
        else:
            posts.append(self.post(ORDER, "shop_order", "wc-completed", "Order", "", BEGIN))


@pytest.fixture
def imported(app, tmp_path):
    """Import an order with some items, and return it as the legacy API does."""

    def run(layout, *items):
        write_dump(tmp_path / "shop.sql", ShopWithItems(layout, *items))
        args = ["import", "woocommerce", str(tmp_path / "shop.sql")]
        succeed(app, *args)
        answer = Client(app, ImportedKey()).get(f"/wc-api/v3/orders/{ORDER}")
        assert answer.status_code == 200, answer.text
        return answer.get_json()["order"]

    return run


def line(name="Tea", **meta):
    return name, "line_item", [(f"_{key}", value) for key, value in meta.items()]


def test_amounts_with_fractions_of_a_cent(imported):
    """Prices that include tax leave fractions; sums are rounded once, at the end."""
    third = {"line_subtotal": "3.333333", "line_total": "3.333333", "qty": "1"}
    order = imported(
        "3.5",
        line(**third), line(**third), line(**third),
        line(line_subtotal="16.666666666667", line_total="16.666666666667", qty="2"),
        line(line_subtotal="0.0099", line_total="0.0099", qty="2"),
    )  # fmt: skip
    lines = order["line_items"]
    assert [each["total"] for each in lines] == ["3.33", "3.33", "3.33", "16.67", "0.01"]
    assert [each["price"] for each in lines] == ["3.33", "3.33", "3.33", "8.33", "0.00"]
    assert order["subtotal"] == "26.68"  # 9.999999 + 16.666667 + 0.0099


def test_lines_with_one_code_are_removed_together(imported, admin):
    used = [("discount_amount", "1")]
    imported(
        "3.5", line(line_total="8", line_subtotal="10", qty="1"), ("Half", "coupon", used),
        ("half", "coupon", used),
    )  # fmt: skip
    admin.post("/coupons", {"coupon": {"code": "other", "amount": "1"}})
    order = admin.put(f"/wp-json/wc/v3/orders/{ORDER}", {"coupon_lines": [{"code": "other"}]})
    assert [each["code"] for each in order.get_json()["coupon_lines"]] == ["other"]


def test_quantities_have_no_fraction(imported):
    order = imported(
        "3.5",
        line(line_total="10", line_subtotal="10", qty="2.5"),
        line(line_total="10", line_subtotal="10", qty="0"),
        line(line_total="10", line_subtotal="10"),
    )
    shown = [(each["quantity"], each["price"]) for each in order["line_items"]]
    assert shown == [(2, "5.00"), (0, "0.00"), (0, "0.00")]
    assert order["total_line_items_quantity"] == 2


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_missing_depends_on_the_version(imported, layout):
    order = imported(
        layout,
        line(line_total="12", line_subtotal="10", qty="1"),
        ("Wrapping", "fee", [("_line_total", "1")]),
        ("Express", "shipping", [("method_id", "flat_rate:3"), ("cost", "5")]),
        ("Flat", "shipping", [("method_id", "flat:rate"), ("instance_id", "3"), ("cost", "5")]),
    )
    is_old = layout == "2.6"
    (item,) = order["line_items"]
    assert (item["product_id"], item["tax_class"]) == ((None, None) if is_old else (0, ""))
    assert item["subtotal"] == ("10.00" if is_old else "12.00")
    assert order["fee_lines"][0]["tax_class"] == (None if is_old else "")
    methods = [each["method_id"] for each in order["shipping_lines"]]
    assert methods == ["flat_rate:3" if is_old else "flat_rate", "flat:rate"]


def test_taxes_of_one_code_are_one_line(imported):
    def tax(code, amount, shipping="0", **more):
        pairs = {"rate_id": "4", "tax_amount": amount, "shipping_tax_amount": shipping, **more}
        return code, "tax", list(pairs.items())

    order = imported(
        "3.5",
        tax("DE-19", "1.004", "0.004", label="VAT"), tax("DE-19", "0", rate_id="5", label="VAT"),
        tax("DE-7", "0.004"), tax("DE-0", "0"), tax("UP", "5"), tax("UP", "-5"),
    )  # fmt: skip
    assert order["tax_lines"] == [
        {"id": 2, "rate_id": 5, "code": "DE-19", "title": "VAT", "total": "1.01",
         "compound": False},
        {"id": 3, "rate_id": 4, "code": "DE-7", "title": "Tax", "total": "0.00",
         "compound": False},
    ]  # fmt: skip


def test_attributes_of_a_line(imported):
    order = imported(
        "3.5",
        ("Hoodie", "line_item", [
            ("_product_id", str(PRODUCT)), ("Add-on", "Ribbon"), ("Add-on", "Card"),
            ("engraving-text", "Für Dich"), ("attribute_pa_size", "large"), ("pa_gone", "x"),
            ("Note", "a: b"), ("List", php(["x"])), ("Text", php("plain")), ("Empty", ""),
            ("Zero", "0"), ("Percent", "100%25"), ("_hidden", "x"),
        ]),
    )  # fmt: skip
    meta = order["line_items"][0]["meta"]
    assert [(each["key"], each["label"], each["value"]) for each in meta] == [
        ("Add-on", "Add-on", "Ribbon"),
        ("Add-on", "Add-on", "Card"),
        ("engraving-text", "Engraving Text", "Für Dich"),
        ("attribute_pa_size", "Größe", "large"),
        ("pa_gone", "pa_gone", "x"),
        ("Note", "Note", "a: b"),
        ("Text", "Text", "plain"),
        ("Zero", "Zero", "0"),
        ("Percent", "Percent", "100%"),
    ]


@pytest.mark.parametrize(
    ("layout", "shown"), [("3.5", ["Gift"]), ("8", ["pa_size", "Colour", "Gift"])]
)
def test_attributes_in_the_name_of_a_variation(imported, layout, shown):
    """The legacy API of 3.0 to 5.9 left out what the name says already."""
    order = imported(
        layout,
        ("Hoodie - Extra Large, Blue", "line_item", [
            ("_product_id", str(PRODUCT)), ("_variation_id", str(VARIATION)),
            ("pa_size", "extra-large"), ("Colour", "Blue"), ("Gift", "Blu"),
        ]),
    )  # fmt: skip
    (item,) = order["line_items"]
    assert [each["key"] for each in item["meta"]] == shown
    assert (item["product_id"], item["sku"]) == (VARIATION, "HOODIE")
