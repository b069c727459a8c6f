"""How the forms of the admin pages show the fields of a schema."""

from collections.abc import Collection, Mapping
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
            ``select``, ``checks`` (a box for each value), ``list``, or ``hidden`` for a field that
            no form shows. By default, that of its class.
        unit: what the value is in: ``currency``, ``amount`` (of money or percent, depending on the
            coupon type), or a word.
        values: what a ``select`` or boxes offer: the name of a list.
        help: the text below it, if it differs from its description, which is written for programs.
        is_empty_zero: whether zero means *none*, and is shown as an empty field.
        default: the text of the field in the form of a new record, if the field has a default.
        is_required: whether it must be filled in, although the schema does not require it.
    """

    label: str = ""
    section: str = "More"
    order: int = 1000
    kind: str = ""
    unit: str = ""
    values: str = ""
    help: str | None = None
    is_empty_zero: bool = False
    default: str = ""
    is_required: bool = False


def set_form(
    schema: type[ma.Schema],
    sections: Mapping[str, Mapping[str, FormField]],
    hidden: Collection[str] = (),
) -> None:
    """Set how a form shows the fields of a schema. It shows all others at its end.

    Args:
        sections: the fields of each section by its title, in the order of the form.
        hidden: the fields that the form does not show.
    """
    shown = [(title, *each) for title, fields in sections.items() for each in fields.items()]
    forms = dict.fromkeys(hidden, FormField(kind="hidden"))
    for place, (title, name, field) in enumerate(shown):
        forms[name] = replace(field, section=title, order=place)
    for name, form in forms.items():
        declared = schema._declared_fields[name]
        declared.metadata = {**declared.metadata, FORM: form}
