"""How the forms of the admin pages show the fields of a schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import marshmallow as ma

FORM = "form"
"""The name in the metadata of a field."""


@dataclass(frozen=True, slots=True)
class FormField:
    """How a form shows a field.

    Args:
        label: its label. By default, its name: "Usage limit" for ``usage_limit``.
        section: the title of its section. By default, "More".
        order: its place. Fields without one follow in the order of the schema.
        kind: ``text``, ``textarea``, ``amount``, ``number``, ``date``, ``time``, ``checkbox``,
            ``select``, ``list`` or ``hidden``, for a field that no form shows. By default, that of
            its class.
        unit: what the value is in: ``currency``, ``amount`` (of money or percent, depending on the
            coupon type), or a word.
        values: what a ``select`` offers: the name of a list.
        help: the text below it, if it differs from its description, which is written for programs.
        is_empty_zero: whether zero means *none*, and is shown as an empty field.
    """

    label: str = ""
    section: str = "More"
    order: int = 1000
    kind: str = ""
    step: str = ""
    unit: str = ""
    values: str = ""
    help: str | None = None
    is_empty_zero: bool = False


HIDDEN_FIELD = FormField(kind="hidden")
"""A field that is no field of a form."""


def set_form(schema: type[ma.Schema], sections: Mapping[str, Mapping[str, FormField]]) -> None:
    """Set how a form shows the fields of a schema.

    Args:
        sections: the fields of each section by its title, in the order of the form.
    """
    shown = [(title, *each) for title, fields in sections.items() for each in fields.items()]
    for place, (title, name, field) in enumerate(shown, 1):
        declared = schema._declared_fields[name]
        form = replace(field, section=title, order=10 * place)
        declared.metadata = {**declared.metadata, FORM: form}
