"""The recorded shop, imported from a dump of its tables: the old keys read what was recorded."""

import pytest

from tests.plugins.woocommerce.rest.replay import cases, replay
from tests.plugins.woocommerce.rest.seed import import_recorded_shop
from tests.plugins.woocommerce.rest.test_dialect import Shop
from tests.plugins.woocommerce.rest.test_replay import SETTINGS

READS = (
    "read/", "coupons/list", "orders/list", "customers/list", "links/", "full/lists", "refunds/read",
    "posts-storage/list", "posts-storage/read", "posts-storage/reports", "posts-storage/perm",
    "reports/", *(case for case in cases() if case.endswith("-read")),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["8", "3.5"])
def test_recorded_reads(app_with, layout):
    app = app_with(**SETTINGS)
    import_recorded_shop(app, layout, verify=True)
    results = (each for case in READS for each in replay(app, case, prepare=lambda _: None))
    assert [each for each in results if each[1] == "different"] == []


def test_recorded_downloads(app_with):
    results = replay(app_with(**SETTINGS), "extra3/downloads")
    assert [result for _, result, _ in results] == ["equal", "equal"]


@pytest.mark.slow
@pytest.mark.both_databases
def test_metadata_of_imported_lines_keeps_its_ids(app):
    import_recorded_shop(app, "8")
    shop = Shop(app)
    before = shop.ok("GET", "/orders/48")["line_items"]
    assert before[1]["meta_data"] == [
        {"id": 106, "key": "size", "value": "L", "display_key": "Size", "display_value": "L"}
    ]
    after = shop.ok("PUT", "/orders/48", {"customer_note": "Ring twice."})
    assert after["line_items"] == before
    refund = shop.ok("GET", "/orders/47/refunds")[0]
    assert [each["id"] for each in refund["line_items"][0]["meta_data"]] == [458]


@pytest.mark.slow
@pytest.mark.both_databases
def test_new_records_of_all_kinds_have_ids_above_those_of_the_source(
    make_app, migrated_database_url
):
    # A database of its own, in which no test has used IDs.
    app = make_app(DATABASE_URL=migrated_database_url)
    import_recorded_shop(app, "8")
    shop = Shop(app)
    order = shop.ok("POST", "/orders", {"line_items": [{"name": "Mug", "total": "9"}]})
    coupon = shop.ok("POST", "/coupons", {"code": "new"})
    refund = shop.ok("POST", f"/orders/{order['id']}/refunds", {"amount": "1"})
    assert order["id"] > 75
    assert [coupon["id"], refund["id"]] == [order["id"]] * 2
