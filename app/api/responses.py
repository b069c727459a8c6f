"""Ready responses: orjson, and long lists written row by row.

A view under ``@blp.response`` may return a ready response; flask-smorest then documents the view
and dumps nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import orjson
from flask import Response, current_app, request, stream_with_context
from flask.json.provider import JSONProvider

from app.api.versions import current_api_version
from app.auth.credentials import QUERY_CREDENTIALS
from app.db.read_pool import RowStream
from app.services.bulk import BulkResult
from app.services.pagination import Page

MAX_READ = 64 * 1024 * 1024
MAX_READ_SECONDS = 5
"""How much of a refused body is read, and for how long, before the connection is closed."""

_IN_PATH = "/!$&'()*+,;=:@"
"""What the path of a URL may contain unencoded, beside letters and digits (RFC 3986, 3.3)."""

Make = Callable[[Sequence[Any]], Sequence[Any]]


class JsonProvider(JSONProvider):
    """Seam: ``Flask.json_provider_class``."""

    def dumps(self, obj: Any, *, indent: int | None = None, **_: Any) -> str:
        """Return JSON text."""
        return _written(obj, orjson.OPT_INDENT_2 if indent else 0).decode()

    def loads(self, s: str | bytes, **_: Any) -> Any:
        """Return what JSON text means."""
        return orjson.loads(s)

    def response(self, *args: Any, **kwargs: Any) -> Response:
        """Return a response with the arguments as its JSON body."""
        return json_response(self._prepare_response_obj(args, kwargs))


def _written(value: Any, option: int = 0) -> bytes:
    try:
        return orjson.dumps(value, option=option)
    except TypeError:
        # An id beyond 64 bits, echoed in a bulk result, or half a character (a lone surrogate) in
        # a plugin's order: orjson writes neither.
        text = json.dumps(value, default=_parsed, separators=(",", ":"))
        return f"{text}\n".encode() if option & orjson.OPT_APPEND_NEWLINE else text.encode()


def _parsed(value: Any) -> Any:
    """Return what a text means that orjson takes as it is."""
    if isinstance(value, orjson.Fragment):
        return orjson.loads(orjson.dumps(value))
    raise TypeError(f"{type(value).__name__} is nothing that JSON knows")


def json_response(
    body: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a ready response: flask-smorest then documents the view and dumps nothing."""
    return Response(
        _written(body, orjson.OPT_APPEND_NEWLINE), status, headers, content_type="application/json"
    )


def drain_request_body(response: Response) -> Response:
    """Read what a refused request has left of its body.

    A client that is still sending when the connection closes sees a reset instead of the answer.
    """
    environ = request.environ
    if not (environ.get("CONTENT_LENGTH") or environ.get("HTTP_TRANSFER_ENCODING")):
        return response  # it has none
    if not environ.get("wsgi.input_terminated"):  # reading on would wait for ever
        return response
    connection = environ.get("gunicorn.socket")
    before = connection.gettimeout() if connection else None
    until, left = time.monotonic() + MAX_READ_SECONDS, MAX_READ
    try:
        if connection:  # who sends slowly must not hold a thread
            connection.settimeout(MAX_READ_SECONDS)
        while left > 0 and time.monotonic() < until:
            piece = environ["wsgi.input"].read(64 * 1024)
            if not piece:
                break
            left -= len(piece)
    except Exception:  # noqa: BLE001  # the client has gone, is too slow, or sends what is no body
        response.headers["Connection"] = "close"  # what follows it cannot be read either
    finally:
        if connection:
            connection.settimeout(before)
    return response


def request_address() -> str:
    """Return the absolute URL of the current request without its query, in ASCII.

    The host is the one that the client wrote (an IDN name in ``xn--`` form stays as it is); bytes
    that a URL cannot contain are percent-encoded.
    """
    host = request.headers.get("Host") or request.host
    # WSGI gives the bytes of a header as Latin-1 characters.
    host = quote(host.encode("latin-1", "replace"), safe="[]:%!$&'()*+,;=")
    return f"{request.scheme}://{host}{quote(request.root_path + request.path, safe=_IN_PATH)}"


def page_response(wrapper: str, make: Make, page: Page) -> Response:
    """Return a page of a list with its headers, under its wrapper key.

    Args:
        make: turns rows into the objects of the list.
    """
    query = [pair for pair in request.args.items(multi=True) if pair[0] not in QUERY_CREDENTIALS]
    api_version = current_api_version()
    headers = {
        api_version.translate(name): value
        for name, value in page.headers(request_address(), query).items()
    }
    if not isinstance(page.rows, RowStream):
        return json_response({wrapper: make(page.rows)}, headers=headers)
    response = Response(
        stream_with_context(_in_pieces(wrapper, make, page.rows)), mimetype="application/json"
    )
    response.headers.update(headers)
    # Also a client that goes away, and a HEAD that reads nothing, give the connection back.
    response.call_on_close(page.rows.close)
    return response


def bulk_response(wrapper: str, results: BulkResult) -> Response:
    """Return the results of a bulk request under its wrapper key."""
    status = current_api_version().status("bulk_created") if results.created else 200
    return json_response({wrapper: results.items}, status)


def _in_pieces(wrapper: str, make: Make, rows: RowStream) -> Iterator[bytes]:
    """Write a list in pieces.

    An error in the middle breaks the connection off: the closing bracket is not written, so that
    half a list does not look like a whole one.
    """
    before = f'{{"{wrapper}":['.encode()
    try:
        for batch in rows.batches():
            yield before + orjson.dumps(make(batch))[1:-1]
            before = b","
    except Exception:
        current_app.logger.exception("a list broke off")
        raise
    yield (before if before != b"," else b"") + b"]}\n"
