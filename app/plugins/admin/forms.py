"""Forms of records, made from the schemas of the API (admin 5).

A field is text in the page. ``Form.read`` converts the submitted text to JSON values and keeps only
the fields whose text differs from what the form showed. The API then loads them as a strict
request, so the tolerance of the API for other clients has no place here.
"""

import copy
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import uuid4

from flask import current_app, request
from sqlalchemy.orm import Session

from app.db.session import run_in_transaction, try_in_transaction
from app.errors import ShopError
from app.plugins.admin import html
from app.plugins.admin.calls import (
    ApiRequest,
    Record,
    Reply,
    api_request,
    call,
    form_headers,
    record_of,
)
from app.plugins.admin.form_fields import FieldSpec, is_percent
from app.plugins.admin.texts import gettext as _
from app.services.orders.item_changes import NEEDS_NAME, NEEDS_PRICE


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that two editors see differently."""

    spec: FieldSpec
    shown: str  # what the form showed
    theirs: str  # what the record has now
    own: str  # what was typed


@dataclass(slots=True)
class Form:
    """A form of a record."""

    specs: Sequence[FieldSpec]  # the fields in their order
    key: str  # the wrapper key of the request, with which the errors of the API begin
    shown: dict[str, str] = field(default_factory=dict)  # the text of each field at first
    texts: dict[str, str] = field(default_factory=dict)  # the text of each field now
    errors: dict[str, str] = field(default_factory=dict)  # by the field; "" is the whole form
    etag: str = ""  # of the record that was shown
    sent: ApiRequest | None = None  # the request that the form stands for
    done: str = ""  # what a save reports (``frame.DONE``)
    lines: dict[str, list[int]] = field(default_factory=dict)  # the lines of lists with a value
    warnings: Sequence[str] = ()  # what is rarely meant
    left: Mapping[str, str] = field(default_factory=dict)  # of lines, from which a script fills in

    @classmethod
    def of_record(
        cls, specs: Sequence[FieldSpec], key: str, record: Mapping[str, object], etag: str = ""
    ) -> Self:
        """Return the form of a record as the API returns it."""
        form = cls(specs, key, etag=etag)
        form.shown = {spec.name: spec.text(_within(record, spec.name)) for spec in form.specs}
        form.texts = dict(form.shown)
        return form

    @classmethod
    def of_new(cls, specs: Sequence[FieldSpec], key: str, given: Mapping[str, object]) -> Self:
        """Return the form of a new record that shows these values. All of them are sent.

        Fields without a value show their defaults, which are sent only if they are changed.
        """
        form = cls.of_record(specs, key, given)
        form.shown = {spec.name: spec.form.default for spec in specs}
        absent = [name for name in form.shown if _within(given, name) is None]
        form.texts |= {name: form.shown[name] for name in absent}
        return form

    @classmethod
    def submitted(cls, specs: Sequence[FieldSpec], key: str) -> Self:
        form = cls(specs, key, etag=request.form.get("_etag", ""))
        try:
            shown = json.loads(request.form.get("_shown", "{}"))
        except (ValueError, RecursionError):
            shown = {}
        shown = shown if isinstance(shown, dict) else {}
        texts = {name: text for name, text in shown.items() if isinstance(text, str)}
        form.shown = {spec.name: texts.get(spec.name, "") for spec in form.specs}
        form.texts = {
            spec.name: "\n".join(request.form.getlist(spec.name)).replace("\r\n", "\n").strip()
            for spec in form.specs
        }
        return form

    @property
    def asked_for(self) -> ApiRequest | None:
        """The request, if it was asked for instead of sending it."""
        return self.sent if request.form.get("_show") == "request" and not self.errors else None

    @property
    def sections(self) -> dict[str, dict[tuple[str, str], list[FieldSpec]]]:
        """The fields by the title of their section, and by name and place of their line."""
        found: dict[str, dict[tuple[str, str], list[FieldSpec]]] = {}
        for spec in self.specs:
            line = (spec.line, spec.name.rpartition(".")[0]) if spec.line else ("", "")
            found.setdefault(spec.form.section, {}).setdefault(line, []).append(spec)
        return found

    @property
    def messages(self) -> list[tuple[str, str]]:
        """The errors in the order of the fields: ID of the input and message."""
        named = [
            (spec.id, f"{spec.title}: {self.errors[spec.name]}")
            for spec in self.specs
            if spec.name in self.errors
        ]
        return named + [("", text) for name, text in self.errors.items() if not name]

    @property
    def unconfirmed(self) -> list[str]:
        """The warnings that the page has not shown before the button was pressed."""
        return [each for each in self.warnings if each not in request.form.getlist("_warned")]

    def has_new(self, *names: str) -> bool:
        """Return whether one of some fields, or the whole record, is new."""
        return not self.etag or any(self.texts[name] != self.shown[name] for name in names)

    def unit(self, spec: FieldSpec) -> str:
        """Return the unit of a field: percent, a currency, or nothing."""
        unit = spec.form.unit
        if unit == "amount":
            of = self.texts[f"{spec.name.removesuffix('amount')}type"]
            unit = "%" if is_percent(of) else "currency"
        return str(current_app.config["SHOP_CURRENCY"]) if unit == "currency" else unit

    def read(self, *, everything: bool = False) -> Record:
        """Return the JSON values of the fields whose text has changed, and note errors.

        ``everything`` returns all fields with a text, for a new record.
        """
        values: Record = {}
        for spec in self.specs:
            text = self.texts[spec.name]
            is_given = text not in {"", spec.form.default} or spec.required
            if text == self.shown[spec.name] and not (everything and is_given):
                continue
            if spec.required and not text:
                self.errors[spec.name] = _("Fill in this field.")
                continue
            try:
                _put(values, spec.name, spec.value(text))
            except ValueError as error:
                self.errors[spec.name] = str(error)
        for name in {spec.name.partition(".")[0] for spec in self.specs if spec.line}:
            items = values.pop(name, {})
            if items:
                ids = {each.name: each.item_id for each in self.specs if each.item_id}
                self.lines[name] = [int(number) for number in items]
                values[name] = [
                    {"id": found} | item if (found := _id_of(ids, f"{name}.{number}.")) else item
                    for number, item in items.items()
                ]
        return values

    def note(self, error: ShopError) -> None:
        """Note the errors of the API, each beside its field, or raise one that is not about it."""
        if error.status not in {400, 401, 409, 413, 422}:
            raise error
        names = {spec.name for spec in self.specs}
        labels = {spec.name.rpartition(".")[2]: spec.label for spec in self.specs}
        if error.code == "shop_api_idempotency_key_reused":
            self.errors[""] = _("This form was already sent with other values. Open a new one.")
            return
        for part in error.parts:
            param = re.sub(r"(\w+)\[([0-9]+)\]", self._line, part.param or "")
            param = re.sub(r"\[[0-9]+\]", "", param)
            field = ERROR_FIELDS.get(part.code, "")
            own = param.removeprefix(f"{self.key}."), param.rpartition(".")[2]
            places = *own, field, f"coupon.{field}"  # the coupon of a batch
            lines = (each.name for each in self.specs if each.line)
            stated, named = _REASONS.get(part.details.get("reason"), (part.reason, ""))
            of_line = sorted(
                (each for each in lines if each.rpartition(".")[0] == own[0]),
                key=lambda each: each.rpartition(".")[2] != named,
            )
            name = next((each for each in (*places, *of_line) if each in names), "")
            reason = html.of_api(stated, labels)
            reason = reason[:1].upper() + reason[1:]
            is_named = str(part) != str(part.reason)  # without the field it says less
            if is_named and name not in {*own, *of_line}:
                reason = f"{html.words(own[1])}: {reason}"  # the form lacks the field
            self.errors[name] = reason

    def _line(self, found: re.Match[str]) -> str:
        """Return the name of an item of a list in the names of fields."""
        lines, index = self.lines.get(found[1], []), int(found[2])
        return f"{found[1]}.{lines[index]}" if index < len(lines) else found[0]

    def send(
        self,
        operation: str,
        values: Record,
        check: Callable[[Reply], None] | None = None,
        **path: Any,
    ) -> Reply | None:
        """Send values to an operation, and note errors of the API.

        Args:
            check: raises ShopError if what was written must not be stored. It reads in the same
                transaction, which has ended when the form looks for further errors.

        Returns:
            The response, or None if there are errors or the form shall only be shown.
        """
        self.sent = sent = api_request(operation, body={self.key: values}, **path)

        def write(_session: Session | None = None) -> Reply:
            # An update that adds items creates something, so that it must not run twice.
            once, headers = bool(self.etag and self.lines), form_headers(self.etag)
            reply = call(operation, body=sent.body, headers=headers, once=once, **path)
            if check:
                check(reply)
            return reply

        if "_show" in request.form:
            return None
        if not (self.errors or self.unconfirmed):
            try:
                return run_in_transaction(write) if check else write()
            except ShopError as error:
                self.note(error)
        headers = {"If-Match": self.etag} if self.etag else {}
        self.note_all(
            values, lambda rest: call(operation, body={self.key: rest}, headers=headers, **path)
        )
        return None

    def note_all(self, values: Record, write: Callable[[Record], object]) -> None:
        """Note all errors of values, so that a form shows them at once. Nothing is written.

        Without the wrong values of a form, the API can find others, and then what the shop forbids.

        Args:
            write: sends values, or raises ShopError.
        """
        while self._try(values, write):
            pass

    def _try(self, values: Record, write: Callable[[Record], object]) -> bool:
        """Note the further errors of the values without known errors; return whether any are."""
        found = dict(self.errors)
        values = copy.deepcopy(values)
        for spec in self.specs:
            *outer, last = spec.name.split(".")
            holder = _within(values, ".".join(outer)) if outer else values
            if spec.name in found and not spec.line and isinstance(holder, dict):
                holder.pop(last, None)
                if spec.required:
                    holder[last] = _accepted(spec)
        try:
            try_in_transaction(lambda _session: write(values))
        except ShopError as error:
            self.note(error)
        # Without a value that could not be read, its item can have errors that nobody made.
        places = {s.name.rpartition(".")[0] for s in self.specs if s.line and s.name in found}
        self.errors = found | {
            name: text
            for name, text in self.errors.items()
            if name not in found
            and not (found and not name)
            and name.rpartition(".")[0] not in places
        }
        return len(self.errors) > len(found)

    def save(
        self, read: str, update: str, check: Callable[[Reply], None] | None = None, **path: Any
    ) -> list[Difference]:
        """Send the changed fields, and note errors of the API.

        A record can have a new entity tag although no field of the form has changed: that of a
        coupon changes with each use. The changes are then sent again with the new tag.

        Args:
            read: the operation that reads the record.
            update: the operation that updates it.
            check: as in ``send``.
            path: the variables in the path of both.

        Returns:
            The fields that another editor has changed in between. Nothing is saved then.
        """
        changes = self.read()
        if not (changes or self.errors or "_show" in request.form):
            self.done = "unchanged"
            return []
        for attempt in range(ATTEMPTS):
            try:
                self.done = "saved" if self.send(update, changes, check, **path) else ""
                break
            except ShopError as error:
                if error.code != "shop_api_precondition_failed" or attempt == ATTEMPTS - 1:
                    raise
                record, self.etag = record_of(read, **path)
                if found := self.differences(record):
                    return found
                if self._is_saved(record):  # by an earlier press of the same button
                    self.done = "saved"
                    break
        return []

    def _is_saved(self, record: Mapping[str, object]) -> bool:
        """Return whether a record has the changed texts already."""
        current = Form.of_record(self.specs, self.key, record).shown
        changed = (name for name, text in self.texts.items() if text != self.shown[name])
        return all(current[name] == self.texts[name] for name in changed)

    def differences(self, record: Mapping[str, object]) -> list[Difference]:
        """Return the fields that another editor has changed in between in a record.

        The total of an item that nobody typed follows the quantity that the other has changed.
        """
        current = Form.of_record(self.specs, self.key, record).shown
        for name in self.shown:
            quantity = re.sub(r"\.total$", ".quantity", name)
            is_followed = current.get(quantity) != self.shown.get(quantity)
            if quantity != name and is_followed and self.texts[name] == self.shown[name]:
                self.shown[name] = self.texts[name] = current[name]
        return [
            Difference(spec, self.shown[spec.name], current[spec.name], self.texts[spec.name])
            for spec in self.specs
            if current[spec.name] not in {self.shown[spec.name], self.texts[spec.name]}
        ]


ATTEMPTS = 3
"""How often a save is tried with a new entity tag, if no field of the form has changed."""


def _accepted(spec: FieldSpec) -> object:
    """Return a value that the API accepts in a required field, and that no record has."""
    if spec.kind == "checks":
        return [*spec.choices()][:1]
    unique = uuid4().hex
    text = f"https://{unique}.com" if spec.name.endswith("_url") else f"{unique}@example.com"
    return 1 if spec.kind == "number" else text


def _within(record: Mapping[str, object], name: str) -> object:
    value: object = record
    for part in name.split("."):
        if isinstance(value, list):
            by_id = {str(each["id"]): each for each in value if "id" in each}
            rows = by_id or {str(place): each for place, each in enumerate(value)}
            value = rows.get(part)
        else:
            value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _id_of(ids: Mapping[str, int], line: str) -> int:
    return next((found for name, found in ids.items() if name.startswith(line)), 0)


def _put(values: Record, name: str, value: object) -> None:
    *outer, last = name.split(".")
    for part in outer:
        values = values.setdefault(part, {})
    values[last] = value


_REASONS: Mapping[object, tuple[str, str]] = {
    NEEDS_NAME: ("Needs a name, a product ID or a SKU.", "name"),
    NEEDS_PRICE: ("Needs a price.", "price"),
}
"""What forms say in place of reasons that name fields which forms lack, and the field."""

ERROR_FIELDS = {
    "shop_api_missing_coupon_code": "code",
    "shop_api_missing_campaign_name": "name",
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
    "shop_api_invalid_order_refund": "amount",
    "shop_api_invalid_order_status": "status",
}
"""The field that the errors of services are about, by their codes."""
