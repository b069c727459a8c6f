"""Fields of forms: how each field of a schema of the API is shown, read and converted (admin 5)."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import Any

import marshmallow as ma

from app.api.authentication import current_principal
from app.auth.principals import ROLES
from app.catalog import current_catalog
from app.config.current import expiry_zone, shop_zone
from app.conversions.dates import in_zone
from app.conversions.webhooks import EVERYTHING, known_topics
from app.plugins.admin import html
from app.plugins.admin.calls import can
from app.plugins.admin.texts import gettext as _
from app.schemas.base import Base
from app.schemas.coupons.batch import CodeCount
from app.schemas.fields import input as inputs
from app.schemas.fields import list_input as lists
from app.schemas.fields.form import FORM, FormField
from app.schemas.webhooks import EventId
from app.services.campaigns.queries import offered_names
from app.services.orders.columns import REFUNDED

COUPON_TYPES = {
    "percent": "Percentage of the cart",
    "fixed_cart": "Amount off the cart",
    "percent_product": "Percentage of each product",
    "fixed_product": "Amount off each product",
    "buy_x_get_y": "Buy some, get some cheaper",
}


def is_percent(coupon_type: str) -> bool:
    """Return whether the amount of a coupon type is a percentage."""
    return coupon_type.startswith("percent") or coupon_type == "buy_x_get_y"


PERMISSIONS = {"read_write": "Read and write", "read": "Read only", "write": "Write only"}

CHOICES: dict[str, Callable[[], Mapping[str, str]]] = {
    "coupon_types": lambda: {
        name: _(COUPON_TYPES.get(name, name)) for name in current_catalog().coupon_types
    },
    "order_statuses": lambda: {
        name: label for name, label in status_labels().items() if name != REFUNDED or may_refund()
    },
    "permissions": lambda: {name: _(label) for name, label in PERMISSIONS.items()},
    # A key without read permission cannot sign in.
    "signs_in": lambda: {name: _(PERMISSIONS[name]) for name in ("read_write", "read")},
    "resources": lambda: {
        name: html.words(name) for name in ("all", *sorted(current_catalog().resources))
    },
    "topics": lambda: {
        name: _("All events") if name == EVERYTHING else name
        for name in known_topics(current_catalog().event_types)
    },
    "roles": lambda: {name: html.words(name) for name in ROLES},
    "campaigns": lambda: campaign_choices(),  # noqa: PLW0108  # defined below
}
"""What a ``select`` or boxes offer: labels by values."""


def status_labels() -> dict[str, str]:
    """Return the labels of the statuses of orders by their names."""
    return {name: _(label) for name, label in current_catalog().order_statuses.items()}


def may_refund() -> bool:
    """Return whether the session may give an order the status ``refunded``, which refunds it."""
    return can("create_order_refund")


MAX_CAMPAIGNS = 500
"""The number of campaigns that a ``select`` offers."""


def campaign_choices() -> dict[str, str]:
    """Return the names of campaigns by their ID, and the choice of none."""
    names = offered_names(current_principal(), MAX_CAMPAIGNS)
    several = {name for name, count in Counter(names.values()).items() if count > 1}
    labels = {
        str(number): f"{name} (#{number})" if name in several else name
        for number, name in names.items()
    }
    return {"": _("No campaign"), **labels}


_KINDS: Mapping[str, tuple[type[ma.fields.Field[object]], ...]] = {
    "checkbox": (inputs.StrictTrue,),
    "amount": (inputs.DecimalInput, inputs.Price),
    "number": (
        inputs.Count,
        inputs.Integer,
        inputs.Quantity,
        inputs.ExactInteger,
        CodeCount,
        EventId,
    ),
    "time": (inputs.TimestampInput, inputs.MomentText),  # a kind of DateText
    "date": (inputs.DateText,),
    "select": (inputs.Choice,),
    "ids": (lists.IdArray,),
    "list": (lists.EmailArray, lists.CodeArray, lists.TagArray),
    "hidden": (inputs.MetadataInput,),
}
"""How a form shows fields, by their classes. Others are text."""

_LISTS = {"ids", "list", "checks", "entry"}
"""Kinds whose values are arrays, a line of the text for each entry."""

_PLAIN = FormField()

_LAST_DAY = (
    "The last day on which the coupon works, in the time zone of the shop. "
    "Empty means that it never expires."
)
"""Help of an expiry date with SHOP_EXPIRY_IN_TIMEZONE."""


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A field of a form."""

    name: str  # dotted within an object: ``billing_address.city``
    label: str
    kind: str  # how it is shown
    form: FormField = _PLAIN  # how the schema wants it to be shown
    help: str = ""
    required: bool = False
    choices: Callable[[], Mapping[str, str]] = dict  # what it offers: labels by values, read anew
    max_length: int | None = None
    line: str = ""  # the line of a list that it belongs to
    item_id: int = 0  # the ID of the item that the line is

    @property
    def id(self) -> str:
        return f"field-{self.name.replace('.', '-')}"

    @property
    def title(self) -> str:
        """Its label, and the line of a list that it belongs to."""
        return ", ".join(filter(None, (self.line, _(self.label))))

    def text(self, value: Any) -> str:
        """Return a JSON value as the text of the form."""
        if value is None or (self.form.is_empty_zero and value in {0, "0.00"}):
            return ""
        if isinstance(value, bool):
            return "true" if value else ""
        if self.kind in _LISTS:
            return (", " if self.line else "\n").join(str(each) for each in value)
        if self.kind == "time":
            moment = value if isinstance(value, datetime) else html.parse_time(value)
            local = in_zone(moment, shop_zone()).replace(tzinfo=None)
            return local.isoformat(timespec="minutes")  # strftime writes the year 1 as one digit
        return str(value)[:10] if self.kind == "date" else str(value)

    def value(self, text: str) -> object:
        """Return the JSON value of a text. Empty text is the documented value for *none*.

        Raises:
            ValueError: the text has another form. The message says what to write.
        """
        convert, message = _CONVERTERS.get(self.kind, (str, ""))
        try:
            return convert(text)
        except ValueError:
            raise ValueError(_(message)) from None


def _amount(text: str) -> str:
    is_grouped = re.fullmatch(r"-?[1-9][0-9]{0,2}\.[0-9]{2}0", text)  # 1.500 can mean 1500
    if is_grouped or (text and not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text)):
        raise ValueError
    return text


def _number(text: str) -> int:
    if text and not re.fullmatch(r"-?[0-9]+", text):
        raise ValueError
    return int(text or 0)


def _time(text: str) -> str:
    """Return a local time of the shop with its offset, as the API expects it.

    Raises:
        ValueError: it is no time, or one that the clocks of the shop skip.
    """
    if not text:
        return ""
    local = datetime.fromisoformat(text)
    zone, moment = local.tzinfo or shop_zone(), html.moment_of(text)
    if moment and in_zone(moment, zone).replace(tzinfo=None) != local.replace(tzinfo=None):
        raise ValueError
    return local.replace(tzinfo=zone).isoformat()


def _ids(text: str) -> list[int]:
    words = [word for word in re.split(r"[\s,;]+", text) if word]
    if not all(re.fullmatch(r"[0-9]{1,18}", word) for word in words):
        raise ValueError
    return [int(word) for word in words]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in re.split(r"[\n,;]+", text) if line.strip()]


_CONVERTERS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "amount": (
        _amount,
        "Write a number with a point and without other separators, for example 1000.50.",
    ),
    "number": (_number, "Write a whole number without separators, for example 1000."),
    "date": (
        lambda text: date.fromisoformat(text).isoformat() if text else "",
        "Write a date in the form 2026-11-29.",
    ),
    "time": (
        _time,
        "Write a date and a time that the clocks of the shop show, in the form 2026-11-29T18:00.",
    ),
    "ids": (_ids, "Write the numbers of the IDs, one per line."),
    "list": (_lines, ""),
    "checks": (_lines, ""),
    "entry": (_lines, ""),
    "checkbox": (lambda text: text == "true", ""),
}  # fmt: skip
"""Functions that return the JSON value of a text, and what to write instead if they fail."""


def _declared(schema: type[Base], prefix: str = "") -> tuple[tuple[FieldSpec, inputs.Input], ...]:
    """Return the fields of a schema of requests, in the order in which a form shows them."""
    found: list[tuple[int, FieldSpec, inputs.Input]] = []
    for name, declared in schema._declared_fields.items():
        form: FormField = declared.metadata.get(FORM) or FormField()
        label = form.label or name.replace("_", " ").capitalize()
        if isinstance(declared, inputs.InputPart):
            if form.kind == "hidden":
                continue
            part: Any = declared.nested
            inner = _declared(part, f"{prefix}{name}.")
            if not any(spec.form.section != "More" for spec, _ in inner):  # an address
                inner = tuple(
                    (replace(spec, form=replace(spec.form, section=label)), of)
                    for spec, of in inner
                )
            found += [(form.order, *each) for each in inner]
        elif isinstance(declared, inputs.Input):
            by_class = (kind for kind, classes in _KINDS.items() if isinstance(declared, classes))
            kind = form.kind or ("select" if form.values else next(by_class, "text"))
            described = declared.metadata.get("description", "")
            shown = "" if described.removesuffix(".") == label else described
            length = declared.max_text_length or declared.openapi.get("maxLength")
            spec = FieldSpec(
                f"{prefix}{name}",
                label,
                kind,
                form,
                shown if form.help is None else form.help,
                declared.required or form.is_required,
                max_length=length,
            )
            if kind != "hidden":
                found.append((form.order, spec, declared))
    return tuple(each[1:] for each in sorted(found, key=lambda each: each[0]))


def specs_of(schema: type[Base] | None) -> list[FieldSpec]:
    """Return the fields of a schema of requests, in the order in which a form shows them."""
    found = []
    for spec, declared in _declared(schema) if schema else ():
        choices = CHOICES.get(spec.form.values, dict)
        if spec.kind in {"select", "checks"} and not spec.form.values:
            choices = partial(dict, {each: each for each in declared.openapi.get("enum", ())})
        shown = replace(spec, choices=choices)
        if spec.name.endswith("expiry_date") and expiry_zone():
            shown = replace(shown, label="Last day", help=_LAST_DAY)
        found.append(shown)
    return found


def spec_of(schema: type[Base], name: str) -> FieldSpec:
    """Return a field of a schema of requests."""
    return next(spec for spec in specs_of(schema) if spec.name == name)


def line_specs(
    schema: type[Base], name: str, lines: Mapping[int, str], *, are_ids: bool = False
) -> list[FieldSpec]:
    """Return the fields of the items of a list, which a form shows as lines.

    Args:
        schema: the schema of an item.
        name: the name of the list. A field of an item is ``<name>.<number>.<field>``.
        lines: what names each item, by a number.
        are_ids: whether the numbers are the IDs of the items.
    """
    return [
        replace(
            spec,
            name=f"{name}.{number}.{spec.name}",
            line=line,
            required=False,
            item_id=number if are_ids else 0,
        )
        for number, line in lines.items()
        for spec in specs_of(schema)
    ]
