"""``import coupons|customers``: the rules of bulk requests, line by line (migration 2)."""

import gzip
import json
import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from app.db.session import db, run_in_transaction
from app.import_export import imports
from app.models import ImportRun
from app.services.maintenance.import_runs import ImportProgress, report_interrupted_imports
from tests.commands import succeed
from tests.customers.calls import GIVEN
from tests.serving import ROOT
from tests.webhooks.receivers import until


@pytest.fixture
def run(app, tmp_path):
    """Return a function: import the content of a file, and return the result."""

    def invoke(kind, content, *options, name="file.csv"):
        file = tmp_path / name
        if isinstance(content, list):
            content = "\n".join(json.dumps(record) for record in content)
            file = file.with_suffix(".ndjson")
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        arguments = ["import", kind, str(file), *options]
        result = app.test_cli_runner().invoke(args=arguments)
        result.lines = [line.removeprefix(f"{file}, ") for line in result.stderr.splitlines()
                        if not line.startswith(f"{file}: ")]  # fmt: skip
        result.warnings = [line.removeprefix(f"{file}: ") for line in result.stderr.splitlines()
                           if line.startswith(f"{file}: ")]  # fmt: skip
        return result

    return invoke


def summary(kind, read=0, created=0, updated=0, skipped=0, failed=0, note=""):
    return (
        f"{kind}: {read:,} read, {created:,} created, {updated:,} updated, {skipped:,} skipped, "
        f"{failed:,} failed.{note}\n"
    )


def codes(admin):
    query = {"filter[orderby]": "id", "filter[order]": "asc"}
    return [coupon["code"] for coupon in admin.get("/coupons", query).get_json()["coupons"]]


def test_coupons_from_csv(admin, run):
    result = run(
        "coupons",
        "code,type,amount,individual_use,product_ids,usage_limit,expiry_date,customer_emails,description\r\n"
        'Summer,percent,10,TRUE,3|1|,5,2030-12-31,"*@example.com|a@example.com","a, ""b""\r\nc"\r\n'
        "'=x,fixed_cart,'-5,false,,,,,'+1\r\n",
    )
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == summary("coupons", read=2, created=2)
    first = admin.get("/coupons/code/summer").get_json()["coupon"]
    expected = {
        "type": "percent", "amount": "10.00", "individual_use": True, "product_ids": [3, 1],
        "usage_limit": 5, "expiry_date": "2030-12-31T00:00:00Z", "description": 'a, "b"\r\nc',
        "customer_emails": ["*@example.com", "a@example.com"],
    }  # fmt: skip
    assert {name: first[name] for name in expected} == expected
    (second,) = (c for c in admin.get("/coupons").get_json()["coupons"] if c["code"] == "=x")
    assert (second["amount"], second["description"], second["usage_limit"]) == ("-5.00", "+1", None)


def test_customers_from_csv(admin, run):
    result = run(
        "customers",
        "email,first_name,billing_city,billing_phone,shipping_city\n"
        "ada@example.com,Ada,Köln,'+49 30,\n"
        "grace@example.com,Grace,,,Bonn\n",
    )
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == summary("customers", read=2, created=2)
    ada = admin.get("/customers/email/ada@example.com").get_json()["customer"]
    assert (ada["first_name"], ada["username"], ada["role"]) == ("Ada", "ada", "customer")
    assert (ada["billing_address"]["city"], ada["billing_address"]["phone"]) == ("Köln", "+49 30")
    grace = admin.get("/customers/email/grace@example.com").get_json()["customer"]
    assert grace["shipping_address"]["city"] == "Bonn"


@pytest.mark.parametrize("file_format", ["csv", "ndjson"])
@pytest.mark.parametrize("kind", ["coupons", "customers"])
def test_an_export_is_imported_again(
    app, admin, run, make_coupon, make_customer, tmp_path, kind, file_format
):
    """The records get new IDs. Those in the trash are not published again."""
    coupon = make_coupon(
        code="=summer|a\\b", type="percent", amount="10", product_ids=[2, 1], usage_limit=7,
        individual_use=True, expiry_date="2030-12-31", customer_emails=["*@example.com", "a@b.example"],
        description="'quoted'\nline", minimum_amount="5", usage_count=3,
        campaign_id=admin.post("/campaigns", {"campaign": {"name": "x"}}).get_json()["campaign"]["id"],
        active=False, starts_at="2030-12-01T10:30:00Z", tags=["a|b", "=c"], combines_with=["-x", "code:y"],
        customer_tags=["vip", "role:wholesale"], first_order_only=True, maximum_discount="50.00",
        buy_quantity=2, get_quantity=1, get_product_ids=[7, 3],
    )  # fmt: skip
    address = {"city": "Köln", "phone": "+49", "company": "-x"}
    customer = make_customer(
        email="ada@example.com",
        first_name="Ada",
        billing_address=address,
        **GIVEN | {"tags": ["vip", "x|y"]},
    )
    admin.delete(f"/coupons/{make_coupon(code='gone')['id']}")
    file = tmp_path / f"export.{file_format}"
    arguments = ["export", kind, str(file)]
    succeed(app, *arguments)
    admin.delete(f"/coupons/{coupon['id']}", {"force": "true"})
    admin.delete(f"/customers/{customer['id']}")
    result = run(kind, file.read_bytes(), "--on-conflict", "skip", name=f"x.{file_format}")
    assert result.stderr == "" if kind == "coupons" else True
    if kind == "coupons":
        assert result.stdout == summary(kind, read=2, created=1, skipped=1)
        path = f"/coupons?fields={','.join(coupon)}"
        (again,) = admin.get(path).get_json()["coupons"]
        same = {name: again[name] for name in ("id", "created_at", "updated_at")}
        assert again == coupon | same
        assert again["id"] != coupon["id"]
    else:
        path = f"/customers/email/ada@example.com?fields={','.join(customer)}"
        again = admin.get(path).get_json()["customer"]
        assert again == customer | {"id": again["id"], "created_at": again["created_at"]}


def test_conflicts(admin, run, make_coupon):
    make_coupon(code="old", amount="1", description="kept")
    records = [{"code": "new"}, {"code": "OLD", "amount": "2"}]
    result = run("coupons", records)
    assert result.exit_code == 1
    message = "Another published coupon already has this code."
    assert result.lines == [f"line 2: shop_api_coupon_code_already_exists: {message}"]
    assert result.stdout == summary("coupons", read=2, created=1, failed=1)
    result = run("coupons", records, "--on-conflict", "skip")
    assert (result.exit_code, result.stdout) == (0, summary("coupons", read=2, skipped=2))
    result = run("coupons", records, "--on-conflict", "update")
    assert (result.exit_code, result.stdout) == (0, summary("coupons", read=2, updated=2))
    old = admin.get("/coupons/code/old").get_json()["coupon"]
    assert (old["amount"], old["description"]) == ("2.00", "kept")
    assert codes(admin) == ["old", "new"]


def test_conflicts_of_customers(admin, run, make_customer):
    make_customer(email="ada@example.com", username="ada", last_name="Lovelace")
    records = [{"email": "ADA@example.com", "first_name": "Ada"}]
    assert run("customers", records).lines == [
        "line 1: registration-error-email-exists: Another account already has this e-mail address."
    ]
    assert run("customers", records, "--on-conflict", "skip").exit_code == 0
    assert run("customers", records, "--on-conflict", "update").exit_code == 0
    ada = admin.get("/customers/email/ada@example.com").get_json()["customer"]
    assert (ada["first_name"], ada["last_name"], ada["username"]) == ("Ada", "Lovelace", "ada")
    taken = [{"email": "other@example.com", "username": "Ada"}]
    assert "registration-error-username-exists" in run("customers", taken).lines[0]


@pytest.mark.parametrize(
    ("option", "counts", "amount"),
    [
        ("fail", {"created": 1, "failed": 2}, "1.00"),
        ("skip", {"created": 1, "skipped": 2}, "1.00"),
        ("update", {"created": 1, "updated": 2}, "3.00"),
    ],
)
def test_the_same_code_several_times_in_a_file(admin, run, option, counts, amount):
    records = [{"code": code, "amount": n} for n, code in enumerate(("Same", "same", " SAME "), 1)]
    result = run("coupons", records, "--on-conflict", option)
    assert result.stdout == summary("coupons", read=3, **counts)
    assert admin.get("/coupons/code/same").get_json()["coupon"]["amount"] == amount


@pytest.mark.parametrize("option", ["fail", "skip", "update"])
def test_dry_run(run, admin, everything, make_coupon, option):
    make_coupon(code="old")
    records = [{"code": "old"}, {"code": "new"}, {"code": "new"}, {"code": ""}, {}]
    before = everything()
    tried = run("coupons", records, "--on-conflict", option, "--dry-run")
    assert everything() == before
    done = run("coupons", records, "--on-conflict", option)
    assert tried.lines == done.lines
    assert tried.stdout == done.stdout.replace(".\n", ". Dry run: nothing was written.\n")
    assert tried.exit_code == done.exit_code == 1


@pytest.mark.parametrize("batch", [1, 2, 500])
def test_each_failed_line_is_reported_and_the_others_are_written(admin, run, batch, monkeypatch):
    monkeypatch.setattr(imports, "BATCH", batch)
    content = b"\n".join([
        b'{"code": "a"}', b"", b'{"code": "b", "amount": "x", "usage_limit": []}', b"{", b"[]", b'{"code": "\xff"}',
        b'{"code": "c", "type": "gift"}', b'{"description": "no code"}', b'{"code": "  "}', b'{"code": "z"}',
    ])  # fmt: skip
    result = run("coupons", content, name="x.ndjson")
    assert result.exit_code == 1
    assert result.stdout == summary("coupons", read=9, created=2, failed=7)
    assert codes(admin) == ["a", "z"]
    found = dict(line.removeprefix("line ").split(": ", 1) for line in result.lines)
    assert sorted(found) == ["3", "4", "5", "6", "7", "8", "9"]
    assert found["3"] == (
        "shop_api_invalid_param: amount: write a number with a point, for example 1000.50. "
        "usage_limit: must be an integer."
    )
    assert found["4"].startswith("is not valid JSON: ")
    assert found["5"] == "must be a JSON object."
    assert found["6"] == "is not valid UTF-8: byte 0xff (byte 11)."
    assert found["7"].startswith("shop_api_invalid_coupon_type: Invalid coupon type")
    assert found["8"] == "shop_api_missing_coupon_code: The coupon code is required."
    assert found["9"].startswith("shop_api_cannot_create_coupon: ")


@pytest.mark.parametrize("dry_run", [[], ["--dry-run"]])
def test_failed_lines_are_reported_in_their_order(admin, run, make_coupon, dry_run):
    make_coupon(code="taken")
    content = "code,amount\nTAKEN,1\na,x\nb,1\n,1\nc,y\ntaken,2\n"
    result = run("coupons", content, *dry_run)
    numbers = [int(line.removeprefix("line ").split(":")[0]) for line in result.lines]
    assert numbers == [2, 3, 5, 6, 7]


def test_file_of_another_format_is_reported_once(run):
    result = run("coupons", "# Title\n\nSome text.\n" * 20, name="README.md")
    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = [line for line in result.stderr.splitlines() if "line 1" in line]
    assert "line 1: is not valid JSON: " in line
    assert line.endswith(
        "None of the first 10 lines can be read. Is the format of the file ndjson?"
    )
    assert "line 2" not in result.stderr


def test_csv_without_a_known_column_is_rejected(run):
    result = run("coupons", "# Title\n\nSome text.\n", "--format", "csv", name="README.md")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "line 1: contains no known column. It contains '# Title'. " in result.stderr
    assert "The known columns are code, type, amount, " in result.stderr


def test_lines_of_csv_are_physical_lines(admin, run):
    result = run(
        "coupons",
        b'code,description,individual_use\n"a","two\nlines",\nb,x\nc,\xff,\nd,,maybe\ne,,true\n"f",,"\n',
    )
    assert result.lines == [
        "line 4: has 2 cells, but the header has 3.",
        "line 5: is not valid UTF-8.",
        "line 6: shop_api_invalid_param: individual_use: must be true or false.",
        "line 8: is not valid CSV: unexpected end of data.",
    ]
    assert codes(admin) == ["a", "e"]


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfcode,amount\na,1\n",
        b"code,amount\r\na,1\r\n",
        b'"code","amount"\r\n"a","1"',
        b"code,amount\n\n\na,1\n\n",
        b" code ,amount\na,1",
        b"code;amount\na;1\n",
        b"code\tamount\na\t1\n",
        b"code|amount\na|1\n",
        b"sep=;\r\ncode;amount\r\na;1\r\n",
        b'\xef\xbb\xbf"sep=:"\ncode:amount\na:1\n',
        "code\tamount\r\na\t1\r\n".encode("utf-16"),
        "\ufeffcode,amount\na,1\n".encode("utf-16-be"),
        b"code,amount\ra,1\r",
        b"code,amount,,,\na,1,,,\n,,,,\n , ,,,\n",
        b"code,amount,,\na,1\n",
        b",\r\n\r\n,code,amount\r\n,a,1\r\n",
        b"Code,Coupon Amount\na,1\n",
        "\u200bcode,AMOUNT\ufeff\na,1\n".encode(),
        b"post_title;coupon_amount;discount_type\na;1;percent\n",
        b'"code","amount","de\nscription"\na,1,\n',
    ],
)
def test_csv_of_other_programs(admin, run, content):
    result = run("coupons", content)
    assert (result.exit_code, result.lines) == (0, [])
    assert [(each["code"], each["amount"]) for each in admin.get("/coupons").json["coupons"]] == [
        ("a", "1.00")
    ]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("Email;First Name;Billing City;Zip", "a@b.example;Ada;Bonn;053113"),
        ("E-mail,given name,city,Billing Postal Code", "a@b.example,Ada,Bonn,053113"),
        ("user_email,firstname,Default Address City,postcode", "a@b.example,Ada,Bonn,053113"),
    ],
)
def test_columns_with_the_names_of_other_programs(admin, run, header, row):
    result = run("customers", f"{header}\n{row}\n")
    assert (result.exit_code, result.stderr) == (0, "")
    found = admin.get("/customers/email/a@b.example").json["customer"]
    assert (found["first_name"], found["billing_address"]["city"]) == ("Ada", "Bonn")
    assert found["billing_address"]["postcode"] == "053113"


def test_our_name_of_a_column_comes_first(admin, run):
    result = run("customers", "Email,email,id\nx@b.example,a@b.example,7\n")
    assert result.warnings == ["'Email' is unknown and ignored. Did you mean 'email'?"]
    assert admin.get("/customers/email/a@b.example").status_code == 200


def test_a_value_below_no_name_is_an_error(run):
    result = run("coupons", "code,,amount\na,x,1\nb,,1,2\n")
    assert result.lines == [
        "line 2: has a value in column 2, whose name is missing.",
        "line 3: has 4 cells, but the header has 3.",
    ]


@pytest.mark.parametrize("cell", ["3|4|5", '"3,4,5"', '"3, 4, 5"', "3;4;5", "3 4 5", "3 | 4 ;5"])
def test_lists_of_ids_have_any_separator(admin, run, cell):
    assert run("coupons", f"code,product_ids\na,{cell}\n").exit_code == 0
    assert admin.get("/coupons/code/a").json["coupon"]["product_ids"] == [3, 4, 5]


@pytest.mark.parametrize("cell", ["a@b.example|*@c.example", '"a@b.example, *@c.example"',
                                  "a@b.example;*@c.example", "a@b.example *@c.example"])  # fmt: skip
def test_lists_of_addresses_have_any_separator(admin, run, cell):
    assert run("coupons", f"code,customer_emails\na,{cell}\n").exit_code == 0
    found = admin.get("/coupons/code/a").json["coupon"]["customer_emails"]
    assert found == ["a@b.example", "*@c.example"]


NOT_UNDERSTOOD = [
    ("product_ids", "1e3"), ("product_ids", "-3"), ("product_ids", "0"), ("product_ids", "3|x|5"),
    ("exclude_product_ids", "3.4"), ("product_category_ids", "1.000"), ("product_ids", "9" * 20),
    ("customer_emails", "not-an-address"), ("customer_emails", "a@b.example|x"),
    ("customer_emails", "<a@b.example>"),
    ("usage_limit", "1 000"), ("usage_limit", "1.000"), ("usage_limit", "5,5"),
    ("usage_limit", "5x"), ("usage_limit", "five"), ("usage_limit_per_user", "-1"),
    ("limit_usage_to_x_items", "1e1"), ("usage_count", "2.0"), ("usage_limit", "true"),
    ("individual_use", "ja"), ("amount", "abc"), ("amount", "10,50"), ("amount", "1.000"),
    ("amount", "-1.000"), ("minimum_amount", "1.000,50"), ("maximum_amount", "1,000.50"),
    ("minimum_amount", "5 %"), ("amount", "1e3"), ("amount", "10.555"),
    ("expiry_date", "47848"), ("expiry_date", "47848.5"), ("expiry_date", "03/04/2030"),
    ("expiry_date", "3-4-2030"), ("expiry_date", "12/04/2030"), ("expiry_date", "31/12/2030"), ("expiry_date", "soon"),
    ("code", "<b>x</b>"), ("metadata", "{"), ("metadata", "[1]"),
]  # fmt: skip


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--on-conflict", "update"]])
def test_a_cell_that_is_not_understood_is_an_error_of_its_line(admin, run, make_coupon, options):
    """The dry run reports the same errors, and an existing coupon is not changed."""
    before = make_coupon(code="old", usage_limit=1, product_ids=[7])
    for name, cell in NOT_UNDERSTOOD:
        row = f"{cell},9\n" if name == "code" else f'old,"{cell}"\n'
        result = run(
            "coupons", f"code,{'usage_count' if name == 'code' else name}\n{row}", *options
        )
        (line,) = result.lines
        assert line.startswith(f"line 2: shop_api_invalid_param: {name}: "), (name, cell)
        assert " 0 created, 0 updated, 0 skipped, 1 failed." in result.stdout
    assert admin.get("/coupons").json["coupons"] == [before]


@pytest.mark.parametrize(
    ("name", "cell", "hint"),
    [
        ("amount", "1.000", "'1.000' has two readings. Write 1000, or an amount with two decimals"),
        ("usage_limit", "1.000", "'1.000' has two readings. Write 1000 without separators."),
        ("expiry_date", "47848", "'47848' is a number. A spreadsheet writes dates in this way"),
        (
            "expiry_date",
            "03/04/2030",
            "'03/04/2030' has two readings. Write the date as year, month",
        ),
    ],
)
def test_what_spreadsheets_change_is_an_error_with_a_hint(run, name, cell, hint):
    (line,) = run("coupons", f"code,{name}\na,{cell}\n").lines
    assert f"{name}: {hint}" in line


def test_lines_of_ndjson_are_strict(admin, run):
    wrong = [
        {"usage_limit": "1 000"}, {"usage_limit": -1}, {"usage_limit": 1.5}, {"amount": "1.000"},
        {"product_ids": "3,4"}, {"product_ids": ["x"]}, {"product_ids": [-3]}, {"product_ids": [0]},
        {"customer_emails": ["x"]}, {"individual_use": "true"}, {"expiry_date": 47848},
        {"amount": 10.555},
    ]  # fmt: skip
    result = run("coupons", [{"code": f"c{at}", **each} for at, each in enumerate(wrong)])
    assert result.stdout == summary("coupons", read=len(wrong), failed=len(wrong))
    names = [line.split(": ")[2] for line in result.lines]
    assert names == [next(iter(each)) for each in wrong]
    right = {"code": "right", "amount": 10.5, "expiry_date": 1924905600, "usage_limit": None}
    assert run("coupons", [right]).exit_code == 0
    found = admin.get("/coupons/code/right").json["coupon"]
    assert (found["amount"], found["expiry_date"]) == ("10.50", "2030-12-31T00:00:00Z")


def test_unknown_names_of_nested_objects_are_warnings(admin, run):
    record = {"email": "a@b.example", "billing_address": {"city": "Bonn", "ciity": "x"}}
    result = run("customers", [record])
    assert result.exit_code == 0
    assert result.warnings == [
        "'billing_address.ciity' is unknown and ignored. Did you mean 'billing_address.city'?"
    ]


def test_a_dry_run_neither_writes_nor_waits(app, run, admin, make_coupon, make_customer):
    """Another program writes all the time, and passwords are not hashed."""
    make_coupon(code="old")
    make_customer(email="old@b.example", username="old")
    coupons = [{"code": "old"}, {"code": "new"}, {"code": "NEW", "metadata": {"a": None}}]
    customers = [
        {"email": "OLD@b.example"}, {"email": "x@b.example", "username": "Old"},
        *({"email": f"n{at}@b.example", "password": "secret"} for at in range(600)),
        {"email": "N1@b.example"}, {"email": "y@b.example", "username": "n2"},
    ]  # fmt: skip
    with app.app_context(), db.engine.begin():  # holds the lock for writes
        tried = run("coupons", coupons, "--dry-run")
        people = run("customers", customers, "--dry-run")
    assert tried.stdout == summary(
        "coupons", 3, created=1, failed=2, note=" Dry run: nothing was written."
    )
    assert [line.split(":")[0] for line in people.lines] == [
        "line 1",
        "line 2",
        "line 603",
        "line 604",
    ]
    done = run("customers", [each for each in customers if each.pop("password", None) or True])
    assert done.lines == people.lines


def test_a_dry_run_checks_changes_of_records_that_the_file_creates(run, monkeypatch):
    monkeypatch.setattr(imports, "BATCH", 1)
    rows = [
        {"code": "a"},
        {"code": "A", "type": "gift"},
        {"code": "a", "metadata": {"": 1}},
        {"code": "a"},
    ]
    tried = run("coupons", rows, "--on-conflict", "update", "--dry-run")
    done = run("coupons", rows, "--on-conflict", "update")
    assert tried.lines == done.lines
    assert len(done.lines) == 2
    assert tried.stdout.startswith(done.stdout.removesuffix("\n"))


def test_ndjson_with_byte_order_mark_and_crlf(admin, run):
    result = run("coupons", b'\xef\xbb\xbf{"code": "a"}\r\n{"code": "b"}\r\n', name="x.ndjson")
    assert (result.exit_code, result.stderr) == (0, "")
    assert codes(admin) == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1: the first row must contain the column names."),
        (b"\n\n", "line 1: the first row must contain the column names."),
        (b"code,amount,code\n", "line 1: the column 'code' occurs twice."),
        (b"code,r\xe9duction\na,1\n", "line 1: is not valid UTF-8."),
        ("code\na\n".encode("utf-16-le"), "line 1: contains NUL characters."),
        (b"\xff\xfe\x00\xd8\n\x00c", "line 1: the file begins like UTF-16"),
        (b"Email,E-mail\na,b\n", "'customer_emails' occurs twice, as 'E-mail' and 'Email'."),
        (b'"a"b,code\na,b\n', "line 1: the column names are not valid CSV"),
        (b"PK\x03\x04\x14\0\x06\0\x08", "line 1: the file is a workbook or another ZIP file."),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "line 1: the file is a workbook of an old Excel."),
        (gzip.compress(b"code\na\n", mtime=0), "line 1: the file is compressed."),
        (b"%PDF-1.7\n%\xe2\xe3\n", "line 1: the file is a PDF document."),
    ],
)
def test_csv_without_a_usable_header(run, content, message):
    result = run("coupons", content)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


def test_compressed_ndjson_is_named(run):
    result = run("coupons", gzip.compress(b'{"code": "a"}\n'), name="x.ndjson")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "line 1: the file is compressed. Save its records as text." in result.stderr


def test_empty_files_have_no_records(run):
    assert run("coupons", b"", name="x.ndjson").stdout == summary("coupons")
    assert run("coupons", b"code\n").stdout == summary("coupons")


def test_unknown_columns_are_named_once(admin, run):
    result = run("coupons", "code,ammount,xyz,id,status\na,1,1,7,published\nb,1,1,8,\n")
    assert result.exit_code == 0
    assert result.warnings == [
        "'ammount' is unknown and ignored. Did you mean 'amount'?",
        "'xyz' is unknown and ignored.",
    ]
    assert codes(admin) == ["a", "b"]


def test_author(admin, run, client_for):
    manager = client_for("shop_manager", "read_write")
    run("coupons", [{"code": "a"}], "--login", "shop_manager")
    run("coupons", [{"code": "b"}])
    exported = admin.app.test_cli_runner().invoke(args=["export", "coupons", "-"]).stdout
    authors = [json.loads(line)["author_id"] for line in exported.splitlines()]
    assert authors == [manager.key.user_id, None]
    result = run("coupons", [{"code": "c"}], "--login", "nobody")
    assert "user 'nobody' does not exist." in result.stderr


def test_passwords_are_hashed(admin, run, app):
    run("customers", [{"email": "ada@example.com", "password": "secret"}])
    exported = app.test_cli_runner().invoke(args=["export", "customers", "-", "--password-hashes"])
    (*_, hashed) = (json.loads(line)["password_hash"] for line in exported.stdout.splitlines())
    assert hashed.startswith("$argon2id$")


def test_from_standard_input(app, admin):
    arguments = ["import", "coupons", "-", "--format", "csv"]
    result = app.test_cli_runner().invoke(args=arguments, input=b"code\na\nx,y\n")
    assert (result.exit_code, result.stdout) == (1, summary("coupons", read=2, created=1, failed=1))
    assert result.stderr == "standard input, line 3: has 2 cells, but the header has 1.\n"


def test_many_records(admin, run):
    result = run("coupons", [{"code": f"code-{number}"} for number in range(1203)])
    assert result.stdout == summary("coupons", read=1203, created=1203)
    assert admin.get("/coupons/count").get_json() == {"count": 1203}


def test_an_import_is_one_event(admin, run, make_coupon):
    make_coupon(code="old")
    (created,) = admin.get("/events").get_json()["events"]
    rows = [{"code": "a"}, {"code": "b"}, {"code": "old"}, {"code": ""}]
    assert run("coupons", rows, "--on-conflict", "update", "--dry-run").exit_code == 1
    assert run("coupons", [{"code": "old"}], "--on-conflict", "skip").exit_code == 0
    assert run("coupons", rows, "--on-conflict", "update").exit_code == 1
    (event,) = admin.get("/events", {"filter[after]": created["id"]}).get_json()["events"]
    assert (event["type"], event["user_id"]) == ("import.completed", None)
    written = {"source": "file", "kind": "coupons", "created": 2, "updated": 1}
    assert event["data"] == {"import": {"id": event["resource_id"], **written}}
    assert event["resource_id"] > 0


def let_progress_be_old(session):
    session.execute(update(ImportRun).values(progress_at=datetime(2020, 1, 1, tzinfo=UTC)))


def add(progress, created, updated):
    counts = {"read": created + updated, "created": created, "updated": updated}
    counts |= {"skipped": 0, "failed": 0}
    run_in_transaction(lambda session: progress.add(session, counts))


def test_an_interrupted_import_is_reported_once(app, admin):
    progress = ImportProgress("file", "coupons")
    with app.app_context():
        add(progress, 500, 3)
        assert report_interrupted_imports() == 0  # it may still run
        run_in_transaction(let_progress_be_old)
        assert report_interrupted_imports() == 1
        assert report_interrupted_imports() == 0
        # The import was only slow. Its further records have another event.
        add(progress, 400, 0)
        add(progress, 100, 0)
        progress.finish()
    events = admin.get("/events").get_json()["events"]
    own = {"source": "file", "kind": "coupons"}
    assert [event["data"]["import"] | {"id": 0} for event in events] == [
        {"id": 0, **own, "created": 500, "updated": 3, "interrupted": True},
        {"id": 0, **own, "created": 500, "updated": 0},
    ]
    assert len({event["resource_id"] for event in events}) == 2


@pytest.mark.slow
def test_a_killed_import_is_an_event(app, settings, admin):
    environment = os.environ | {name: settings[name] for name in ("DATABASE_URL", "SECRET_KEY")}
    command = "app.main", "import", "coupons", "-", "--format", "ndjson"
    with subprocess.Popen(
        [sys.executable, "-m", *command], cwd=ROOT, env=environment, stdin=subprocess.PIPE
    ) as process:
        rows = (json.dumps({"code": f"code-{number}"}) for number in range(imports.BATCH + 1))
        process.stdin.write("\n".join(rows).encode())
        process.stdin.flush()  # and the file goes on
        until(lambda: admin.get("/coupons/count").get_json()["count"], "a batch", 60)
        process.kill()
    assert admin.get("/events").get_json()["events"] == []
    with app.app_context():
        run_in_transaction(let_progress_be_old)
        assert report_interrupted_imports() == 1
    (event,) = admin.get("/events").get_json()["events"]
    assert event["type"] == "import.completed"
    assert event["data"]["import"]["interrupted"] is True


def test_a_line_of_csv_that_is_too_long_is_rejected(admin, run, monkeypatch):
    monkeypatch.setattr("app.import_export.file_reader.MAX_LINE_BYTES", 30)
    longest = "code,description\n" + "a," + "b" * 27 + "\n"
    assert run("coupons", longest).exit_code == 0
    result = run("coupons", longest.replace("a,", "cc,"))
    assert (result.exit_code, "line 2: is longer than 30 bytes." in result.output) == (1, True)
    assert codes(admin) == ["a"]
