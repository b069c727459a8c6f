"""Reading of dumps: rows, literals, character sets and times (migration 1)."""

import gzip
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.plugins.woocommerce.importer.dump import grammar as dump_grammar
from app.plugins.woocommerce.importer.dump import scanner
from app.plugins.woocommerce.importer.dump.grammar import plain_rows, row_pattern
from app.plugins.woocommerce.importer.dump.scanner import DumpScanner
from app.plugins.woocommerce.importer.dump.values import repaired, text_of
from app.plugins.woocommerce.importer.source.clock import ShopClock, from_unix
from app.plugins.woocommerce.importer.source.staging import staging
from app.plugins.woocommerce.importer.tables import SOURCE_TABLES, SourceError
from tests.dumps.dialects import DIALECTS, write_dump
from tests.plugins.woocommerce.importer.test_hostile import HOSTILE, HostileShop

TABLES = {f"wp_{name}": table for name, table in SOURCE_TABLES.items()}


def rows_of(path):
    """All rows of a dump, by table, without those of another database."""
    found = {}

    def take(database, table, rows):
        if database != "other":
            found.setdefault(table.name, []).extend(rows)

    DumpScanner(TABLES, take).scan(Path(path))
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("chunk", [17, 1000])
def test_rows_do_not_depend_on_chunks(tmp_path, monkeypatch, dialect, chunk):
    write_dump(tmp_path / "a.sql", HostileShop(), dialect)
    expected = rows_of(tmp_path / "a.sql")
    monkeypatch.setattr(scanner, "CHUNK", chunk)
    monkeypatch.setattr(scanner, "HEAD", 1500)
    assert rows_of(tmp_path / "a.sql") == expected
    assert len(expected["users"]) == 10


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (r"INSERT INTO `wp_usermeta` VALUES (1,2,'first_name','a\'b''c\\d\n\0é');", "a'b'c\\d\n\0é"),
        ("INSERT INTO wp_usermeta VALUES\n(1, 2, 'first_name', 'x\n);INSERT')\n;", "x\n);INSERT"),
        ("INSERT INTO `db`.`wp_usermeta` VALUES (1,2,'first_name',NULL)", None),
        ("INSERT IGNORE INTO `wp_usermeta` VALUES (1,2,_binary 'first_name',0xC3A9);", "é"),
        (
            ("REPLACE INTO `wp_usermeta` (`umeta_id`,`user_id`,`meta_key`,`meta_value`) VALUES (1,2,"
            "'first_name',x'C3A9') ON DUPLICATE KEY UPDATE `meta_value`='(9,9,''a'',''b'')';"),
            "é",
        ),
        (
            ("insert into `wp_usermeta` (meta_value, meta_key, user_id, umeta_id) values "
            "(_utf8mb4'z','first_name',2,1);"),
            "z",
        ),
        ("/* a 'comment' */ INSERT INTO `wp_usermeta` VALUES (1,2,'first_name','y'); -- it's", "y"),
        ("\ufeffINSERT INTO `wp_usermeta` VALUES (1,2,'first_name','bom');", "bom"),
        ("INSERT INTO `wp_usermeta` VALUES (1,2,0x66697273745F6E616D65,'hex'),(2,2,0x00,'x');", "hex"),
        ("INSERT INTO `wp_usermeta` VALUES (1,2,X'66697273745f6e616d65','hex');", "hex"),
        ("INSERT INTO `wp_usermeta`\r\nVALUES\r\n\t(1,\t2,\t'first_name',\t'a\r\nb')\r\n;\r\n", "a\r\nb"),
        ("INSERT INTO `wp_usermeta` VALUES (8,2,'other','('),(1,2,'first_name','w'),(9,2,'x','''');",
         "w"),
    ],
)  # fmt: skip
def test_forms_of_a_row(tmp_path, statement, expected):
    created = (
        "CREATE TABLE `wp_usermeta` (`umeta_id` int, `user_id` int, `meta_key` varchar(9) "
        "DEFAULT ',)' COMMENT 'a, `b` int', `meta_value` text, KEY `x` (`user_id`));\n"
    )
    bom = "\ufeff" if statement.startswith("\ufeff") else ""
    text = bom + created + statement.removeprefix(bom)
    (tmp_path / "a.sql").write_bytes(text.encode())
    found = rows_of(tmp_path / "a.sql")["usermeta"]
    assert [row for row in found if row[3] == "1"] == [("2", "first_name", expected, "1")]


FILTERED = [table for table in TABLES.values() if table.filtered]


@pytest.mark.parametrize("form", ["text", "0x{}", "0X{}", "x'{}'", "X'{}'", "_binary 0x{}"])
@pytest.mark.parametrize("table", FILTERED, ids=lambda table: table.name)
def test_values_that_begin_with_a_selected_value(tmp_path, table, form):
    """Each selected value, among values that continue it, end before its end or surround it."""

    def literal(value):
        if form == "text":
            return f"'{value}'"
        digits = value.encode().hex()
        return form.format(digits.upper() if "X" in form else digits)

    values = [
        each
        for value in table.values
        for each in (f"{value}_tax", f"{value}0", value, value[:-1], f"_{value}", f"{value} ")
    ]
    names = ", ".join(table.columns)
    rows = ", ".join(
        "(" + ", ".join(
            literal(value) if column == table.filtered else str(number)
            for column in table.columns
        ) + ")"
        for number, value in enumerate(values)
    )  # fmt: skip
    statement = f"INSERT INTO `wp_{table.name}` ({names}) VALUES {rows};\n"
    (tmp_path / "a.sql").write_text(statement)
    place = table.columns.index(table.filtered)
    found = [(row[place], row[place - 1]) for row in rows_of(tmp_path / "a.sql")[table.name]]
    assert found == [
        (value, str(number)) for number, value in enumerate(values) if value in table.values
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO `wp_users` VALUES (1,'no columns');",
        "INSERT INTO `wp_users` (`ID`,`user_login`) VALUES (1,concat('a','b'));",
        "INSERT INTO `wp_users` (`ID`,`user_login`) VALUES (1,'open",
        "INSERT INTO `wp_users` (`user_login`) VALUES ('no ID');",
    ],
)
def test_rows_that_cannot_be_read(tmp_path, statement):
    (tmp_path / "a.sql").write_text(statement)
    with pytest.raises(SourceError):
        rows_of(tmp_path / "a.sql")


def test_rows_of_one_table_in_many_statements(tmp_path):
    """A table can be dropped and created again, with its columns in another order."""
    user = "INSERT INTO `wp_usermeta` VALUES ({});\n"
    (tmp_path / "a.sql").write_text(
        "CREATE TABLE `wp_usermeta` (`umeta_id` int, `user_id` int, `meta_key` text, `meta_value` text);"
        + user.format("1,2,'first_name','a'") + user.format("2,2,'last_name','b'")
        + "INSERT INTO `wp_users` (`ID`,`user_login`) VALUES (5,'five');"
        + "CREATE TABLE `wp_usermeta` (`user_id` int, `meta_value` text, `meta_key` text);"
        + user.format("2,'c','first_name'")
    )  # fmt: skip
    assert rows_of(tmp_path / "a.sql") == {
        "usermeta": [
            ("2", "first_name", "a", "1"), ("2", "last_name", "b", "2"),
            ("2", "first_name", "c", None),
        ],
        "users": [("5", "five", None, None)],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x28\xb5\x2f\xfd rest", "compressed with zstd"),
        (b"BZh91AY", "compressed with bzip2"),
        (b"\xfd7zXZ\x00", "compressed with xz"),
        (b"PK\x03\x04", "ZIP archive"),
        ("INSERT INTO `wp_users` VALUES (1);".encode("utf-16"), "--result-file"),
        (gzip.compress(b"INSERT INTO `wp_users` VALUES (1);" * 999, mtime=0)[:-20], "not a complete gzip file"),
        (gzip.compress(b"INSERT INTO `wp_users` VALUES (1);" * 999, mtime=0)[:20] + b"damaged" * 99, "not a complete gzip file"),
        (b"\x00\x01\x02", "It is not a database dump"),
        (b"", "It is not a database dump"),
    ],
)  # fmt: skip
def test_files_that_are_no_dump(tmp_path, content, message):
    (tmp_path / "a.sql").write_bytes(content)
    with pytest.raises(SourceError, match=message):
        rows_of(tmp_path / "a.sql")


@pytest.mark.parametrize("program", ["MySQL dump 10.13", "MariaDB dump 10.19-11.4.2"])
def test_dump_that_ends_between_two_statements(tmp_path, program):
    sandbox = "/*M!999999\\- enable the sandbox mode */ \n" if program.startswith("Maria") else ""
    text = f"{sandbox}-- {program}\nCREATE TABLE `wp_posts` (`ID` int);\n" + "-- x\n" * 100
    (tmp_path / "cut.sql").write_text(text)
    (tmp_path / "whole.sql").write_text(f"{text}-- Dump completed on 2026-11-21  8:00:00\n")
    (tmp_path / "compact.sql").write_text("CREATE TABLE `wp_posts` (`ID` int);")
    for name, lacks_its_end in (("cut", True), ("whole", False), ("compact", False)):
        scanner = DumpScanner(TABLES, lambda *_: None)
        scanner.scan(tmp_path / f"{name}.sql")
        assert scanner.lacks_its_end == lacks_its_end


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_utf8_in_latin1_is_repaired(text):
    doubled = "".join(
        bytes([byte]).decode("cp1252") if byte not in {0x81, 0x8D, 0x8F, 0x90, 0x9D} else chr(byte)
        for byte in text.encode()
    )
    assert repaired(doubled) == text


@pytest.mark.parametrize("text", ["", "plain", "Müller", "€ 5", "Köln Straße"])
def test_text_that_is_latin1_stays(text):
    assert repaired(text) == text
    literal = "'" + text.encode("cp1252").decode(errors="surrogateescape") + "'"
    assert text_of(literal, from_latin1=True) == text


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        (b"M\xfcller", "Müller"),  # a dump in latin1
        ("Größe ".encode() + b"\xff 5", "Größe \ufffd 5"),
        ("Köl".encode() + b"\xc3", "Köl\ufffd"),  # cut off within a character
    ],
)
def test_invalid_utf8_is_latin1_or_replaced(stored, text):
    assert text_of(f"'{stored.decode(errors='surrogateescape')}'", from_latin1=False) == text
    assert text_of(f"0x{stored.hex()}", from_latin1=False) == text


def test_times_of_a_shop():
    berlin = ShopClock("Europe/Berlin", "0")
    at = datetime(2021, 7, 1, 10, tzinfo=UTC)
    assert berlin.utc("2021-07-01 10:00:00", "2021-07-01 99:00:00") == at
    assert berlin.utc("0000-00-00 00:00:00", "2021-07-01 12:00:00") == at
    assert ShopClock("", "-5.5").utc(None, "2021-07-01 04:30:00") == at
    assert ShopClock("No/Where", "x").utc(None, "2021-07-01 10:00:00") == at
    assert berlin.utc(None, "0000-00-00 00:00:00") is berlin.utc("2021-02-30 00:00:00") is None
    assert berlin.utc(None, "0001-01-01 00:00:00") is None
    last = datetime(9999, 12, 31, 23, 30, tzinfo=UTC)
    assert berlin.expiry(last) == (date(9999, 12, 31), True)
    midnight = datetime(2030, 12, 30, 23, tzinfo=UTC)
    assert berlin.expiry(midnight) == (date(2030, 12, 31), False)
    assert ShopClock(None, None).expiry(midnight) == (date(2030, 12, 30), True)
    last_days = ShopClock("Europe/Berlin", "0", ZoneInfo("Europe/Berlin"))
    assert last_days.expiry(midnight) == (date(2030, 12, 30), False)
    assert last_days.expiry(midnight - timedelta(seconds=1)) == (date(2030, 12, 30), True)
    assert last_days.expiry(midnight + timedelta(seconds=1)) == (date(2030, 12, 31), True)
    assert from_unix("0") is from_unix("") is from_unix("soon") is from_unix("9" * 12) is None


def test_staging_file_is_gone_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with staging() as staged:
        staged.take("", TABLES["wp_users"], [("1", HOSTILE, "", "")])
        staged.finish("")
        assert staged.one_by_id("users", [1]) == {1: [HOSTILE, "", ""]}
        assert list(tmp_path.iterdir()) == []
        assert staged.size > 0


@pytest.mark.parametrize("table", SOURCE_TABLES.values(), ids=lambda table: table.name)
def test_expressions_match_the_same_on_each_version_of_python(table):
    """Python before 3.11.5 matches a possessive group wrongly (python/cpython#106052)."""
    patterns = [each for each in vars(dump_grammar).values() if isinstance(each, re.Pattern)]
    patterns.append(row_pattern(table, ("other", *table.columns)))
    if plain := plain_rows(table, table.columns):
        patterns += [plain.run, plain.row]
    for pattern in patterns:
        assert not re.search(r"\)[*+?}]\+", pattern.pattern)


@pytest.mark.parametrize("column", ["post_type", "ID"])
def test_a_dump_without_a_column_that_selects_rows_is_rejected(tmp_path, column):
    write_dump(tmp_path / "a.sql", HostileShop())
    content = (tmp_path / "a.sql").read_bytes()
    without = re.sub(rf"\n  `{column}` [^\n]*".encode(), b"", content)
    assert without != content
    (tmp_path / "b.sql").write_bytes(without)
    with pytest.raises(SourceError, match=f"of the dump has no column {column}"):
        rows_of(tmp_path / "b.sql")
