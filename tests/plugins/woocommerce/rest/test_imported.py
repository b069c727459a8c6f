"""The recorded shop, imported from a dump of its tables: the old keys read what was recorded."""

import pytest
from sqlalchemy import update

from app.db.session import now, run_in_transaction
from app.models import COUPONS
from tests.dumps.dialects import write_dump
from tests.plugins.woocommerce.importer.imports import import_dump
from tests.plugins.woocommerce.rest.recorded_shop import RecordedShop
from tests.plugins.woocommerce.rest.replay import cases, replay
from tests.plugins.woocommerce.rest.test_dialect import Shop
from tests.plugins.woocommerce.rest.test_replay import SETTINGS

__all__ = ["import_dump"]  # a fixture

READS = (
    "read/", "coupons/list", "orders/list", "customers/list", "links/", "full/lists", "refunds/read",
    "posts-storage/list", "posts-storage/read", "posts-storage/reports", "posts-storage/perm",
    "reports/", *(case for case in cases() if case.endswith("-read")),
)  # fmt: skip
# Webhooks are imported as paused.
_PAUSED = [
    ("read/others#9", {"body": [("$.status", "active", "paused")]}),
    ("full/lists#3", {"body": [("$[0].status", "active", "paused")]}),
]


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["8", pytest.param("3.5", marks=pytest.mark.slow)])
def test_recorded_reads(app_with, tmp_path, layout):
    app = app_with(**SETTINGS)
    write_dump(tmp_path / "shop.sql", RecordedShop(layout))
    source = [str(tmp_path / "shop.sql"), "--keep-key", "_secret_ref"]
    for command in ("woocommerce", "verify"):
        done = app.test_cli_runner().invoke(args=["import", command, *source])
        assert done.exit_code == 0, done.output
    with app.app_context():  # drafts arrive paused, and the lists of the source do not show them
        drafts = update(COUPONS).where(~COUPONS.c.active)
        run_in_transaction(
            lambda session: session.execute(drafts.values(status="trash", trashed_at=now()))
        )
    different = [
        (f"{exchange['case']}#{exchange['step']}", problems)
        for case in READS
        for exchange, result, problems in replay(app, case, prepare=lambda _: None)
        if result == "different"
    ]
    assert different == _PAUSED


def test_recorded_downloads(app_with, tmp_path):
    app = app_with(**SETTINGS)
    write_dump(tmp_path / "shop.sql", RecordedShop("8", with_downloads=True))
    args = ["import", "woocommerce", str(tmp_path / "shop.sql")]
    assert app.test_cli_runner().invoke(args=args).exit_code == 0
    results = replay(app, "extra3/downloads", prepare=lambda *_, **__: None)
    assert [result for _, result, _ in results] == ["equal", "equal"]


@pytest.mark.slow
@pytest.mark.both_databases
def test_metadata_of_imported_lines_keeps_its_ids(app, tmp_path, import_dump):
    write_dump(tmp_path / "shop.sql", RecordedShop("8"))
    import_dump(tmp_path / "shop.sql")
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
    make_app, migrated_database_url, tmp_path
):
    # A database of its own, in which no test has used IDs.
    app = make_app(DATABASE_URL=migrated_database_url)
    write_dump(tmp_path / "shop.sql", RecordedShop("8"))
    args = ["import", "woocommerce", str(tmp_path / "shop.sql")]
    imported = app.test_cli_runner().invoke(args=args)
    assert imported.exit_code == 0, imported.output
    shop = Shop(app)
    order = shop.ok("POST", "/orders", {"line_items": [{"name": "Mug", "total": "9"}]})
    coupon = shop.ok("POST", "/coupons", {"code": "new"})
    refund = shop.ok("POST", f"/orders/{order['id']}/refunds", {"amount": "1"})
    assert order["id"] > 75
    assert [coupon["id"], refund["id"]] == [order["id"]] * 2
