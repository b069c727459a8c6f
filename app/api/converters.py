"""URL converters for the variable parts of paths (spec 4), and the rules of routes."""

from collections.abc import Callable
from functools import cache

from werkzeug.routing import BaseConverter, Rule, ValidationError

from app.conversions.numbers import INT64_MAX
from app.conversions.text import is_word
from app.schemas.fields.json_schema import PATH_CODE, PATH_EMAIL, PATH_ID


class LazyRule(Rule):
    """A rule whose functions for ``url_for`` are compiled at their first call.

    Werkzeug compiles two functions for each rule as it is added, which is three quarters of
    ``create_app``. Most rules are only matched. Extension point: ``Flask.url_rule_class``.
    """

    def _compile_builder(self, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
        compile_now = super()._compile_builder

        @cache
        def compiled() -> Callable[..., tuple[str, str]]:
            return compile_now(append_unknown)

        def build(rule: Rule, **values: str) -> tuple[str, str]:
            return compiled()(rule, **values)

        return build


class IdConverter(BaseConverter):
    """``{id}``: one or more digits (spec 4). Extension point: ``url_map.converters``."""

    regex = "[0-9]+"
    schema = PATH_ID

    def to_python(self, value: str) -> int:
        """Return the ID. Larger numbers become the largest 64-bit integer (decisions 6)."""
        digits = value.lstrip("0")
        return min(int(digits or 0), INT64_MAX) if len(digits) < 20 else INT64_MAX


class CodeConverter(BaseConverter):
    """``{code}``: a word character, then word characters, white space and hyphens (spec 4.1)."""

    schema = PATH_CODE

    def to_python(self, value: str) -> str:
        """Return the code, or raise ValidationError if the path does not match."""
        if not all(is_word(char) or char.isspace() or char == "-" for char in value):
            raise ValidationError
        if not is_word(value[0]):
            raise ValidationError
        return value


class EmailConverter(BaseConverter):
    """``{email}``: any text, including slashes (spec 4.2)."""

    regex = ".+"
    schema = PATH_EMAIL
    part_isolating = False

    def to_python(self, value: str) -> str:
        return value.removesuffix("/")


CONVERTERS = {"id": IdConverter, "code": CodeConverter, "email": EmailConverter}
