"""Forms of records, made from the schemas of the API (admin 5).

A field is text in the page. ``Form.read`` converts the submitted text to JSON values and keeps only
the fields whose text differs from what the form showed. The API then loads them as a strict
request, so the tolerance of the API for other clients has no place here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import lru_cache
from typing import Any

import marshmallow as ma
from flask import request

from app.admin import html
from app.admin.texts import gettext as _
from app.catalog import current_catalog
from app.errors import ShopError
from app.schemas.base import Base
from app.schemas.coupons.batch import CodeCount
from app.schemas.fields import input as inputs
from app.schemas.fields import list_input as lists
from app.schemas.fields.form import FORM, FormField

COUPON_TYPES = {
    "percent": "Percentage of the cart",
    "fixed_cart": "Amount off the cart",
    "percent_product": "Percentage of each product",
    "fixed_product": "Amount off each product",
}

CHOICES: dict[str, Callable[[], dict[str, str]]] = {
    "coupon_types": lambda: {
        name: _(COUPON_TYPES.get(name, name)) for name in current_catalog().coupon_types
    },
    "order_statuses": lambda: {
        name: _(label) for name, label in current_catalog().order_statuses.items()
    },
}
"""The lists that a ``select`` offers: labels by values."""

_KINDS: tuple[tuple[type[ma.fields.Field[Any]], str], ...] = (
    (inputs.StrictTrue, "checkbox"),
    (inputs.DecimalInput, "amount"),
    (inputs.Price, "amount"),
    (inputs.Count, "number"),
    (inputs.Integer, "number"),
    (inputs.Quantity, "number"),
    (CodeCount, "number"),
    (inputs.AccountId, "number"),
    (inputs.DateText, "date"),
    (inputs.TimestampInput, "time"),
    (inputs.Choice, "select"),
    (lists.IdArray, "ids"),
    (lists.EmailArray, "list"),
    (lists.CodeArray, "list"),
    (inputs.MetadataInput, "hidden"),
)


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A field of a form.

    Args:
        name: its name, dotted within an object: ``billing_address.city``.
        label: its label.
        help: the text below it.
        kind: how it is shown.
        section: the title of its section.
        required: whether it must be filled in.
        step: the step of a number.
        unit: what the value is in.
        choices: the values of a ``select`` and their labels.
        max_length: the maximum number of characters.
        is_empty_zero: whether zero means *none*, and is shown as an empty field.
    """

    name: str
    label: str
    help: str
    kind: str
    section: str
    required: bool
    step: str
    unit: str
    choices: Callable[[], Mapping[str, str]] | None
    max_length: int | None
    is_empty_zero: bool

    @property
    def id(self) -> str:
        """The ID of the input in the page."""
        return f"field-{self.name.replace('.', '-')}"

    @property
    def options(self) -> Mapping[str, str]:
        """The labels of the values that a ``select`` offers."""
        return self.choices() if self.choices else {}

    def text(self, value: Any) -> str:
        """Return a JSON value as the text of the form."""
        if value is None or (self.is_empty_zero and value in {0, "0.00"}):
            return ""
        if isinstance(value, bool):
            return "true" if value else ""
        if self.kind in {"ids", "list"}:
            return "\n".join(str(each) for each in value)
        if self.kind == "date":
            return str(value)[:10]
        return str(value)

    def value(self, text: str) -> Any:
        """Return the JSON value of a text. Empty text is the documented value for *none*.

        Raises:
            ValueError: the text has another form. The message says what to write.
        """
        convert = _CONVERTERS.get(self.kind)
        return convert(text) if convert else text


def _amount(text: str) -> str:
    if text and not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
        raise ValueError(
            _("Write a number with a point and without other separators, for example 1000.50.")
        )
    return text


def _number(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]*", text) or text == "-":
        raise ValueError(_("Write a whole number without separators, for example 1000."))
    return int(text or 0)


def _date(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat() if text else ""
    except ValueError:
        raise ValueError(_("Write a date in the form 2026-11-29.")) from None


def _time(text: str) -> str | None:
    try:
        return html_time(text)
    except ValueError:
        raise ValueError(_("Write a date and a time in the form 2026-11-29T18:00.")) from None


def html_time(text: str) -> str | None:
    """Return a local time of the shop in UTC, as the API expects it."""
    if not text:
        return ""
    local = datetime.fromisoformat(text)
    local = local if local.tzinfo else local.replace(tzinfo=html.zone())
    return local.isoformat()


def _ids(text: str) -> list[int]:
    words = re.split(r"[\s,;]+", text.strip())
    if any(word and not re.fullmatch(r"[0-9]{1,18}", word) for word in words):
        raise ValueError(_("Write the numbers of the IDs, one per line."))
    return [int(word) for word in words if word]


def _lines(text: str) -> list[str]:
    return [line.strip() for line in re.split(r"[\n,;]+", text) if line.strip()]


_CONVERTERS: Mapping[str, Callable[[str], Any]] = {
    "amount": _amount,
    "number": _number,
    "date": _date,
    "time": _time,
    "ids": _ids,
    "list": _lines,
    "checkbox": lambda text: text == "true",
}


@lru_cache(64)
def specs_of(schema: type[Base], prefix: str = "") -> tuple[FieldSpec, ...]:
    """Return the fields of a schema of requests, in the order in which a form shows them."""
    found: list[tuple[int, FieldSpec]] = []
    for name, declared in schema._declared_fields.items():
        form: FormField = declared.metadata.get(FORM) or FormField()
        label = form.label or name.replace("_", " ").capitalize()
        if isinstance(declared, inputs.InputPart):
            part: Any = declared.nested
            inner = specs_of(part, f"{prefix}{name}.")
            if not any(spec.section != "More" for spec in inner):  # an address
                inner = tuple(replace(spec, section=label) for spec in inner)
            found += [(form.order, spec) for spec in inner]
        elif isinstance(declared, inputs.Input) and form.kind != "hidden":
            kind = form.kind or ("select" if form.values else _kind(declared))
            if kind != "hidden":
                spec = _spec(declared, form, kind=kind, name=f"{prefix}{name}", label=label)
                found.append((form.order, spec))
    return tuple(spec for _, spec in sorted(found, key=lambda each: each[0]))


def _kind(declared: ma.fields.Field[Any]) -> str:
    return next((kind for cls, kind in _KINDS if isinstance(declared, cls)), "text")


def _spec(
    declared: inputs.Input,
    form: FormField,
    *,
    kind: str,
    name: str,
    label: str,
) -> FieldSpec:
    choices: Callable[[], Mapping[str, str]] | None = CHOICES.get(form.values)
    if names := declared.openapi.get("enum"):
        choices = choices or (lambda: {each: each for each in names})
    return FieldSpec(
        name=name,
        label=label,
        help=_help(declared.metadata.get("description", ""), label)
        if form.help is None
        else form.help,
        kind=kind,
        section=form.section,
        required=declared.required,
        step=form.step,
        unit=form.unit,
        choices=choices,
        max_length=declared.max_text_length or declared.openapi.get("maxLength"),
        is_empty_zero=form.is_empty_zero,
    )


def _help(description: str, label: str) -> str:
    """Return the help of a field, without a description that repeats its label."""
    return "" if description.removesuffix(".") == label else description


@dataclass(slots=True)
class Form:
    """A form of a record.

    Args:
        schema: the schema of the request.
        key: the wrapper key of the request, with which the errors of the API begin.
        shown: the text of each field when the form was first shown.
        texts: the text of each field now.
        errors: messages by the name of the field, and under "" for the whole form.
        etag: the entity tag of the record that was shown.
        only: the names of the fields, or empty for all.
    """

    schema: type[Base]
    key: str
    shown: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    etag: str = ""
    only: tuple[str, ...] = ()

    @classmethod
    def of_record(
        cls, schema: type[Base], key: str, record: Mapping[str, Any], etag: str = "",
        only: tuple[str, ...] = (),
    ) -> Form:  # fmt: skip
        """Return the form of a record as the API returns it, or of the values of a new one."""
        form = cls(schema, key, etag=etag, only=only)
        form.shown = {spec.name: spec.text(_within(record, spec.name)) for spec in form.specs}
        form.texts = dict(form.shown)
        return form

    @classmethod
    def submitted(cls, schema: type[Base], key: str, only: tuple[str, ...] = ()) -> Form:
        """Return the form that the current request has sent."""
        form = cls(schema, key, etag=request.form.get("_etag", ""), only=only)
        try:
            shown = json.loads(request.form.get("_shown", "{}"))
        except ValueError:
            shown = {}
        shown = shown if isinstance(shown, dict) else {}
        form.shown = {spec.name: str(shown.get(spec.name, "")) for spec in form.specs}
        form.texts = {spec.name: _clean(request.form.get(spec.name, "")) for spec in form.specs}
        return form

    @property
    def specs(self) -> list[FieldSpec]:
        """The fields in their order."""
        every = specs_of(self.schema)
        return [spec for spec in every if not self.only or spec.name in self.only]

    @property
    def sections(self) -> dict[str, list[FieldSpec]]:
        """The fields by the title of their section."""
        found: dict[str, list[FieldSpec]] = {}
        for spec in self.specs:
            found.setdefault(spec.section, []).append(spec)
        return found

    @property
    def shown_json(self) -> str:
        """What the form showed at first, for its hidden field."""
        return json.dumps(self.shown)

    @property
    def messages(self) -> list[tuple[str, str]]:
        """The errors in the order of the fields: ID of the input and message."""
        named = [
            (spec.id, f"{_(spec.label)}: {self.errors[spec.name]}")
            for spec in self.specs
            if spec.name in self.errors
        ]
        return named + [("", text) for name, text in self.errors.items() if not name]

    def read(self, *, everything: bool = False) -> dict[str, Any]:
        """Return the JSON values of the fields whose text has changed, and note errors.

        Args:
            everything: return all fields with a text, for a new record.
        """
        values: dict[str, Any] = {}
        for spec in self.specs:
            text = self.texts[spec.name]
            if text == self.shown[spec.name] and not (everything and (text or spec.required)):
                continue
            if spec.required and not text:
                self.errors[spec.name] = _("Fill in this field.")
                continue
            try:
                _put(values, spec.name, spec.value(text))
            except ValueError as error:
                self.errors[spec.name] = str(error)
        return values

    def note(self, error: ShopError, params: Mapping[str, str] | None = None) -> None:
        """Note the errors of the API, each beside its field.

        Args:
            error: the error.
            params: the name of the field by the error code, for errors that name none.

        Raises:
            ShopError: the error is not about the form.
        """
        if error.status not in {400, 409, 413, 422}:
            raise error
        if error.code == "shop_api_idempotency_key_reused":
            self.errors[""] = _("This form was already sent with other values. Open a new one.")
            return
        names = {spec.name for spec in self.specs}
        for entry in error.entries:
            name = entry.get("param", "").removeprefix(f"{self.key}.")
            name = name if name in names else (params or ERROR_FIELDS).get(entry["code"], "")
            message = entry["message"].removeprefix(f"{entry.get('param', '')} ")
            self.errors[name if name in names else ""] = message[:1].upper() + message[1:]


def _clean(text: str) -> str:
    """Return submitted text with the line ends of the service, without white space around it."""
    return text.replace("\r\n", "\n").strip()


def _within(record: Mapping[str, Any], name: str) -> Any:
    value: Any = record
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _put(values: dict[str, Any], name: str, value: Any) -> None:
    *outer, last = name.split(".")
    for part in outer:
        values = values.setdefault(part, {})
    values[last] = value


ERROR_FIELDS = {
    "shop_api_missing_coupon_code": "code",
    "shop_api_coupon_code_already_exists": "code",
    "shop_api_invalid_coupon_type": "type",
    "shop_api_pattern_too_small": "pattern",
    "shop_api_missing_customer_email": "email",
    "registration-error-invalid-email": "email",
    "registration-error-email-exists": "email",
    "registration-error-invalid-username": "username",
    "registration-error-username-exists": "username",
    "shop_api_invalid_webhook_topic": "topics",
    "shop_api_invalid_webhook_delivery_url": "delivery_url",
}
"""The field that the errors of services are about, by their codes."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that two editors see differently.

    Args:
        spec: the field.
        shown: the text that the form showed.
        theirs: the text that the record has now.
        own: the text that was typed.
    """

    spec: FieldSpec
    shown: str
    theirs: str
    own: str


def differences(form: Form, current: Form) -> list[Difference]:
    """Return the fields of a submitted form that another editor has changed in between.

    Args:
        form: the submitted form.
        current: the form of the record as it is now.
    """
    return [
        Difference(spec, form.shown[spec.name], current.shown[spec.name], form.texts[spec.name])
        for spec in form.specs
        if current.shown[spec.name] not in {form.shown[spec.name], form.texts[spec.name]}
    ]
