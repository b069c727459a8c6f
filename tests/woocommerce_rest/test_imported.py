"""The recorded shop, imported from a dump of its tables: the old keys read what was recorded."""

import re

import pytest

from tests.dumps.dialects import write_dump
from tests.woocommerce.imports import import_dump
from tests.woocommerce_rest.recorded_shop import RecordedShop
from tests.woocommerce_rest.replay import replay
from tests.woocommerce_rest.test_dialect import Shop
from tests.woocommerce_rest.test_replay import SETTINGS

__all__ = ["import_dump"]  # a fixture

READS = ("read/", "coupons/list", "orders/list", "customers/list", "links/", "full/")
# Webhooks are imported as paused.
_PAUSED = ("read/others#9", {"body": [("$.status", "active", "paused")]})
# Entries get new IDs.
_ENTRY_ID = re.compile(r".*meta_data\[\d+\]\.id")


def _left(problems):
    found = {
        part: [each for each in differences if not _ENTRY_ID.fullmatch(each[0])]
        if isinstance(differences, list)
        else differences
        for part, differences in problems.items()
    }
    return {part: each for part, each in found.items() if each}


@pytest.mark.one_database
@pytest.mark.parametrize("layout", ["8", pytest.param("3.5", marks=pytest.mark.slow)])
def test_recorded_reads(app_with, tmp_path, layout):
    app = app_with(**SETTINGS)
    write_dump(tmp_path / "shop.sql", RecordedShop(layout))
    imported = app.test_cli_runner().invoke(
        args=["import", "woocommerce", str(tmp_path / "shop.sql"), "--keep-key", "_secret_ref"]
    )
    assert imported.exit_code == 0, imported.output
    different = [
        (f"{exchange['case']}#{exchange['step']}", left)
        for case in READS
        for exchange, result, problems in replay(app, case, prepare=lambda _: None)
        if result == "different" and (left := _left(problems))
    ]
    assert different == [_PAUSED]


def test_new_records_of_all_kinds_have_ids_above_those_of_the_source(app, tmp_path, import_dump):
    write_dump(tmp_path / "shop.sql", RecordedShop("8"))
    import_dump(tmp_path / "shop.sql")
    shop = Shop(app)
    order = shop.ok("POST", "/orders", {"line_items": [{"name": "Mug", "total": "9"}]})
    coupon = shop.ok("POST", "/coupons", {"code": "new"})
    refund = shop.ok("POST", f"/orders/{order['id']}/refunds", {"amount": "1"})
    assert order["id"] > 75
    assert [coupon["id"], refund["id"]] == [order["id"]] * 2
