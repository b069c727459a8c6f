"""A form that was sent without a session, held in the page of the sign-in (admin 5)."""

from dataclasses import dataclass

from flask import current_app, request
from itsdangerous import BadSignature, URLSafeTimedSerializer
from werkzeug.exceptions import RequestEntityTooLarge

MAX_AGE_SECONDS = 3600
MAX_LENGTH = 50_000
"""Longest signed text, which the form of the sign-in contains and which it must be able to send."""


@dataclass(frozen=True, slots=True)
class HeldForm:
    """A form that was sent."""

    path: str  # that it was sent to
    values: list[tuple[str, str]]

    @property
    def can_return(self) -> bool:
        """Whether its page can show it again."""
        return any(name == "_shown" for name, _ in self.values)


def _serializer() -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(current_app.config["SECRET_KEY"], salt="admin-held-form")


def hold() -> str:
    """Return the form of the current request as signed text, or "" if it is too large."""
    try:
        values = list(request.form.items(multi=True))
    except RequestEntityTooLarge:
        return ""
    text = str(_serializer().dumps([request.path, values]))
    return text if len(text) <= MAX_LENGTH else ""


def held_form(text: str) -> HeldForm | None:
    """Return the form in signed text, or None if it was changed or is too old."""
    try:
        path, values = _serializer().loads(text, max_age=MAX_AGE_SECONDS)
    except BadSignature:
        return None
    return HeldForm(path, [(name, value) for name, value in values])
