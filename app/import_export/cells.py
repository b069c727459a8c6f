"""Strict reading of the values of a file: what has no meaning, or two, is an error (migration 2).

A form or a program corrects a rejected value at once. A file is often imported unseen, and a limit
or a restriction that is cut or dropped gives money away.
"""

import re
from decimal import Decimal
from typing import Any

import marshmallow as ma
import orjson

from app.import_export.csv_format import split
from app.schemas.fields.input import AmountInput, Count, DateText, DecimalInput, StrictTrue
from app.schemas.fields.list_input import EmailArray, IdArray, TagArray

FLAGS = {"true": True, "1": True, "false": False, "0": False, "": False}

_SEPARATORS = re.compile(r"[,;|\s]+")
_AMOUNT = re.compile(r"|-?[0-9]+(\.[0-9]+)?")
_THOUSANDS = re.compile(r"[0-9]{1,3}([.,' \u00a0\u202f][0-9]{3})+")
_DAY_OR_MONTH = re.compile(r"([0-9]{1,2})([/-])([0-9]{1,2})\2[0-9]{4}.*", re.DOTALL)
_SERIAL = re.compile(r"[0-9]{1,6}([.,][0-9]+)?")


def split_list(cell: str) -> list[str]:
    r"""Return the entries of a list of IDs or addresses.

    They are separated by commas, semicolons, blanks or ``|``. A backslash escapes ``|`` and itself.
    """
    return [entry for text in split(cell) for entry in _SEPARATORS.split(text) if entry]


def value_of_cell(field: ma.fields.Field[Any], cell: str) -> object:
    """Return the value of a cell as a request contains it.

    Raises:
        ValueError: the cell is not understood as a whole.
    """
    text = cell.strip()
    if isinstance(field, IdArray | EmailArray | TagArray):
        entries = split(cell) if isinstance(field, TagArray) else split_list(cell)
        if isinstance(field, IdArray):
            return [_whole_number(entry, "an ID") for entry in entries]
        return entries
    if isinstance(field, StrictTrue):
        if not text and field.load_default is ma.missing:  # true or false without the column
            return None
        if text.lower() not in FLAGS:
            raise ValueError("must be true or false.")
        return FLAGS[text.lower()]
    if isinstance(field, Count):
        return cell if text else 0
    return cell


def _whole_number(text: str, meaning: str) -> int | str:
    """Return a number, or digits of a number that the schema rejects, or raise ValueError."""
    if re.fullmatch("[0-9]+", text):
        return int(text) if len(text) < 19 else text
    if _THOUSANDS.fullmatch(text):
        digits = re.sub("[^0-9]", "", text)
        raise ValueError(
            f"{text[:100]!r} has two readings. Write {digits[:100]} without separators."
        )
    raise ValueError(f"{text[:100]!r} is not {meaning}.")


def metadata_of_cell(cell: str) -> object:
    """Return the metadata of a cell, which is JSON, or raise ValueError."""
    try:
        return orjson.loads(cell or "null")
    except orjson.JSONDecodeError as error:
        raise ValueError(f"is not valid JSON: {error.msg} (column {error.colno}).") from None


def with_one_meaning(field: ma.fields.Field[Any], value: object) -> object:
    """Return a value of a line as the schema loads it.

    Raises:
        ValueError: the value has two readings, or is not one that a shop means.
    """
    if isinstance(field, IdArray) and isinstance(value, list):
        for entry in value:
            if str(entry).strip().startswith("-") or str(entry).strip() == "0":
                raise ValueError(f"{str(entry)[:100]!r} is not an ID. An ID is 1 or more.")
    if isinstance(field, Count) and isinstance(value, str):
        return _whole_number(value.strip(), "a whole number")
    if isinstance(field, DecimalInput):
        if isinstance(value, str):
            return _amount(value.strip()) or ("0" if isinstance(field, AmountInput) else "")
        if isinstance(value, float):
            return Decimal(str(value))
    if isinstance(field, DateText):
        _require_date(str(value).strip())
    return value


def _amount(text: str) -> str:
    if _THOUSANDS.fullmatch(text.lstrip("-")):
        digits = re.sub("[^0-9-]", "", text)
        raise ValueError(
            f"{text[:100]!r} has two readings. Write {digits[:100]}, or an amount with two "
            "decimals after a point."
        )
    if not _AMOUNT.fullmatch(text):
        raise ValueError("write a number with a point, for example 1000.50.")
    return text


def _require_date(text: str) -> None:
    """Raise ValueError for the forms of dates that spreadsheets and countries read differently."""
    found = _DAY_OR_MONTH.fullmatch(text)
    if found and int(found[1]) != int(found[3]) and max(int(found[1]), int(found[3])) <= 12:
        raise ValueError(
            f"{text[:100]!r} has two readings. Write the date as year, month and day: 2030-12-31."
        )
    if _SERIAL.fullmatch(text):
        raise ValueError(
            f"{text[:100]!r} is a number. A spreadsheet writes dates in this way in cells that are "
            "not formatted as a date. Write the date as year, month and day: 2030-12-31."
        )
