"""Texts, numbers and dates of the pages in the language of the request (Babel).

A text is marked with ``gettext`` where a page shows it. ``make translations`` collects the texts
and updates the catalogs in ``translations``. English needs no catalog. Another language is a folder
there and an entry of LANGUAGES.
"""

from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from gettext import NullTranslations, translation
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING

from babel import Locale
from babel.dates import format_skeleton
from babel.messages.mofile import read_mo
from babel.numbers import format_decimal
from flask import Flask, g, has_request_context, redirect, request

from app.errors import Sentence

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

FOLDER = Path(__file__).parent / "translations"

LANGUAGES = ("en", "de")
"""The languages of the pages. The first one is the default."""

COOKIE = "shop_language"
"""The cookie with the language that a user has chosen."""

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
        # best_match would take en;q=0.5 before de-AT, because it is exact.
        accepted = (tag.partition("-")[0].lower() for tag, q in request.accept_languages if q)
        names = chosen, *accepted
        g.admin_language = next((each for each in names if each in LANGUAGES), "en")
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


def of_api(
    text: str | Sentence, sentence: Callable[[str], str] = str, value: Callable[[str], str] = str
) -> str:
    """Return a sentence of the API in the language of the page.

    Args:
        text: the sentence. Its values that are sentences themselves are translated, too.
        sentence: returns how the page shows a sentence of the API, without its values.
        value: returns how it shows another text, or a value. Values with names stay as they are.
    """

    def shown(each: object) -> object:
        return of_api(each, sentence, value) if isinstance(each, str | Sentence) else each

    if isinstance(text, str):
        return sentence(gettext(text)) if text in _SENTENCES else value(text)
    named = {
        name: shown(each) if isinstance(each, Sentence) or name in {"reason", "remedy"} else each
        for name, each in text.named.items()
    }
    values = list(map(shown, text.values))
    return _FORMATTER.vformat(sentence(gettext(text.template)), values, named)


class _Formatter(Formatter):
    """Fills in a sentence. Thousands have the separator of the language of the page."""

    def format_field(self, value: object, format_spec: str) -> str:
        if format_spec == "," and isinstance(value, int):
            return decimal(value)
        return str(super().format_field(value, format_spec))


_FORMATTER = _Formatter()


def _sentences() -> Iterator[str]:
    """Yield the sentences of the catalogs, which all have the same ones."""
    with (FOLDER / LANGUAGES[1] / "LC_MESSAGES" / "admin.mo").open("rb") as file:
        for message in read_mo(file):
            if isinstance(message.id, str) and " " in message.id:
                yield message.id


_SENTENCES = frozenset(_sentences())  # read once, because each error is compared with them


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
    return _CATALOGS[language()]


# Read once. Otherwise gettext looks for the file of each text of a page.
_CATALOGS = {
    code: translation("admin", FOLDER, languages=[code], fallback=True) for code in LANGUAGES
}
