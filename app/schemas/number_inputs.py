"""Input fields of numbers, amounts, dates and times."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from app import dates, numbers
from app.schemas import json_schema
from app.schemas.inputs import Input

ZERO = Decimal("0.00")


class DecimalInput(Input):
    """A decimal, rounded to the cent. Empty text means no amount."""

    openapi = json_schema.AMOUNT_IN
    max_text_length = json_schema.TEXT_MAX_LENGTH

    def convert(self, value: Any) -> Decimal | None:
        """Return the amount."""
        return numbers.money(value)


class AmountInput(DecimalInput):
    """A decimal, rounded to the cent. Empty text means 0.00 (decisions 3)."""

    def convert(self, value: Any) -> Decimal:
        """Return the amount."""
        return super().convert(value) or ZERO


class Count(Input):
    """A non-negative integer: the absolute value of the integer at the start of a text."""

    openapi = json_schema.INTEGER_IN
    max_text_length = json_schema.TEXT_MAX_LENGTH

    def convert(self, value: Any) -> int:
        """Return the count."""
        return numbers.count(value)


class Integer(Input):
    """An integer: the integer at the start of a text, or 0 without one (decisions 3)."""

    openapi = json_schema.INTEGER_IN
    max_text_length = json_schema.TEXT_MAX_LENGTH

    def convert(self, value: Any) -> int:
        """Return the integer."""
        return numbers.integer(value)


class AccountId(Input):
    """The ID of a customer account, or 0 for a guest. Text must be a number."""

    openapi = json_schema.INTEGER_IN

    def convert(self, value: Any) -> int:
        """Return the ID, which may be negative, or raise ValueError."""
        if isinstance(value, bool) or (
            isinstance(value, str) and not re.fullmatch(r"\s*[+-]?[0-9]+\s*", value)
        ):
            raise ValueError("must be an integer.")
        return numbers.integer(value)


class Quantity(Input):
    """A number of units, from 1 to 1,000,000,000."""

    openapi = json_schema.QUANTITY_IN

    def convert(self, value: Any) -> int:
        """Return the quantity, or raise ValueError."""
        number = numbers.integer(value)
        if not 1 <= number <= 10**9:
            raise ValueError("must be between 1 and 1,000,000,000.")
        return number


class Price(Input):
    """A price per unit, at least 0, with up to 6 decimals. Required."""

    rejects_absence = True
    openapi = json_schema.PRICE_IN
    max_text_length = json_schema.TEXT_MAX_LENGTH

    def __init__(self, meaning: str) -> None:
        super().__init__(meaning, required=True)

    def convert(self, value: Any) -> Decimal:
        """Return the price, or raise ValueError."""
        amount = numbers.price(value)
        if amount is None:
            raise ValueError("is required.")
        if amount < 0:
            raise ValueError("must not be negative.")
        return amount


class ExpiresIn(Input):
    """Seconds until a reservation expires, from 60 to 604,800."""

    openapi = json_schema.EXPIRES_IN

    def convert(self, value: Any) -> int:
        """Return the seconds, or raise ValueError."""
        seconds = numbers.integer(value)
        if not 60 <= seconds <= 604_800:  # redemptions 4
            raise ValueError("must be between 60 and 604,800 seconds.")
        return seconds


class TimestampInput(Input):
    """A date-time. A date means midnight UTC. Empty text means no time."""

    openapi = json_schema.TIMESTAMP_IN
    max_text_length = json_schema.TEXT_MAX_LENGTH

    def convert(self, value: Any) -> datetime | None:
        """Return the timestamp in UTC, in whole seconds."""
        number = numbers.int_if_integral(value)
        if isinstance(number, int) and not isinstance(number, bool):
            value = f"@{number}"  # Unix seconds, even if the digits could be a year
        if isinstance(value, str) and not value.strip():
            return None
        return dates.parse_timestamp(value).replace(microsecond=0)


class DateText(Input):
    """A date in any of several formats (decisions 4). Empty text means no date."""

    openapi = json_schema.DATE_IN
    max_text_length = json_schema.TEXT_MAX_LENGTH

    def convert(self, value: Any) -> date | None:
        """Return the date, in UTC."""
        return dates.parse_date(value, datetime.now(UTC).date())
