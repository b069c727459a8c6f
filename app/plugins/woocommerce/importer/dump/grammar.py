"""Regular expressions for the statements of a dump that are needed to find its rows."""

import re
from dataclasses import dataclass

from app.plugins.woocommerce.importer.dump.row_patterns import STRING

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
CREATE = re.compile(
    r"CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?" + QUALIFIED + r"\s*\(", re.IGNORECASE
)
INSERT = re.compile(
    r"(?:INSERT|REPLACE)\s+(?:(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|IGNORE)\s+)*(?:INTO\s+)?"
    + QUALIFIED
    + r"\s*(\([^()]*\))?\s*VALUES?(?=\s*\()",
    re.IGNORECASE,
)
DELIMITER = re.compile(r"DELIMITER\s+(\S+)[ \t]*(?:\r?\n|\Z)", re.IGNORECASE)
END_OF_DELIMITER = re.compile(r"\n\s*DELIMITER\s+;", re.IGNORECASE)
# Everything up to the next semicolon outside of strings, names and comments.
REST = re.compile(
    r"(?>(?:[^'\"`;/#-]++|" + STRING + r"|\"(?>(?:[^\"\\]++|\\.|\"\")*)\"|`[^`]*+`|"
    rf"--(?=\s)[^\n]*+\n|\#[^\n]*+\n|/\*{_IN_COMMENT}\*/|-(?!-)|--(?=\S)|/(?!\*))*)",
    re.DOTALL,
)
COLUMN_NAME = re.compile(NAME)
DEFINITION = re.compile(
    r"\s*(?:`((?:[^`]|``)+)`|(?!(?:PRIMARY|KEY|UNIQUE|CONSTRAINT|INDEX|"
    r"FULLTEXT|SPATIAL|CHECK|FOREIGN|PERIOD)\b)([\w$]+))\s+[A-Za-z]",
    re.IGNORECASE,
)
LATIN1 = re.compile(r"(?:CHARSET|CHARACTER\s+SET)\s*=?\s*'?latin1\b", re.IGNORECASE)


@dataclass(slots=True)
class Definition:
    """The definition of a table in CREATE TABLE."""

    columns: tuple[str, ...]
    is_latin1: bool


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
    found_names = (DEFINITION.match(part) for part in parts)
    return tuple(unquoted(found[1] or found[2]) for found in found_names if found)
