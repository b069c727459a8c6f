"""Texts, numbers and dates of the pages in the language of the request (Babel).

A text is marked with ``gettext`` where a page shows it. ``make translations`` collects the texts
and updates the catalogs in ``translations``. English needs no catalog. Another language is a folder
there and an entry of LANGUAGES.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from gettext import NullTranslations, translation
from pathlib import Path
from typing import TYPE_CHECKING

from babel import Locale
from babel.dates import format_skeleton
from babel.messages.mofile import read_mo
from babel.numbers import format_decimal
from flask import Flask, g, has_request_context, redirect, request

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

FOLDER = Path(__file__).parent / "translations"

LANGUAGES = ("en", "de")
"""The languages of the pages. The first one is the default."""

COOKIE = "shop_language"
"""The cookie with the language that a user has chosen."""

MAX_SENTENCE = 1000
"""The length of a sentence of the API that is compared with those with values."""

MAX_NESTING = 5
"""How many sentences within each other are translated."""

COOKIE_DAYS = 400
"""The longest time for which browsers keep a cookie."""


def init_app(app: Flask) -> None:
    """Let templates use ``_``, ``gettext`` and ``ngettext``."""
    app.jinja_env.add_extension("jinja2.ext.i18n")
    app.jinja_env.install_gettext_callables(gettext, _ngettext, newstyle=True)  # type: ignore[attr-defined] # jinja2.ext.i18n
    names = {code: str(Locale.parse(code).display_name).title() for code in LANGUAGES}
    app.jinja_env.globals.update(language=language, languages=names)


def language() -> str:
    """Return the language of the request: the one that the user chose, or that of the browser.

    Outside a request, it is English.
    """
    if not has_request_context():
        return "en"
    if "admin_language" not in g:
        chosen = request.cookies.get(COOKIE, "")
        accepted = request.accept_languages.best_match(LANGUAGES, "en")
        g.admin_language = chosen if chosen in LANGUAGES else accepted
    found: str = g.admin_language
    return found


def chosen(name: str, address: str) -> "Response":
    """Return the redirect to an address that stores the choice of a language."""
    response = redirect(address, 303)
    if name in LANGUAGES:
        seconds = COOKIE_DAYS * 86_400
        response.set_cookie(COOKIE, name, max_age=seconds, secure=request.is_secure, samesite="Lax")
    return response


def gettext(text: str, **values: object) -> str:
    """Return a text in the language of the page, with its ``%(name)s`` placeholders filled in."""
    found = _catalog().gettext(text) if text else ""  # for which a catalog returns its header
    return found % values if values else found


def reason_text(
    reason: Mapping[str, str], messages: Mapping[str, str], shown: Callable[[str], str] = str
) -> str:
    """Return the message of a reason of the API in the language of the page.

    Args:
        reason: its ``code`` and ``message``.
        messages: the messages by the codes, with placeholders.
        shown: returns how the page shows the value of a placeholder.
    """
    template = messages.get(reason["code"], "")
    values = _values(_VALUE.split(template), reason["message"])
    if values is None:  # a more precise message, or one of a plugin
        return of_api(reason["message"])
    return _filled(gettext(template), {name: shown(text) for name, text in values.items()})


def of_api(
    text: str,
    sentence: Callable[[str], str] = str,
    value: Callable[[str], str] = str,
    nesting: int = MAX_NESTING,
) -> str:
    """Return a sentence of an error of the API in the language of the page.

    Args:
        text: the sentence. Its message in the catalog has ``{0}`` or a name in braces in place of
            a value. Values that are sentences themselves are translated, too.
        sentence: returns how the page shows a sentence of the API, without its values.
        value: returns how it shows another text, or a value. Values with names stay as they are.
        nesting: how many times sentences within others are translated.
    """
    if text in _SENTENCES:
        return sentence(gettext(text))
    for template, parts in _TEMPLATES if nesting and len(text) <= MAX_SENTENCE else ():
        if (values := _values(parts, text)) is not None:
            shown = {
                name: of_api(each, sentence, value, nesting - 1)
                if name.isdecimal() or name in {"reason", "remedy"}
                else each
                for name, each in values.items()
            }
            return _filled(sentence(gettext(template)), shown)
    return value(text)


_VALUE = re.compile(r"\{(\w+)\}")


def _values(parts: Sequence[str], text: str) -> dict[str, str] | None:
    """Return the values of a text by their names, or None if it is another sentence.

    Args:
        parts: the text of a template before its first value, the name of the value, and so on.
    """
    if len(parts) == 1:
        return {} if text == parts[0] else None
    first, *between, last = parts[::2]
    start, end = len(first), len(text) - len(last)
    if start > end or not (text.startswith(first) and text.endswith(last)):
        return None
    values = {}
    for name, literal in zip(parts[1::2], between, strict=False):
        if (found := text.find(literal, start, end)) < 0:
            return None
        values[name] = text[start:found]
        start = found + len(literal)
    return values | {parts[-2]: text[start:end]}


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Return a text with its values."""
    return _VALUE.sub(lambda found: values[found[1]], text)


def _sentences() -> Iterator[str]:
    """Yield the sentences of the catalogs, which all have the same ones."""
    with (FOLDER / LANGUAGES[1] / "LC_MESSAGES" / "admin.mo").open("rb") as file:
        for message in read_mo(file):
            if isinstance(message.id, str) and " " in message.id:
                yield message.id


_SENTENCES = frozenset(_sentences())  # read once, because each error is compared with them
_TEMPLATES = [
    (each, _VALUE.split(each))
    for each in sorted(_SENTENCES, key=lambda each: (-len(each), each))
    if _VALUE.search(each) and re.search("[a-z]{3}", _VALUE.sub("", each))
]


def ngettext(singular: str, plural: str, number: int, **values: object) -> str:
    """Return the text for a number, which is its placeholder ``%(num)s``."""
    return _ngettext(singular, plural, number) % {"num": decimal(number), **values}


def decimal(value: int | Decimal, places: int = 0, *, trimmed: bool = False) -> str:
    """Return a number with the separators of the language: ``1,234.50`` or ``1.234,50``.

    ``trimmed`` leaves out the zeros at its end: ``12.5``.
    """
    pattern = f"#,##0.{('#' if trimmed else '0') * places}" if places else "#,##0"
    return format_decimal(value, pattern, locale=language())


def day(value: date, *, with_year: bool) -> str:
    """Return a date: ``Nov 23, 2026`` or ``23. Nov. 2026``."""
    return format_skeleton("yMMMd" if with_year else "MMMd", value, locale=language())


def sign_is_first() -> bool:
    """Return whether the sign of a currency precedes the amount."""
    return language() == "en"


def _ngettext(singular: str, plural: str, number: int) -> str:
    return _catalog().ngettext(singular, plural, number)


def _catalog() -> NullTranslations:
    return translation("admin", FOLDER, languages=[language()], fallback=True)  # cached
