"""The exception for all error responses of the API (spec 7, decisions 1).

``app.errors.codes`` contains the codes. ``app.api.error_handlers`` creates the responses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.errors.codes import ERRORS

_SENTENCES = {"reason", "remedy"}
"""The details that are sentences and not values."""


class ShopError(Exception):
    """Error response with a code of ``ERRORS``. The dialect that responds makes the message.

    Code decides by the code, the parameter and the details, never by the message.

    Args:
        code: the error code. An unknown code raises KeyError.
        param: name of the invalid input as the client sent it (``coupon.amount``).
        headers: additional HTTP headers of the response.
        reasons: code and message of each reason, for errors with several reasons (redemptions 6).
        more: a sentence that follows the message.
        details: values for the placeholders of the message.
    """

    def __init__(
        self,
        code: str,
        *,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        reasons: Sequence[Mapping[str, str]] = (),
        more: str = "",
        **details: Any,
    ) -> None:
        self.status, self._template = ERRORS[code]
        self.code, self.param, self.details = code, param, details
        self.headers = dict(headers or {})
        self.reasons = list(reasons)
        self._more = more
        super().__init__(code)

    def with_status(self, status: int) -> ShopError:
        """Set another HTTP status and return this error (spec 4.2, update rule 2)."""
        self.status = status
        return self

    def with_message(self, template: str, **details: object) -> ShopError:
        """Set a more precise message, with placeholders for details, and return this error."""
        self._template = template
        self.details |= details
        return self

    @property
    def parts(self) -> Sequence[ShopError]:
        """The errors of each input: this one, or one for each of several invalid inputs."""
        return (self,)

    def __str__(self) -> str:
        """Return the message with the native names of parameters."""
        return self.text()

    def text(self, name: Callable[[str], str] = str, translate: Callable[[str], str] = str) -> str:
        """Return the message.

        Args:
            name: returns the name of a parameter in the dialect that responds.
            translate: returns a sentence in the language of a page.
        """
        text = self._message(self._template, name, translate)
        return f"{text} {translate(self._more)}" if self._more else text

    @property
    def reason(self) -> str:
        """The message without the name of the parameter."""
        return self.translated_reason(str)

    def translated_reason(self, translate: Callable[[str], str]) -> str:
        """Return the message without the name of the parameter, in the language of a page."""
        return self._message(self._template.removeprefix("{param}: "), str, translate)

    def _message(
        self, template: str, name: Callable[[str], str], translate: Callable[[str], str]
    ) -> str:
        sentences = {key: translate(self.details[key]) for key in _SENTENCES & self.details.keys()}
        if self.reasons and "reason" in sentences:  # which joins them
            sentences["reason"] = " ".join(translate(each["message"]) for each in self.reasons)
        param = self.param and name(self.param)
        return translate(template).format(param=param, **{**self.details, **sentences})

    def entries(self, name: Callable[[str], str] = str) -> list[dict[str, Any]]:
        """Return the entries of the ``errors`` list in the response body. ``name`` as above."""
        return [part._entry(name) for part in self.parts]

    def _entry(self, name: Callable[[str], str]) -> dict[str, object]:
        entry: dict[str, object] = {"code": self.code, "message": self.text(name)}
        if self.param:
            entry["param"] = name(self.param)
        return entry | {"reasons": self.reasons} if self.reasons else entry


class InvalidInputs(ShopError):
    """Error response for one or more invalid inputs, with one entry for each input (decisions 1).

    Args:
        reasons: the reason for each input by its name. At least one.
    """

    error_code = ""
    """The error code, whose message has the placeholders ``param`` and ``reason``."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        first, reason = next(iter(reasons.items()))
        super().__init__(self.error_code, param=first, reason=reason)
        self._reasons = reasons

    @property
    def parts(self) -> Sequence[ShopError]:
        """One error for each invalid input."""
        return [
            ShopError(self.code, param=param, reason=reason)
            for param, reason in self._reasons.items()
        ]

    def text(self, name: Callable[[str], str] = str, translate: Callable[[str], str] = str) -> str:
        """Return all reasons, because a bulk result has a single message (spec 4.3 rule 4)."""
        return " ".join(part.text(name, translate) for part in self.parts)


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
