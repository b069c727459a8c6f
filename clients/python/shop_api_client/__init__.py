"""Client of the Shop Administration API.

``shop_api_client.generated`` has a function for each operation (``api``) and a class for each
object (``models``). This module connects them with a service: credentials, retries, pages and
webhooks.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import httpx
from standardwebhooks import Webhook

from shop_api_client.generated import AuthenticatedClient, models
from shop_api_client.generated.types import Response
from shop_api_client.retries import RetryTransport

__all__ = ["RejectedError", "connect", "doc_url", "follow_events", "pages", "verify_webhook"]

T = TypeVar("T")


class RejectedError(Exception):
    """The service has rejected a request.

    Args:
        status: the HTTP status.
        errors: the errors of the response, each with ``code`` and ``message``.
        doc_url: the path of the page that describes the first error, from the header ``Link``.
    """

    def __init__(
        self, status: int, errors: list[models.ApiError], doc_url: str | None = None
    ) -> None:
        self.status = status
        self.errors = errors
        self.doc_url = doc_url
        super().__init__("; ".join(f"{error.code}: {error.message}" for error in errors))


def connect(
    base_url: str | None = None,
    consumer_key: str | None = None,
    consumer_secret: str | None = None,
    *,
    strict: bool = True,
    attempts: int = 4,
    timeout: float = 35.0,
) -> AuthenticatedClient:
    """Return a client for the functions of ``shop_api_client.generated.api``.

    Args:
        base_url: the address of the service. Default: ``SHOP_URL`` of the environment.
        consumer_key: the consumer key. Default: ``SHOP_CONSUMER_KEY``.
        consumer_secret: the consumer secret. Default: ``SHOP_CONSUMER_SECRET``.
        strict: whether the service rejects unknown and inexact input.
        attempts: how often a request is sent at most.
        timeout: seconds for an attempt. The service itself responds within 30 seconds by default.

    Raises:
        KeyError: an argument and its environment variable are missing.
    """
    return AuthenticatedClient(
        base_url=base_url or os.environ["SHOP_URL"],
        token="",
        headers={"Prefer": "handling=strict"} if strict else {},
        timeout=httpx.Timeout(timeout),
        httpx_args={
            "auth": httpx.BasicAuth(
                consumer_key or os.environ["SHOP_CONSUMER_KEY"],
                consumer_secret or os.environ["SHOP_CONSUMER_SECRET"],
            ),
            "transport": RetryTransport(attempts),
        },
    )


def pages(
    operation: Callable[..., Response[models.ErrorResponse | T]],
    *,
    client: AuthenticatedClient,
    **query: Any,
) -> Iterator[T]:
    """Yield the pages of a list.

    Args:
        operation: the function ``sync_detailed`` of a list: ``list_coupons.sync_detailed``.
        client: the client.
        query: the parameters of the list. ``page`` is the first page.

    Raises:
        RejectedError: the service has rejected a request.
    """
    page = query.pop("page", 1)
    while True:
        response = operation(client=client, page=page, **query)
        yield _body_of(response)
        if page >= int(response.headers["X-TotalPages"]):
            return
        page += 1


def follow_events(
    operation: Callable[..., Response[models.ErrorResponse | models.EventList]],
    *,
    client: AuthenticatedClient,
    after: int,
    **query: Any,
) -> Iterator[Any]:
    """Yield the events of the feed up to the present. Store the ID of each event that you process.

    Args:
        operation: ``list_events.sync_detailed``.
        client: the client.
        after: the ID of the last event that you have processed.
        query: further parameters of the feed.

    Raises:
        RejectedError: the service has rejected a request, for example because events after this ID
            have been removed (``shop_api_events_expired``).
    """
    query = {"limit": 1000, **query}
    while events := _body_of(operation(client=client, after=after, **query)).events:
        yield from events
        after = events[-1].id


def _body_of(response: Response[models.ErrorResponse | T]) -> T:
    if isinstance(response.parsed, models.ErrorResponse):
        raise RejectedError(
            int(response.status_code), response.parsed.errors, doc_url(response.headers)
        )
    if response.parsed is None:
        raise RejectedError(int(response.status_code), [])
    return response.parsed


def doc_url(headers: Mapping[str, str]) -> str | None:
    """Return the path of the page that describes the error of a response, or None.

    Args:
        headers: the headers of the response, as ``sync_detailed`` returns them.
    """
    found = re.search(r'<([^>]*)>; rel="help"', headers.get("Link", ""))
    return found[1] if found else None


def verify_webhook(body: bytes | str, headers: Mapping[str, str], secret: str) -> object:
    """Verify the signature of a delivery, and return its body.

    Args:
        body: the body of the request as it was received.
        headers: the headers of the request.
        secret: the secret of the webhook (``whsec_…``).

    Returns:
        A payload of ``models``, such as ``OrderCreatedPayload``; for a type that this version does
        not know, a dict.

    Raises:
        standardwebhooks.WebhookVerificationError: the signature is wrong, or the delivery is older
            than five minutes.
    """
    text = body.decode() if isinstance(body, bytes) else body
    Webhook(secret).verify(text, {name.lower(): value for name, value in headers.items()})
    delivery: dict[str, Any] = json.loads(text)
    words = "".join(part.title() for part in delivery["type"].replace(".", "_").split("_"))
    kind = getattr(models, f"{words}Payload", None)
    return kind.from_dict(delivery) if kind else delivery
