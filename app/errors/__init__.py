"""The exception for all error responses of the API (spec 7, decisions 1).

``app.errors.codes`` contains the codes. ``app.api.error_handlers`` creates the responses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from app.errors.codes import ERRORS


class Sentence:
    """A sentence with values, as data. Who responds makes its text: ``str`` in English.

    A sentence without values is a ``str``.

    Args:
        template: the sentence, with the numbers or the names of its values in braces.
        values: the values ``{0}``, ``{1}`` and so on. They can be sentences, too.
        named: the values with names, which every language shows as they are.
    """

    def __init__(self, template: str, /, *values: Any, **named: Any) -> None:
        self.template, self.values, self.named = template, values, named

    def __eq__(self, other: object) -> bool:
        """Return whether another sentence says the same with the same values."""
        return isinstance(other, Sentence) and vars(self) == vars(other)

    def __hash__(self) -> int:
        """Return the hash of the template, because values can have none."""
        return hash(self.template)

    def __str__(self) -> str:
        """Return the sentence in English."""
        return self.template.format(*self.values, **self.named)

    @staticmethod
    def plain(value: object) -> object:
        """Return what JSON stores for a sentence, or for a value of a type that it lacks."""
        return vars(value) if isinstance(value, Sentence) else str(value)

    @classmethod
    def of(cls, stored: Any) -> Any:
        """Return the sentence of what JSON stores. Other values stay as they are."""
        if not isinstance(stored, dict):
            return stored
        named = {name: cls.of(each) for name, each in stored["named"].items()}
        return cls(stored["template"], *map(cls.of, stored["values"]), **named)


def joined(sentences: Iterable[str | Sentence]) -> str | Sentence:
    """Return sentences as one, with a blank between them."""
    first, *others = sentences
    if not others:
        return first
    return Sentence(" ".join(f"{{{number}}}" for number in range(len(others) + 1)), first, *others)


def invalid(template: str, *values: object) -> ValueError:
    """Return the error of a value that cannot be interpreted, with a sentence as its reason."""
    return ValueError(Sentence(template, *values))


def reason_of(error: Exception) -> str | Sentence:
    """Return the reason that an exception states, with its values."""
    stated = error.args[0] if error.args else None
    return stated if isinstance(stated, Sentence) else str(error)


class ShopError(Exception):
    """Error response with a code of ``ERRORS``. The dialect that responds makes the message.

    Code decides by the code, the parameter and the details, never by the message.

    Args:
        code: the error code. An unknown code raises KeyError.
        param: name of the invalid input as the client sent it (``coupon.amount``).
        headers: additional HTTP headers of the response.
        reasons: code and message of each reason, for errors with several reasons (redemptions 6).
        message: a more precise message than that of the code, with the same placeholders.
        more: a sentence that follows the message.
        details: values for the placeholders of the message.
    """

    def __init__(
        self,
        code: str,
        *,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        reasons: Sequence[Mapping[str, object]] = (),
        message: str = "",
        more: str | Sentence = "",
        **details: Any,
    ) -> None:
        self.status, template = ERRORS[code]
        self.code, self.param, self.details = code, param, details
        self.headers = dict(headers or {})
        self.reasons = list(reasons)
        self._template, self._more = message or template, more
        super().__init__(code)

    def with_status(self, status: int) -> ShopError:
        """Set another HTTP status and return this error (spec 4.2, update rule 2)."""
        self.status = status
        return self

    @property
    def parts(self) -> Sequence[ShopError]:
        """The errors of each input: this one, or one for each of several invalid inputs."""
        return (self,)

    def __str__(self) -> str:
        """Return the message with the native names of parameters."""
        return str(self.sentence())

    def sentence(self, name: Callable[[str], str] = str) -> str | Sentence:
        """Return the message. ``name`` returns the name of a parameter in another dialect."""
        text = Sentence(self._template, param=self.param and name(self.param), **self.details)
        return joined([text, self._more]) if self._more else text

    @property
    def reason(self) -> Sentence:
        """The message without the name of the parameter."""
        return Sentence(self._template.removeprefix("{param}: "), param=self.param, **self.details)

    def entries(self, name: Callable[[str], str] = str) -> list[dict[str, Any]]:
        """Return the entries of the ``errors`` list in the response body. ``name`` as above."""
        return [part._entry(name) for part in self.parts]

    def _entry(self, name: Callable[[str], str]) -> dict[str, object]:
        entry: dict[str, object] = {"code": self.code, "message": str(self.sentence(name))}
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

    def __init__(self, reasons: Mapping[str, str | Sentence]) -> None:
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

    def sentence(self, name: Callable[[str], str] = str) -> str | Sentence:
        """Return all reasons, because a bulk result has a single message (spec 4.3 rule 4)."""
        return joined(part.sentence(name) for part in self.parts)


class InvalidParams(InvalidInputs):
    """One or more inputs have a type or value that cannot be interpreted."""

    error_code = "shop_api_invalid_param"


class InvalidOrderItems(InvalidInputs):
    """One or more items of an order violate a rule (orders 2)."""

    error_code = "shop_api_invalid_order_item"


RETRY_AFTER = {"Retry-After": "5"}


def unavailable(reason: str | Sentence) -> ShopError:
    """Return the error of a service that is temporarily unavailable."""
    return ShopError("shop_api_unavailable", reason=reason, headers=RETRY_AFTER)
