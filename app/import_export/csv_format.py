"""Conversion of records to CSV cells and back (migration 2)."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from app.conversions.text import FORMULA_STARTS, safe_cell
from app.db.records import Record
from app.import_export.export_kinds import Kind

SEPARATOR, ESCAPE = "|", "\\"
# An escaped character, a backslash at the end, a separator, or any other text.
_PARTS = re.compile(r"\\.|\\|\||[^|\\]+", re.DOTALL)


def flattened(kind: Kind, record: Record, columns: Mapping[str, str]) -> list[str]:
    """Return the cells of a record in the columns of ``Kind.csv_columns``."""
    flat = {name: value for name, value in record.items() if name != "kind"}
    for name, prefix in kind.parts.items():
        flat |= {f"{prefix}{part}": value for part, value in flat.pop(name).items()}
    # Records without metadata have no such value.
    return [to_cell(flat.get(name), way) for name, way in columns.items()]


def to_cell(value: Any, way: str = "text") -> str:
    """Return the text of a value in a cell, safe to open in a spreadsheet."""
    if value is None:
        text = ""
    elif way == "joined":
        text = joined(map(str, value))
    elif way == "json":
        text = orjson.dumps(value).decode()
    elif isinstance(value, bool):
        text = "true" if value else "false"
    else:
        text = str(value)
    return safe_cell(text)


def from_cell(cell: str) -> str:
    """Return the text of a cell without the prefix that ``to_cell`` adds."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA_STARTS) else cell


def joined(texts: Sequence[str] | Any) -> str:
    """Join texts with ``|``. A backslash escapes ``|`` and itself."""
    return SEPARATOR.join(re.sub(r"([|\\])", r"\\\1", text) for text in texts)


def split(text: str) -> list[str]:
    """Split a joined text into its non-empty texts."""
    texts = [""]
    for part in _PARTS.findall(text):
        if part == SEPARATOR:
            texts.append("")
        else:
            texts[-1] += part[1:] if part.startswith(ESCAPE) and len(part) > 1 else part
    return [each for each in texts if each]
