"""Saving an edited record: only what was changed, and the conflict of two editors (admin 5)."""

from __future__ import annotations

from typing import Any

from app.admin.calls import call, form_headers, record_of
from app.admin.forms import Difference, Form, differences
from app.errors import ShopError

ATTEMPTS = 3
"""How often a save is tried with a new entity tag, if no field of the form has changed."""


def merged(form: Form, conflict: list[Difference]) -> dict[str, str]:
    """Return what the page of a conflict shows: with the values of the other editor."""
    return form.shown | {each.spec.name: each.theirs for each in conflict}


def save(form: Form, read: str, update: str, **path: Any) -> list[Difference] | None:
    """Send the changed fields of a form.

    A record can have a new entity tag although no field of the form has changed: that of a coupon
    changes with each use. The changes are then sent again with the new tag.

    Args:
        form: the submitted form. Errors of the API are noted in it.
        read: the operation that reads the record.
        update: the operation that updates it.
        path: the variables in the path of both.

    Returns:
        The fields that another editor has changed in between, or None.

    Raises:
        ShopError: an error that is not about the form.
    """
    changes = form.read()
    if form.errors or not changes:
        return None
    etag = form.etag
    for _ in range(ATTEMPTS):
        try:
            call(update, body={form.key: changes}, headers=form_headers(etag), **path)
        except ShopError as error:
            if error.code != "shop_api_precondition_failed":
                form.note(error)
                return None
            record, etag = record_of(read, form.key, **path)
            found = differences(form, Form.of_record(form.schema, form.key, record))
            if found:
                form.etag = etag
                return found
        else:
            return None
    raise ShopError("shop_api_precondition_failed")
