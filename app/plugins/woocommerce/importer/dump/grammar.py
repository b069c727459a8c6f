"""Regular expressions for the statements of a dump, and for the rows of INSERT statements."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

from app.plugins.woocommerce.importer.tables import SourceTable

# Atomic groups, because Python before 3.11.5 matches a possessive group such as (?:…)*+ wrongly
# (https://github.com/python/cpython/issues/106052). A possessive character class is safe.
STRING = r"'[^'\\]*+(?>(?:(?:\\.|'')[^'\\]*+)*)'"
VALUE = r"(?:(?:_\w++\s*+|[xXbBnN](?='))?" + STRING + r"|[^,'()]++)"
_BETWEEN = r"\s*+,\s*+"


def row_pattern(table: SourceTable, columns: tuple[str, ...]) -> re.Pattern[str]:
    """Return the expression that finds the rows of a table one after the other.

    Its groups contain the literals of the columns to read, in the order of the dump. At an
    incomplete row, the last group, ``end``, matches one character.

    Args:
        columns: all columns of a row, in the order of the dump.
    """
    parts = [f"({VALUE})" if column in table.columns else VALUE for column in columns]
    row = rf"\s*+,?\s*+\(\s*+{_BETWEEN.join(parts)}\s*+\)"
    return re.compile(f"{row}|(?P<end>.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class PlainRows:
    """Expressions for rows of metadata in their usual form, which take a fraction of the time.

    Such a row has two IDs, a key of ASCII characters without quotes and escapes, and a value whose
    quotes are escaped with a backslash.

    Attributes:
        run: matches any number of rows in sequence.
        row: finds each of these rows, with its literals without quotes.
        value: the position of the value in a row.
    """

    run: re.Pattern[str]
    row: re.Pattern[str]
    value: int


def plain_rows(table: SourceTable, columns: tuple[str, ...]) -> PlainRows | None:
    """Return the expressions for rows of a table, or None if its rows are not only metadata."""
    if not table.is_meta or set(columns) != set(table.columns):
        return None
    by_column = dict(zip(table.columns, (_ID, _PLAIN, _ESCAPED, _ID), strict=True))

    def row(group: str) -> str:
        literals = []
        for column in columns:
            literal = group.format(by_column[column])
            literals.append(literal if by_column[column] == _ID else f"'{literal}'")
        return rf"\s*+,?\s*+\({','.join(literals)}\)"

    run = re.compile(f"(?>(?:{row('{}')})+)", re.DOTALL)
    return PlainRows(run, re.compile(row("({})"), re.DOTALL), columns.index(table.columns[2]))


_ID = "[0-9]++"
_PLAIN = r"[\x00-\x26\x28-\x5b\x5d-\x7f]*+"
"""A text of ASCII characters without quotes and escapes."""
_ESCAPED = r"[^'\\]*+(?>(?:\\.[^'\\]*+)*)"
"""A text without quotes that are not escaped with a backslash."""


def reordered(
    table: SourceTable, columns: Sequence[str]
) -> Callable[[Sequence[str | None]], tuple[str | None, ...]]:
    """Return a function that sorts the values of a row in the order of the columns of a table.

    Columns that are missing in the dump become None.
    """
    found = [column for column in columns if column in table.columns]
    if tuple(found) == table.columns:
        return tuple
    places = [found.index(name) if name in found else len(found) for name in table.columns]
    if len(found) == len(table.columns):
        return itemgetter(*places)
    return lambda values: tuple([(*values, None)[place] for place in places])


NAME = r"(?:`((?:[^`]|``)+)`|([\w$]+))"
QUALIFIED = r"(?:(?:`(?:[^`]|``)+`|[\w$]+)\s*\.\s*)?" + NAME
_IN_COMMENT = r"(?>(?:[^*]++|\*(?!/))*)"
# A comment ends with its line, or with the file.
BLANK, BLANK_AT_END = (
    re.compile(rf"(?>(?:\s++|;|(?:--(?=\s)|\#)[^\n]*+{end}|/\*(?![!M]){_IN_COMMENT}\*/)*)")
    for end in (r"\n", r"(?:\n|\Z)")
)
CONDITION = re.compile(r"/\*M?!")
CONDITIONAL = re.compile(rf"/\*M?!{_IN_COMMENT}\*/")
USE = re.compile(r"USE\s+" + NAME + r"\s*(?:;|\Z)", re.IGNORECASE)
_CREATE = r"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?" + QUALIFIED + r"\s*\("
CREATE = re.compile(_CREATE, re.IGNORECASE)
INSERT = re.compile(
    r"(?:INSERT|REPLACE)\s+(?:(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE)\s+)*(?:INTO\s+)?"
    + QUALIFIED
    + r"\s*(\([^()]*\))?\s*VALUES?(?=\s*\()",
    re.IGNORECASE,
)
DELIMITER = re.compile(r"DELIMITER\s+(\S+)[ \t]*(?:\r?\n|\Z)", re.IGNORECASE)
END_OF_DELIMITER = re.compile(r"\n\s*DELIMITER\s+;", re.IGNORECASE)
# Everything up to the next semicolon outside of strings, names and comments.
_REST = (
    r"(?>(?:[^'\"`;/#-]++|" + STRING + r"|\"(?>(?:[^\"\\]++|\\.|\"\")*)\"|`[^`]*+`|"
    rf"--(?=\s)[^\n]*+\n|\#[^\n]*+\n|/\*{_IN_COMMENT}\*/|-(?!-)|--(?=\S)|/(?!\*))*)"
)
REST = re.compile(_REST, re.DOTALL)
DEFINITION = re.compile(f"{_CREATE}({_REST});", re.IGNORECASE | re.DOTALL)
COLUMN_NAME = re.compile(NAME)
_COLUMN = re.compile(
    r"\s*(?:`((?:[^`]|``)+)`|(?!(?:PRIMARY|KEY|UNIQUE|CONSTRAINT|INDEX|"
    r"FULLTEXT|SPATIAL|CHECK|FOREIGN|PERIOD)\b)([\w$]+))\s+[A-Za-z]",
    re.IGNORECASE,
)
LATIN1 = re.compile(r"(?:CHARSET|CHARACTER\s+SET)\s*=?\s*'?latin1\b", re.IGNORECASE)


def end_of(pattern: re.Pattern[str], data: str, start: int, limit: int | None = None) -> int:
    """Return the end of a match that begins at a position, or the position without a match."""
    found = pattern.match(data, start, len(data) if limit is None else max(start, limit))
    return found.end() if found else start


def unquoted(quoted: str) -> str:
    """Return a name without the backticks around it."""
    return quoted.replace("``", "`")


def column_names(body: str) -> tuple[str, ...]:
    """Return the column names of a CREATE TABLE, given the text after its opening parenthesis."""
    parts, depth, start, position = [], 0, 0, 0
    token = re.compile(r"[^'\"`(),]++|" + STRING + r"|`[^`]*+`|\"[^\"]*+\"|.", re.DOTALL)
    for found in token.finditer(body):
        char, position = found.group(), found.start()
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        if depth < 0 or (depth == 0 and char == ","):
            parts.append(body[start:position])
            start = found.end()
        if depth < 0:
            break
    found_names = (_COLUMN.match(part) for part in parts)
    return tuple(unquoted(found[1] or found[2]) for found in found_names if found)
