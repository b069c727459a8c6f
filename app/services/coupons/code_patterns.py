"""Patterns of generated coupon codes: possible codes, and random codes (migration 3)."""

from __future__ import annotations

import re
import secrets
import unicodedata
from dataclasses import dataclass
from itertools import pairwise, product

from app.conversions.text import CODE_MAX_LENGTH, coupon_code, nfc
from app.errors import InvalidParams, Sentence, ShopError

PLACEHOLDER = "#"
"""Placeholder for a random character in a pattern."""

TIMES_AS_MANY, TIMES_AS_MANY_IF_GUESSABLE = 1_000_000, 100
"""Minimum number of possible codes per requested code."""

MAX_CHARACTERS = 256
"""Maximum number of different characters, so that one random byte selects one of them."""

# A noncharacter replaces each random character while a pattern is normalized.
_RANDOM = "\ufdd0"
_MARKUP = re.compile("[<>&]")


@dataclass(frozen=True, slots=True)
class CodePattern:
    """The form of generated codes.

    Every code is in the normalized form of coupon codes (decisions 4).

    Attributes:
        literals: the fixed texts before, between and after the runs of random characters.
        lengths: the lengths of these runs, one fewer than literals.
        charset: the random characters, each once.
    """

    literals: tuple[str, ...]
    lengths: tuple[int, ...]
    charset: str

    @classmethod
    def parse(cls, prefix: str, pattern: str, charset: str) -> CodePattern:
        """Return the normalized pattern of a request.

        Args:
            prefix: the text that all codes begin with.
            pattern: the text after the prefix, with ``#`` for each random character.
            charset: letters and digits in any case.

        Raises:
            InvalidParams: codes of the pattern would not be normalized, or the charset is empty or
                too long.
            ShopError: the codes are too long.
        """
        if max(len(prefix), len(pattern)) > CODE_MAX_LENGTH:
            raise _too_long()
        characters = _distinct_characters(charset)
        for name, part in (("prefix", prefix), ("pattern", pattern)):
            # Tags are removed. What remains could become a tag or an entity with random characters.
            if _RANDOM in part or _MARKUP.search(coupon_code(part)):
                raise InvalidParams({f"generate.{name}": "must not contain <, > or &."})
        # Normalized together: white space is removed only where a code begins and ends.
        template = coupon_code(prefix + pattern.replace(PLACEHOLDER, _RANDOM))
        if _MARKUP.search(template) or not _is_stable(template, characters):
            reason = "has text that changes beside some of the random characters."
            raise InvalidParams({"generate.pattern": reason})
        if len(template) > CODE_MAX_LENGTH:
            raise _too_long()
        literals = re.split(f"{_RANDOM}+", template)
        lengths = map(len, re.findall(f"{_RANDOM}+", template))
        return cls(tuple(literals), tuple(lengths), characters)

    @property
    def size(self) -> int:
        """The number of different codes."""
        return int(len(self.charset) ** sum(self.lengths))

    def require_size(self, count: int, *, guessable: bool) -> None:
        """Reject a pattern whose codes could be guessed.

        Args:
            guessable: whether the client accepts codes that are easier to guess.

        Raises:
            ShopError: the pattern has too few codes.
        """
        times = TIMES_AS_MANY_IF_GUESSABLE if guessable else TIMES_AS_MANY
        if self.size < count * times:
            raise ShopError(
                "shop_api_pattern_too_small",
                size=Sentence("{0:,}", self.size),
                minimum=Sentence("{0:,}", count * times),
                remedy="Add # signs." if guessable else "Add # signs, or set allow_guessable.",
            )

    def random_codes(self, count: int) -> list[str]:
        """Return random codes, which can contain duplicates."""
        length = sum(self.lengths)
        characters = _random_text(self.charset, length * count)
        template = "%s".join(literal.replace("%", "%%") for literal in self.literals)
        ends = [sum(self.lengths[:number]) for number in range(len(self.lengths) + 1)]
        runs = [slice(*pair) for pair in pairwise(ends)]
        return [
            template % tuple(code[run] for run in runs)
            for code in (characters[length * n : length * (n + 1)] for n in range(count))
        ]


def _too_long() -> ShopError:
    reason = Sentence("the code is longer than {0} characters.", CODE_MAX_LENGTH)
    return ShopError("shop_api_cannot_create_coupon", reason=reason)


def _distinct_characters(charset: str) -> str:
    """Return the characters of a charset as codes contain them, each once."""
    charset = charset if len(charset) <= CODE_MAX_LENGTH else ""
    characters = list(dict.fromkeys(coupon_code(char) for char in nfc(charset)))
    if not 1 <= len(characters) <= MAX_CHARACTERS:
        reason = Sentence("must have between 1 and {0} different characters.", MAX_CHARACTERS)
        raise InvalidParams({"generate.charset": reason})
    # A letter in lower case can be several characters, or a letter and a mark.
    if not all(
        len(char) == 1 and unicodedata.category(char)[0] in "LN" and nfc(char) == char
        for char in characters
    ):
        raise InvalidParams({"generate.charset": "must consist of letters and digits."})
    return "".join(characters)


def _is_stable(template: str, characters: str) -> bool:
    """Return whether NFC changes no code of a template."""
    if template.isascii() and characters.isascii():
        return True
    # A mark changes the character before it, also across other marks.
    if any(
        before == _RANDOM and unicodedata.combining(after) for before, after in pairwise(template)
    ):
        return False
    pairs = {pair for pair in pairwise(template) if _RANDOM in pair}
    return all(
        nfc(text) == text
        for before, after in pairs
        for text in map(
            "".join, product(*(characters if char == _RANDOM else char for char in (before, after)))
        )
    )


def _random_text(charset: str, length: int) -> str:
    """Return random characters of at most 256 different ones, all with the same probability."""
    # Bytes above the largest multiple of the number of characters are dropped.
    number = len(charset)
    usable = 256 - 256 % number
    table = bytes(byte % number for byte in range(256))
    unusable = bytes(range(usable, 256))
    found = bytearray()
    while len(found) < length:
        wanted = length - len(found)
        found += secrets.token_bytes(wanted * 256 // usable + 16).translate(table, unusable)
    return found[:length].decode("latin-1").translate(dict(enumerate(charset)))
