"""``coupons generate``: any number of coupons from the command line."""

import json
import re

import pytest
from sqlalchemy import select

from app.cli import progress
from app.db.read_pool import fetch
from app.models import Coupon, CouponBatch
from app.services.coupons import batches as coupon_batches
from tests.api_client import reply

GENERATE = ("coupons", "generate", "--count")


@pytest.fixture
def run(app):
    """Return a function: run a command of the app and return its result."""
    return lambda *arguments: app.test_cli_runner().invoke(args=[*map(str, arguments)])


def stored(app, *columns):
    with app.app_context():
        return fetch(select(*columns).order_by(columns[0]))


def test_generate(app, run, admin):
    fields = {"type": "percent", "amount": "10.50", "product_ids": [3]}
    result = run(*GENERATE, 25_000, "--prefix", "CLI-", "--coupon", json.dumps(fields))
    assert result.exit_code == 0, result.stderr
    (batch_id,) = (row.id for row in stored(app, CouponBatch.id))
    assert result.stdout == f"Batch {batch_id}: 25,000 coupons.\n"
    codes = [row.code for row in stored(app, Coupon.code)]
    assert len(set(codes)) == 25_000
    assert all(code.startswith("cli-") for code in codes)
    coupon = admin.get(f"/coupons/code/{codes[0]}").get_json()["coupon"]
    assert {name: coupon[name] for name in fields} == fields
    response = admin.get(f"/coupons/batches/{batch_id}")
    assert response.get_json()["batch"]["unused"] == 25_000


def test_generate_prints_json(app, run):
    result = run(*GENERATE, 2, "--pattern", "#####-####", "--json")
    (line,) = result.stdout.splitlines()
    (batch_id,) = (row.id for row in stored(app, CouponBatch.id))
    assert json.loads(line) == {
        "id": batch_id,
        "count": 2,
        "prefix": "",
        "pattern": "#####-####",
        "charset": "abcdefghjklmnpqrstuvwxyz23456789",
    }


def test_fields_from_a_file(app, run, tmp_path):
    file = tmp_path / "coupon.json"
    file.write_text('{"amount": 5.25, "description": "Été"}')
    assert run(*GENERATE, 2, "--coupon", f"@{file}").exit_code == 0
    assert {
        (str(row.amount), row.description) for row in stored(app, Coupon.amount, Coupon.description)
    } == {("5.25", "Été")}


def test_author(app, run, admin, client_for):
    manager = client_for("shop_manager", "read_write")
    assert run(*GENERATE, 1, "--login", "SHOP_MANAGER").exit_code == 0
    (row,) = stored(app, Coupon.author_id)
    assert row.author_id == manager.key.user_id
    assert run(*GENERATE, 1).exit_code == 0
    assert stored(app, Coupon.author_id.is_(None)).count((True,)) == 1
    for batch in admin.get("/coupons/batches").get_json()["batches"]:
        assert reply(manager.delete(f"/coupons/batches/{batch['id']}")) == (200, {"trashed": 1})


PATTERN_TOO_SMALL = (
    "The pattern has 32,768 possible codes, but needs 1,000,000 for so many coupons. "
    "Add # signs, or use --allow-guessable."
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["0"], "Invalid value for '--count': 0 is not in the range x>=1."),
        (["1", "--login", "nobody"], "Invalid value for --login: user 'nobody' does not exist."),
        (["1", "--coupon", "{"], "Invalid value for --coupon: is not valid JSON: "),
        (["1", "--coupon", "[]"], "Invalid value for --coupon: must be a JSON object."),
        (["1", "--coupon", "@/no/such/file"], "/no/such/file: No such file or directory."),
        (["1", "--coupon", '{"amount": "x"}'], "coupon.amount: must be a decimal number."),
        (["1", "--coupon", '{"type": "x"}'], "Invalid coupon type - the coupon type must be any"),
        (["1", "--charset", "-"], "--charset: must consist of letters and digits."),
        (["1", "--pattern", "###"], PATTERN_TOO_SMALL),
        (["1", "--prefix", "a&b"], "--prefix: must not contain <, > or &."),
        (["1", "--prefix", "x" * 501], "prefix: is longer than 500 characters."),
    ],
)
def test_rejected(app, run, options, message):
    result = run("coupons", "generate", "--count", *options)
    assert result.exit_code != 0
    assert message in result.stderr
    assert result.stdout == ""
    assert stored(app, CouponBatch.id) == stored(app, Coupon.id) == []


def test_file_that_is_not_text_is_an_error(run, tmp_path):
    file = tmp_path / "coupon.json"
    file.write_bytes(b'{"description": "\xfc"}')
    result = run("coupons", "generate", "--count", 1, "--coupon", f"@{file}")
    assert result.exit_code == 2
    assert "Invalid value for --coupon: is not valid JSON: 'utf-8' codec" in result.stderr


def test_unknown_fields_are_errors(app, run):
    given = '{"typ": "percent", "code": "x", "amount": "5"}'
    result = run("coupons", "generate", "--count", 1, "--coupon", given)
    assert result.exit_code == 1
    assert result.stderr == (
        "Error: coupon.typ: unknown field 'typ'; did you mean 'type'? "
        "coupon.code: unknown field 'code'.\n"
    )
    assert stored(app, CouponBatch.id) == stored(app, Coupon.id) == []


def test_all_or_nothing(app, run, monkeypatch):
    """The third chunk fails: nothing of the batch is stored."""
    insert, calls = coupon_batches.insert_ignore, []

    def failing(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise OSError(28, "No space left on device", "disk")
        return insert(*arguments)

    monkeypatch.setattr(coupon_batches, "CHUNK", 100)
    monkeypatch.setattr(coupon_batches, "insert_ignore", failing)
    result = run(*GENERATE, 500)
    assert result.exit_code == 1
    assert "disk: No space left on device. Free up disk space." in result.stderr
    assert len(calls) == 3
    assert stored(app, CouponBatch.id) == stored(app, Coupon.id) == []


def test_slow_command_prints_its_progress_where_no_terminal_is(capsys, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    with progress.showing_progress("coupons", 4) as note:
        note(1)
    shown = capsys.readouterr().err
    assert re.fullmatch(r"coupons: 1 of 4, [\d,]+/s, [\d,]+ s left\n", shown)
