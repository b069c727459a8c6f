"""The exception for all error responses of the API (spec 7, decisions 1).

``app.errors.codes`` contains the codes. ``app.api.error_handlers`` creates the responses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.errors.codes import ERRORS


class ShopError(Exception):
    """Error response with a code of ``ERRORS``.

    Args:
        code: the error code. An unknown code raises KeyError.
        param: name of the invalid input as the client sent it (``coupon.amount``).
        headers: additional HTTP headers of the response.
        reasons: code and message of each reason, for errors with several reasons (redemptions 6).
        details: values for the placeholders of the message.
    """

    def __init__(
        self,
        code: str,
        *,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        reasons: Sequence[Mapping[str, str]] = (),
        **details: Any,
    ) -> None:
        self.status, message = ERRORS[code]
        self.code = code
        self.message = message.format(param=param, **details)
        self.param = param
        self.headers = dict(headers or {})
        self.reasons = list(reasons)
        super().__init__(f"{code}: {self.message}")

    def with_status(self, status: int) -> ShopError:
        """Set another HTTP status and return this error (spec 4.2, update rule 2)."""
        self.status = status
        return self

    def with_message(self, message: str) -> ShopError:
        """Set a more precise message and return this error."""
        self.message = message
        return self

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Return the entries of the ``errors`` list in the response body."""
        entry: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.param:
            entry["param"] = self.param
        return [entry | {"reasons": self.reasons} if self.reasons else entry]


class InvalidInputs(ShopError):
    """Error response for one or more invalid inputs, with one entry for each input.

    Args:
        reasons: the reason for each input by its name. At least one.
    """

    error_code = ""
    """The error code, whose message has the placeholders ``param`` and ``reason``."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        each = [
            ShopError(self.error_code, param=param, reason=reason)
            for param, reason in reasons.items()
        ]
        first, reason = next(iter(reasons.items()))
        super().__init__(self.error_code, param=first, reason=reason)
        # A bulk result has a single message (spec 4.3 rule 4), which contains all reasons.
        self.message = " ".join(error.message for error in each)
        self._entries = [entry for error in each for entry in error.entries]

    @property
    def entries(self) -> list[dict[str, Any]]:
        """Return one entry for each invalid input (decisions 1)."""
        return self._entries


class InvalidParams(InvalidInputs):
    """One or more inputs have a type or value that cannot be interpreted."""

    error_code = "shop_api_invalid_param"


class InvalidOrderItems(InvalidInputs):
    """One or more items of an order violate a rule (orders 2)."""

    error_code = "shop_api_invalid_order_item"


RETRY_AFTER = {"Retry-After": "5"}

IS_DRAINING = "The machine is being drained."


def unavailable(reason: str) -> ShopError:
    """Return the error of a service that is temporarily unavailable."""
    return ShopError("shop_api_unavailable", reason=reason, headers=RETRY_AFTER)
