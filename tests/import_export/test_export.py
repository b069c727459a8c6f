"""``export``: NDJSON and CSV files that are complete or do not exist (migration 2)."""

import csv
import json
import os
import stat
import subprocess
import sys
import threading
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
from sqlalchemy import text

from app.db.session import run_in_transaction
from app.errors import InvalidParams
from app.import_export import exports
from tests.coupons.calls import BLANK
from tests.customers import calls as customers
from tests.factories import insert_download, insert_order
from tests.serving import PATIENCE

EXPORT = import_module("app.cli.export")  # the package has the command under this name

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(app):
    """Return a function: run ``export`` and return its result."""
    return lambda *arguments: app.test_cli_runner().invoke(args=["export", *map(str, arguments)])


@pytest.fixture
def exported(run):
    """Return a function: the records of an export to standard output."""

    def read(*arguments):
        result = run(*arguments)
        assert result.exit_code == 0, result.stderr
        return [json.loads(line) for line in result.stdout_bytes.splitlines()]

    return read


def test_coupons_are_what_the_api_returns(admin, exported, make_coupon):
    """After ``kind``, a line has the fields of the API and then those that a restore needs."""
    coupon = make_coupon(
        code="summer", type="percent", amount="-5", product_ids=[3, 1], usage_limit=7,
        expiry_date="2030-12-31", customer_emails=["*@example.com"], minimum_amount="10",
        description="Zeile 1\nŁódź",
    )  # fmt: skip
    stored = {"status": "published", "trashed_at": None, "author_id": admin.key.user_id,
              "batch_id": None, "reserved_count": 0}  # fmt: skip
    assert exported("coupons", "-") == [{"kind": "coupon", **coupon, **BLANK, **stored}]


def test_customers_are_what_the_api_returns(app, admin, exported, make_customer):
    customer = make_customer(first_name="Ada", billing_address={"city": "Köln", "phone": "+49"})
    insert_order(app, customer_id=customer["id"])
    shown = admin.get(f"/customers/{customer['id']}").get_json()["customer"]
    _, found = exported("customers", "-")
    assert found == {
        "kind": "customer", **shown, **customers.BLANK,
        "updated_at": customer["created_at"], "shipping_phone": "", "roles": ["customer"],
    }  # fmt: skip
    assert found["orders_count"] == 1


def test_orders_have_notes_and_downloads(app, admin, exported):
    order_id = insert_order(app)
    insert_download(app, order_id, downloads_remaining=3)
    note = admin.post(f"/orders/{order_id}/notes", {"order_note": {"note": "Packed."}})
    shown = admin.get(f"/orders/{order_id}").get_json()["order"]
    del shown["customer"]
    (found,) = exported("orders", "-")
    (download,) = found.pop("downloads")
    assert found == {
        "kind": "order", **shown, "trashed_at": None, "status_before_trash": None,
        "next_item_id": 1, "item_details": None, "total_refunded": "0.00", "items": None,
        "fees": None, "shipping_phone": "", "erased_at": None, "notes": [note.get_json()["order_note"] | {"author": ""}],
    }  # fmt: skip
    assert (download["download_id"], download["downloads_remaining"]) == ("file-3", 3)
    assert (download["file_name"], download["access_expires"]) == ("E-book", None)


def test_redemptions_and_batches(admin, exported, make_coupon):
    make_coupon(code="summer")
    body = {"redemption": {"code": "summer", "reference": "cart-1", "amount": "2.50"}}
    use = admin.post("/redemptions", body).get_json()["redemption"]
    assert exported("redemptions", "-") == [
        {"kind": "redemption", **use, "campaign_id": None, "holds_slot": False}
    ]
    batch = admin.post("/coupons/generate", {"generate": {"count": 2}}).get_json()["batch"]
    names = ("id", "name", "created_at", "count", "prefix", "pattern", "charset")
    kept = {name: batch[name] for name in names} | {"campaign_id": None}
    author = {"author_id": admin.key.user_id}
    assert exported("batches", "-") == [{"kind": "batch", **kept, **author}]


def test_an_export_has_everything_in_the_order_of_ids(
    app, admin, exported, make_coupon, monkeypatch
):
    monkeypatch.setattr("app.import_export.exports.CHUNK", 7)
    ids = [make_coupon()["id"] for _ in range(20)]
    for coupon_id in ids[::3]:
        admin.delete(f"/coupons/{coupon_id}")
    found = exported("coupons", "-")
    assert [coupon["id"] for coupon in found] == ids
    assert [coupon["id"] for coupon in found if coupon["status"] == "trash"] == ids[::3]
    order_ids = [insert_order(app) for _ in range(9)]
    for order_id in order_ids:
        admin.post(f"/orders/{order_id}/notes", {"order_note": {"note": f"note of {order_id}"}})
    found = exported("orders", "-")
    assert [order["notes"][0]["note"] for order in found] == [f"note of {id_}" for id_ in order_ids]


@pytest.mark.parametrize(
    ("kind", "filters", "codes"),
    [
        ("coupons", ["type=percent"], ["b", "gone"]),
        ("coupons", ["status=trash"], ["gone"]),
        ("coupons", ["status=published"], ["a", "b", "c"]),
        ("coupons", ["status=published", "type=percent"], ["b"]),
        ("coupons", ["q=SEARCHED"], ["c"]),
        ("coupons", ["created_at_max=2000-01-01"], []),
        ("coupons", ["batch=99"], []),
        ("redemptions", ["code=A"], ["a"]),
        ("redemptions", ["status=confirmed"], []),
        ("redemptions", ["customer_id=0", "status=reserved"], ["a"]),
    ],
)
def test_filters(admin, exported, make_coupon, kind, filters, codes):
    make_coupon(code="a")
    make_coupon(code="b", type="percent")
    make_coupon(code="c", description="is searched")
    admin.delete(f"/coupons/{make_coupon(code='gone', type='percent')['id']}")
    admin.post("/redemptions", {"redemption": {"code": "a", "reference": "cart"}})
    options = [word for each in filters for word in ("--filter", each)]
    assert [record["code"] for record in exported(kind, "-", *options)] == codes


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ([], 4),
        (["status=trash"], 1),
        (["status=completed,trash"], 3),
        (["customer_id=0"], 4),
        (["q=müll"], 1),
        (["created_at_min=2026-01-02", "created_at_max=2026-01-03"], 4),
    ],
)
def test_filters_of_orders(app, exported, filters, numbers):
    insert_order(app)
    insert_order(app, status="pending")
    insert_order(app, status="trash")
    insert_order(app, search_text="muller")
    options = [word for each in filters for word in ("--filter", each)]
    assert len(exported("orders", "-", *options)) == numbers


def test_filters_of_customers(app, admin, exported, make_customer):
    ada = make_customer(email="ada@example.com")
    make_customer(email="grace@example.com")
    insert_order(app, customer_id=ada["id"], status="completed")  # 11.00
    for filters, number in (
        (["total_spent_min=11"], 1), (["total_spent_min=11.01"], 0),
        (["total_spent_max=0", "role=customer"], 1),
        ([], 3), (["role=all"], 3), (["role=customer"], 2), (["role=administrator"], 1),
        (["q=ada"], 1), (["q=*@example.com", "role=customer"], 2), (["q=*"], 3),
    ):  # fmt: skip
        options = [word for each in filters for word in ("--filter", each)]
        assert len(exported("customers", "-", *options)) == number


VALUES = ["1", "2026-01-01", "active", "trash", "percent", "completed", "confirmed", "customer"]
"""Values of which each filter accepts at least one that does not match everything."""


def test_no_filter_is_accepted_and_ignored(app):
    with app.app_context():
        for kind, of_kind in EXPORT._FILTERS.items():
            for field in of_kind.schema().fields.values():
                name = field.data_key.removeprefix("filter[").rstrip("]")
                if name != "metadata_value":  # without a key, an error
                    assert any(map(partial(found_by, kind, name), VALUES)), (kind, name)


def found_by(kind, name, value):
    """The conditions of a filter; none if it does not accept the value."""
    try:
        return EXPORT.conditions(kind, [f"{name}={value}"])
    except InvalidParams:
        return []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["coupons", "-", "--filter", "typ=percent"], "unknown filter 'typ'; did you mean 'type'?"),
        (["coupons", "-", "--filter", "type"], "'type' is not of the form NAME=VALUE."),
        (["coupons", "-", "--filter", "zzz=1"], "unknown filter 'zzz'. Known filters: batch, "),
        (["coupons", "-", "--filter", "type=gift"], "--filter type: must be one of fixed_cart"),
        (["coupons", "-", "--filter", "status=draft"], "status: must be one of published, trash."),
        (["coupons", "-", "--filter", "created_at_min=x"], "created_at_min: must be a date"),
        (["orders", "-", "--filter", "status=x"], "--filter status: unknown status 'x'"),
        (["redemptions", "-", "--filter", "status=x"], "unknown status 'x'"),
        (["all", "-", "--filter", "q=x"], "--filter requires a kind of record."),
        (["all", "x.csv"], "A CSV file contains one kind of record"),
        (["customers", "x.csv", "--password-hashes"], "and no password hashes."),
        (["gifts", "-"], "'gifts' is not one of"),
        (["coupons", "/no/such/folder/x"], "Error: /no/such/folder/x: No such file or directory."),
    ],
)
def test_rejected(run, arguments, message):
    result = run(*arguments)
    assert result.exit_code != 0
    assert message in result.stderr
    assert result.stdout == ""


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_csv_has_a_row_for_each_record(app, admin, run, make_coupon, make_customer, tmp_path):
    make_coupon(code="=cmd", amount="-5", product_ids=[3, 1], description='"a", b\r\nc')
    assert run("coupons", tmp_path / "coupons.csv").exit_code == 0
    (row,) = rows(tmp_path / "coupons.csv")
    expected = {"code": "'=cmd", "amount": "-5.00", "product_ids": "3|1", "individual_use": "false",
                "usage_limit": "", "expiry_date": "", "description": '"a", b\r\nc'}  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    customer = make_customer(billing_address={"city": "Köln", "phone": "+49 30"})
    assert run("customers", tmp_path / "customers.csv").exit_code == 0
    _, row = rows(tmp_path / "customers.csv")
    expected = {"id": str(customer["id"]), "billing_city": "Köln", "billing_phone": "'+49 30",
                "shipping_city": "", "roles": "customer"}  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    order_id = insert_order(app)
    assert run("orders", tmp_path / "orders.csv").exit_code == 0
    (row,) = rows(tmp_path / "orders.csv")
    shown = admin.get(f"/orders/{order_id}").get_json()["order"]
    assert json.loads(row["line_items"]) == shown["line_items"]
    assert (row["payment_paid"], row["billing_last_name"]) == ("true", "Müller")
    assert (row["shipping_city"], row["shipping_methods"]) == ("Köln", "Flat rate")


@pytest.mark.parametrize("kind", ["coupons", "customers", "orders", "redemptions", "batches"])
def test_csv_of_an_empty_shop_is_a_header(app, run, kind, tmp_path):
    file = tmp_path / "empty.csv"
    assert run(kind, file).exit_code == 0
    (header,) = file.read_text().splitlines()
    assert header.startswith("id,")
    ndjson = tmp_path / "empty.ndjson"
    assert run(kind, ndjson).exit_code == 0
    assert ndjson.read_bytes() == b""


def test_format_is_chosen_by_name_or_option(run, make_coupon, tmp_path):
    make_coupon(code="a")
    for name, options, is_csv in (
        ("a.CSV", [], True), ("a.txt", [], False), ("a.json", ["--format", "csv"], True),
        ("b.csv", ["--format", "ndjson"], False),
    ):  # fmt: skip
        run("coupons", tmp_path / name, *options)
        assert (tmp_path / name).read_text().startswith("id,") == is_csv


def test_only_data_is_on_standard_output(run, make_coupon):
    make_coupon()
    result = run("coupons", "-")
    assert len(result.stdout.splitlines()) == 1
    assert result.stderr == "coupons: 1 exported.\n"


def test_a_failed_export_leaves_no_file(run, make_coupon, monkeypatch, tmp_path):
    make_coupon()
    good, other = tmp_path / "good.ndjson", tmp_path / "other.ndjson"
    run("coupons", good)
    before = good.read_bytes()
    calls = []

    def failing(*arguments, **options):
        calls.append(arguments)
        yield from ([record] for record in [{"id": 1}])
        raise OSError(28, "No space left on device", "disk")

    monkeypatch.setattr(EXPORT, "records", failing)
    for file in (good, other):
        result = run("coupons", file)
        assert result.exit_code == 1
        assert "No space left on device" in result.stderr
    assert len(calls) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["good.ndjson"]
    assert good.read_bytes() == before
    assert exports.records is not failing


def test_files_can_be_read_by_their_owner_only(run, tmp_path):
    file, link = tmp_path / "real.ndjson", tmp_path / "link.ndjson"
    link.symlink_to(file)
    assert run("customers", link).exit_code == 0
    assert link.is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_named_pipe_is_written_to(run, make_coupon, tmp_path):
    make_coupon(code="a")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    assert run("coupons", pipe).exit_code == 0
    reader.join(20)
    assert json.loads(read[0])["code"] == "a"
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_an_export_is_one_state_of_the_database(app, exported, make_coupon, monkeypatch):
    """A coupon that is created while the export runs is not in it, nor in a later kind."""
    make_coupon(code="a")
    original = exports.number_of

    def number_of(*arguments):
        found = original(*arguments)
        add = text("INSERT INTO user_roles SELECT id, 'late', 9, created_at FROM users WHERE NOT EXISTS "
                   "(SELECT 1 FROM user_roles WHERE role = 'late')")  # fmt: skip
        run_in_transaction(lambda session: session.execute(add))
        return found

    monkeypatch.setattr(EXPORT, "number_of", number_of)
    records = exported("all", "-")
    assert [record["kind"] for record in records] == ["customer", "coupon"]
    assert records[0]["roles"] == ["administrator"]
    (later,) = exported("customers", "-")
    assert later["roles"] == ["administrator", "late"]


@pytest.mark.slow
def test_a_pipe_that_is_closed_early_ends_the_command_quietly(settings, app, make_coupon):
    for _ in range(3):
        make_coupon(description="x" * 60_000)
    command = [sys.executable, "-m", "app.main", "export", "coupons", "-"]
    environment = os.environ | {name: str(value) for name, value in settings.items() if value}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.read(10) == b'{"kind":"c'
        process.stdout.close()
        errors = process.stderr.read()
        process.wait(PATIENCE)
    assert b"Traceback" not in errors
    assert b"BrokenPipe" not in errors
