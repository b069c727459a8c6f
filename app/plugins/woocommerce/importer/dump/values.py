"""Values of a dump: literals of MySQL, and text in the character sets that shops have.

A dump is read as UTF-8. Bytes that are not valid UTF-8 are kept as lone surrogates
("surrogateescape").
"""

import re

_ESCAPE = re.compile(r"\\(.)|''", re.DOTALL)
_ESCAPED = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a"}
REPLACEMENT = "\ufffd"
_INVALID = re.compile("[\ud800-\udfff]+")
# MySQL calls cp1252 latin1. Five of its bytes have no character, and are control characters there.
_CHARACTERS = [bytes((byte,)).decode("cp1252", "ignore") or chr(byte) for byte in range(256)]
_BYTES = {
    **{chr(byte): byte for byte in range(256)},
    **{char: byte for byte, char in enumerate(_CHARACTERS)},
}
_INTRODUCER = re.compile(r"_\w+\s*|[nN](?=')")


def text_of(literal: str, *, from_latin1: bool) -> str | None:
    """Return the text of a literal, or None for NULL.

    Args:
        literal: a string, hexadecimal digits, a number or NULL.
        from_latin1: whether the column has the character set that MySQL calls latin1. Many shops
            have stored UTF-8 in such columns. A dump in UTF-8 then contains a character for each
            byte.
    """
    if literal[0] == "'":
        text = literal[1:-1]
        # A quote within a literal is always escaped, so both escapes contain one of these.
        if "\\" in text or "'" in text:
            text = _ESCAPE.sub(_unescape, text)
        return text if text.isascii() else meant(text, from_latin1=from_latin1)
    if introducer := _INTRODUCER.match(literal):  # _binary '...', N'...'
        return text_of(literal[introducer.end() :], from_latin1=from_latin1)
    literal = literal.strip()
    if literal.upper() == "NULL":
        return None
    if literal[:2] in {"0x", "0X"}:
        return text_of_bytes(bytes.fromhex(literal[2:]))
    if literal[:2] in {"x'", "X'"}:
        return text_of_bytes(bytes.fromhex(literal[2:-1]))
    return literal


def _unescape(found: re.Match[str]) -> str:
    char = found[1]
    return "'" if char is None else _ESCAPED.get(char, char)


def text_of_bytes(value: bytes) -> str:
    """Decode text as UTF-8, or otherwise as latin1."""
    return meant(value.decode(errors="surrogateescape"), from_latin1=False)


def meant(text: str, *, from_latin1: bool) -> str:
    """Return the decoded text of a column that contains characters beyond ASCII.

    Invalid bytes beside valid UTF-8 become U+FFFD (records 5). A text in which no character beyond
    ASCII is valid is latin1, as in a dump that was not written in UTF-8.

    Args:
        text: the text, with invalid bytes as lone surrogates.
    """
    if not _INVALID.search(text):
        return repaired(text) if from_latin1 else text
    if from_latin1 or _INVALID.sub("", text).isascii():
        return "".join(_CHARACTERS[byte] for byte in text.encode(errors="surrogateescape"))
    return _INVALID.sub(REPLACEMENT, text)


def repaired(text: str) -> str:
    """Decode text whose characters are the bytes of UTF-8. Returns any other text unchanged."""
    if text.isascii():
        return text
    try:
        return bytes(_BYTES[char] for char in text).decode()
    except (UnicodeDecodeError, KeyError):
        return text
