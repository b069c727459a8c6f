"""Cells of CSV files: lists, and texts that a spreadsheet could take for a formula (migration 2)."""

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.import_export.csv_format import FORMULA_STARTS, from_cell, joined, split, to_cell

TEXT = st.text(st.characters(exclude_categories=["Cs"])) | st.text("=+-@\t\r'|\\\n\"a,")


@pytest.mark.parametrize(
    ("value", "way", "cell"),
    [
        ("plain", "text", "plain"),
        ("=1+1", "text", "'=1+1"),
        ("+49 30", "text", "'+49 30"),
        ("-5.00", "text", "-5.00"),
        ("@x", "text", "'@x"),
        ("\tx", "text", "'\tx"),
        ("\rx", "text", "'\rx"),
        ("'tis", "text", "''tis"),
        ("a=b", "text", "a=b"),
        (None, "text", ""),
        (True, "text", "true"),
        (False, "text", "false"),
        (-3, "text", "-3"),
        ([], "joined", ""),
        ([1, -2], "joined", "1|-2"),
        ([-2, 1], "joined", "'-2|1"),
        (["a|b", "c\\d"], "joined", "a\\|b|c\\\\d"),
        ([{"a": 1}], "json", '[{"a":1}]'),
        ([], "json", "[]"),
    ],
)
def test_cell_of_a_value(value, way, cell):
    assert to_cell(value, way) == cell


@given(TEXT)
def test_the_sign_against_formulas_is_removed(text):
    cell = to_cell(text)
    assert not cell.startswith(tuple("=+-@\t\r")) or re.fullmatch(r"-[0-9]+(\.[0-9]+)?", cell)
    assert from_cell(cell) == text


@pytest.mark.parametrize("cell", ["plain", "'tis", "'", "'a=", ""])
def test_an_apostrophe_of_another_program_is_kept(cell):
    assert from_cell(cell) == cell
    assert "'" in FORMULA_STARTS


@given(st.lists(TEXT.filter(bool)))
def test_lists_are_split_as_they_were_joined(texts):
    assert split(joined(texts)) == texts
    assert split(from_cell(to_cell(texts, "joined"))) == texts


@pytest.mark.parametrize(
    ("text", "texts"),
    [("", []), ("|", []), ("a||b|", ["a", "b"]), ("a\\", ["a\\"]), ("\\", ["\\"])],
)
def test_lists_of_another_program(text, texts):
    assert split(text) == texts


@given(st.lists(TEXT, min_size=1))
def test_a_row_is_the_same_after_writing_and_reading(texts):
    file = io.StringIO(newline="")
    csv.writer(file).writerow(map(to_cell, texts))
    (row,) = csv.reader(io.StringIO(file.getvalue(), newline=""), strict=True)
    assert list(map(from_cell, row)) == texts
