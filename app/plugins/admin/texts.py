"""Texts of the pages. ``gettext`` marks them for extraction and translation (Babel).

``pybabel extract --mapping tools/babel.cfg app/plugins/admin`` collects the texts. English needs no
catalog: without translations, the functions return the text itself.
"""

from gettext import NullTranslations, translation
from pathlib import Path
from typing import Any

from flask import Flask

CATALOG: NullTranslations = translation(
    "admin", Path(__file__).parent / "translations", languages=["en"], fallback=True
)
"""The translations of the texts."""


def init_app(app: Flask) -> None:
    """Let templates use ``_``, ``gettext`` and ``ngettext``."""
    app.jinja_env.add_extension("jinja2.ext.i18n")
    app.jinja_env.install_gettext_callables(gettext, CATALOG.ngettext, newstyle=True)  # type: ignore[attr-defined] # jinja2.ext.i18n


def gettext(text: str, **values: Any) -> str:
    """Return a text in the language of the pages, with its ``%(name)s`` placeholders filled in."""
    found = CATALOG.gettext(text) if text else ""  # for which a catalog returns its header
    return found % values if values else found


def ngettext(singular: str, plural: str, number: int, **values: Any) -> str:
    """Return the text for a number, which is its placeholder ``%(num)s``."""
    return CATALOG.ngettext(singular, plural, number) % {"num": f"{number:,}", **values}
