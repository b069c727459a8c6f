"""Input fields of webhooks (events 2)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from app.conversions.numbers import INT64_MAX, integer
from app.conversions.webhooks import MAX_TOPICS, MAX_URL_LENGTH, secret_key
from app.schemas.fields import input as inputs
from app.schemas.fields.input import Input
from app.schemas.fields.json_schema import COMPONENT, TEXT_IN, Schema

STATUSES = "active", "paused", "disabled"

TOPICS: Schema = {"type": "array", "items": {"type": "string"}, "examples": [["coupon.*"]]}


class TopicArray(Input):
    """Event types, ``coupon.*`` or ``*``. The service checks that they are known."""

    openapi = {**TOPICS, "minItems": 1, "maxItems": MAX_TOPICS}

    def convert(self, value: Any) -> list[str]:
        """Return the topics without duplicates, in their order, or raise ValueError."""
        if not isinstance(value, list) or not all(isinstance(topic, str) for topic in value):
            raise ValueError("must be an array of strings.")
        if len(value) > MAX_TOPICS:
            raise ValueError(f"has more than {MAX_TOPICS} entries.")
        return list(dict.fromkeys(topic.strip() for topic in value))


class DeliveryUrl(inputs.Text):
    """URL of a receiver. The service checks it."""

    # Without the format "uri", because generators drop the limit of a URL.
    openapi = {
        **TEXT_IN,
        "maxLength": MAX_URL_LENGTH,
        "examples": ["https://receiver.example/hooks"],
    }

    def convert(self, value: Any) -> str:
        """Return the URL without white space around it, or raise ValueError."""
        if not isinstance(value, str):
            raise ValueError("must be a string.")
        return value.strip()


# Base64 of 24 to 62, and of 63 or 64 bytes. A group of four characters stands for three bytes.
_BASE64 = "[A-Za-z0-9+/]"
_UP_TO_62_BYTES = f"({_BASE64}{{4}}){{8,20}}({_BASE64}{{2}}==|{_BASE64}{{3}}=)?"
_UP_TO_64_BYTES = f"({_BASE64}{{4}}){{21}}({_BASE64}{{2}}==)?"


class WebhookSecret(Input):
    """Secret in the form of Standard Webhooks."""

    # Without the format "password", because generators drop the pattern of a password.
    openapi = {
        "type": "string",
        "pattern": f"^whsec_({_UP_TO_62_BYTES}|{_UP_TO_64_BYTES})$",
        "examples": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYqr"],
    }

    def convert(self, value: Any) -> str:
        if not isinstance(value, str) or secret_key(value) is None:
            raise ValueError("must be 'whsec_' and the base64 form of 24 to 64 bytes.")
        return value


class WebhookStatusInput(inputs.Choice):
    """Status of a webhook."""

    openapi = {
        COMPONENT: "WebhookStatus",
        "type": "string",
        "enum": list(STATUSES),
        "description": "Status of a webhook.",
    }


class EventId(Input):
    """ID of an event, 0 for the beginning. Required."""

    rejects_absence = True
    openapi = {"type": "integer", "format": "int64", "minimum": 0, "examples": [105]}

    def convert(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
            raise ValueError("must be an integer.")
        if isinstance(value, Decimal) and value != value.to_integral_value():
            raise ValueError("must be an integer.")
        if isinstance(value, str) and not value.strip().isdecimal():
            raise ValueError("must be an integer of at least 0.")
        number = integer(value)
        if not 0 <= number <= INT64_MAX:
            raise ValueError("must be an integer of at least 0.")
        return number
