"""Small parts of pages: times, amounts, badges and links. All text is escaped."""

# ruff: noqa: RUF001  # dashes and minus signs, as they are printed

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from urllib.parse import urlsplit

from flask import Flask, current_app, url_for
from markupsafe import Markup, escape

from app.config.current import expiry_zone, shop_zone
from app.conversions import expiry as expiry_dates
from app.conversions.currencies import decimal_places
from app.conversions.dates import in_zone
from app.errors import Sentence
from app.plugins.admin import texts
from app.plugins.admin.calls import curl, python
from app.plugins.admin.texts import gettext as _

NONE = "–"
"""What stands for no value."""

SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "AUD": "A$", "CAD": "C$"}


def zone_name() -> str:
    """Return the name of the shop's time zone as people say it: ``New York``."""
    return shop_zone().key.rpartition("/")[2].replace("_", " ")


def today() -> date:
    """Return the current date of the shop."""
    return datetime.now(shop_zone()).date()


def parse_time(text: str) -> datetime:
    """Return the time of a response, such as ``2026-11-23T14:05:00Z``."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def short_time(value: datetime) -> str:
    """Return a time in the shop's zone: ``Nov 23, 14:05``, with the year if it is another."""
    local = in_zone(value, shop_zone())
    return f"{short_date(local.date())}, {local:%H:%M}"


def short_date(value: date) -> str:
    """Return a date: ``Nov 23``, with the year if it is another."""
    return texts.day(value, with_year=value.year != today().year)


def time(text: str | datetime | None, *, utc: bool = False) -> Markup:
    """Return a ``<time>`` with the UTC time as a tooltip, or with ``utc`` as text beside it."""
    if not text:
        return Markup('<span class="none">{}</span>').format(NONE)
    value = parse_time(text) if isinstance(text, str) else text.astimezone(UTC)
    exact = f"{value:%Y-%m-%d %H:%M:%S} UTC"
    shown = Markup('<time datetime="{}" title="{}">{}</time>').format(
        f"{value:%Y-%m-%dT%H:%M:%SZ}", exact, short_time(value)
    )
    return shown + Markup(' <small class="muted">{}</small>').format(exact) if utc else shown


def sortable_time(text: str | None) -> str:
    """Return a time in the shop's zone as spreadsheets read and sort it: ``2026-11-23 14:05``."""
    return f"{in_zone(parse_time(text), shop_zone()):%Y-%m-%d %H:%M}" if text else ""


def money(amount: str | Decimal | float | None, currency: str | None = None) -> str:
    """Return an amount with its currency: ``$1,234.50``, ``CHF 1,234.50`` or ``¥1,234``."""
    if amount is None or amount == "":
        return NONE
    value = Decimal(str(amount))
    code = currency or current_app.config["SHOP_CURRENCY"]
    places = 0 if not decimal_places(code) and value == int(value) else 2
    return ("−" if value < 0 else "") + with_currency(texts.decimal(abs(value), places), code)


def with_currency(text: str, currency: str) -> str:
    """Return a number as an amount: ``$5``, ``CHF 5`` or ``5 €``."""
    sign = SYMBOLS.get(currency, f"{currency} ")
    if texts.sign_is_first():
        return f"{sign}{text}"
    return f"{text}\N{NO-BREAK SPACE}{sign.strip()}"


def number(value: int | str | Decimal | None) -> str:
    """Return a number with separators of thousands."""
    return NONE if value is None else texts.decimal(int(value))


def words(*names: str | None) -> str:
    """Return names of the API as words: ``Shop manager`` for ``shop_manager``."""
    return ", ".join(_((name or NONE).replace("_", " ").capitalize()) for name in names)


_QUOTED = r"""(?<!\w)'[^']*'(?!\w)|(?<!\w)"[^"]*"(?!\w)"""
_API_NAME = re.compile(
    _QUOTED
    + r"|`([a-z]+(?:_[a-z]+)+)`|(?<![\w'\"@./{-])([a-z]+(?:_[a-z]+)+)\b(?!['\"@/:=}]|[.-]\w)"
)


def of_api(text: str | Sentence, labels: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return a sentence of an error of the API in the language of the page, with labels for names.

    Args:
        text: the sentence. Its values are those of a user, and stay as they are.
        labels: the labels of fields by their names. Other names of the API become words.
    """

    def in_words(found: re.Match[str], *, is_value: bool) -> str:
        name = found[1] or found[2]
        if not name or (is_value and not found[1] and name not in labels):
            return found[0]
        return f"“{_(labels[name]) if name in labels else words(name)}”"

    return texts.of_api(
        text,
        lambda sentence: _API_NAME.sub(partial(in_words, is_value=False), sentence),
        lambda value: _API_NAME.sub(partial(in_words, is_value=True), value),
    )


def badge(text: str, tone: str = "") -> Markup:
    """Return a word on a tinted ground. The tone is ``ok``, ``warning``, ``danger`` or neutral."""
    return Markup('<span class="badge {}">{}</span>').format(tone, text)


def link(href: str, text: object) -> Markup:
    """Return a link to a page of the service."""
    return Markup('<a href="{}">{}</a>').format(href, text)


def help_text(text: str) -> Markup:
    """Return a help text, whose words in backticks are code."""
    # The text is plain, although a template's gettext declares translations to be HTML.
    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(str(text)))))  # nosec B704  # escaped before


def external(text: str) -> Markup:
    """Return a value of a record, as a link with its host if it is an HTTP address."""
    try:
        parts = urlsplit(text)
        is_link = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_link = False
    if not is_link or re.search(r"[\s\x00-\x1f\\]", text):
        return escape(text)
    return Markup(
        '<a href="{}" rel="noreferrer noopener" target="_blank">{}</a> <small>({})</small>'
    ).format(text, text, parts.hostname)


def last_day(expiry: str | None) -> date | None:
    """Return the last day on which a coupon with an expiry date works, in UTC or in the shop."""
    return expiry_dates.last_day(date.fromisoformat(expiry[:10]), expiry_zone()) if expiry else None


def end_of(expiry: str) -> datetime:
    """Return the first instant at which a coupon with an expiry date no longer works, in UTC."""
    return expiry_dates.end_of_expiry(date.fromisoformat(expiry[:10]), expiry_zone())


def works_until(expiry: str | None) -> str:
    """Return until when a coupon works: ``Nov 29, 23:59 UTC (Nov 29, 18:59 in New York)``."""
    if not expiry:
        return ""
    end = end_of(expiry)
    last = end - timedelta(minutes=1) if end.year > 1 else end
    return in_both_zones(f"{short_date(last.date())}, {last:%H:%M} UTC", short_time(last))


def moment_of(local: str) -> datetime | None:
    """Return the time of a text of a form, which is local in the shop, or None without a time."""
    try:
        found = datetime.fromisoformat(local)
        return found.replace(tzinfo=found.tzinfo or shop_zone()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def in_utc(local: str) -> str:
    """Return the time of a text of a form in UTC: ``Nov 30, 05:00 UTC``."""
    moment = moment_of(local)
    return f"{short_date(moment.date())}, {moment:%H:%M} UTC" if moment else ""


def in_both_zones(utc: str, local: str) -> str:
    """Return a time in UTC and, if it is another one, in the shop's zone."""
    if shop_zone().key in {"UTC", "Etc/UTC"}:
        return utc
    return _("%(utc)s (%(local)s in %(place)s)", utc=utc, local=local, place=zone_name())


def state_badge(states: Mapping[str, tuple[str, str]], state: str) -> Markup:
    """Return the badge of a state, from a table of words and tones."""
    text, tone = states.get(state, (state, ""))
    return badge(_(text), tone)


def state_words(states: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return the labels of states, from a table of words and tones."""
    return {state: _(word) for state, (word, _tone) in states.items()}


def init_app(app: Flask) -> None:
    """Let templates use these functions."""
    words_and_numbers = help_text, badge, money, number, words, external, curl, python
    times = works_until, shop_zone, in_both_zones, in_utc, moment_of, parse_time, short_time
    functions = {each.__name__: each for each in (*words_and_numbers, *times)}
    app.jinja_env.globals.update(functions, time_tag=time, page_url=url_for)
