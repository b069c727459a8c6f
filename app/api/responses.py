"""JSON responses with orjson, and streaming of long lists.

A view with ``@blp.response`` can return a finished response. flask-smorest then only documents the
view and does not serialize anything.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from flask import Response, current_app, request, stream_with_context
from flask.json.provider import JSONProvider

from app.api.dialect import current_dialect
from app.auth.credentials import QUERY_CREDENTIALS
from app.db.errors import is_unavailable
from app.db.read_pool import RowStream
from app.errors import Sentence
from app.schemas.fields.query import plain
from app.services.common.pagination import Page

MAX_DRAIN_BYTES = 64 * 1024 * 1024
MAX_DRAIN_SECONDS = 5
"""Limits in bytes and seconds for reading the rest of a rejected body."""

_IN_PATH = "/!$&'()*+,;=:@"
"""Characters that a URL path can contain unencoded, besides letters and digits (RFC 3986, 3.3)."""

SENTENCES = "shop_api.sentences"
"""The WSGI environ key for the function that returns the text of a sentence. The default is str."""

Make = Callable[[Sequence[Any]], Sequence[Any] | Mapping[str, Any]]


class JsonProvider(JSONProvider):
    """Extension point: ``Flask.json_provider_class``."""

    def dumps(self, obj: object, *, indent: int | None = None, **_: object) -> str:
        """Return JSON text."""
        return json_bytes(obj, orjson.OPT_INDENT_2 if indent else 0).decode()

    def loads(self, s: str | bytes, **_: object) -> object:
        """Parse JSON text."""
        return orjson.loads(s)

    def response(self, *args: object, **kwargs: object) -> Response:
        """Return a response with the arguments as the JSON body."""
        return json_response(self._prepare_response_obj(args, kwargs))


def json_bytes(value: object, option: int = orjson.OPT_APPEND_NEWLINE) -> bytes:
    """Return the body of a JSON response, or text with other options of orjson."""
    try:
        return orjson.dumps(value, _plain, option)
    except TypeError:
        # orjson does not support IDs beyond 64 bits (repeated in bulk results) and lone surrogates
        # (possible in orders of plugins).
        text = json.dumps(value, default=_plain, separators=(",", ":"))
        return f"{text}\n".encode() if option & orjson.OPT_APPEND_NEWLINE else text.encode()


def _plain(value: object) -> object:
    """Return the value of a JSON fragment, or the text of a sentence as the request shows it."""
    if isinstance(value, orjson.Fragment):
        return orjson.loads(orjson.dumps(value))
    if isinstance(value, Sentence):
        return request.environ.get(SENTENCES, str)(value)
    raise TypeError(f"{type(value).__name__} is not JSON serializable")


def delete_response(record: str, *, permanently: bool = True) -> Response:
    """Return the confirmation of a deletion.

    Args:
        record: the name of the record, such as ``coupon``.
        permanently: whether the record was deleted. Otherwise it was moved to the trash, which has
            another status in some dialects.
    """
    if permanently:
        return json_response({"message": f"Permanently deleted {record}"})
    return json_response({"message": f"Deleted {record}"}, current_dialect().status("trashed"))


def json_response(
    body: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a finished JSON response, which flask-smorest does not serialize again."""
    return Response(json_bytes(body), status, headers, content_type="application/json")


def drain_request_body(response: Response) -> None:
    """Read the rest of the body of a rejected request.

    Otherwise, a client that is still sending would see a connection reset instead of the response.
    """
    environ = request.environ
    if not (environ.get("CONTENT_LENGTH") or environ.get("HTTP_TRANSFER_ENCODING")):
        return  # no body
    if not environ.get("wsgi.input_terminated"):  # reading would block
        return
    connection = environ.get("gunicorn.socket")
    before = connection.gettimeout() if connection else None
    until, left = time.monotonic() + MAX_DRAIN_SECONDS, MAX_DRAIN_BYTES
    try:
        if connection:  # slow clients must not block a thread
            connection.settimeout(MAX_DRAIN_SECONDS)
        while left > 0 and time.monotonic() < until:
            piece = environ["wsgi.input"].read(64 * 1024)
            if not piece:
                break
            left -= len(piece)
    except Exception:  # noqa: BLE001  # a closed connection, a timeout or a malformed body
        response.headers["Connection"] = "close"  # the next request cannot be parsed
    finally:
        if connection:
            connection.settimeout(before)


def request_address() -> str:
    """Return the absolute URL of the current request without the query, in ASCII.

    The host is unchanged, including IDN names in ``xn--`` form. Bytes that a URL cannot contain are
    percent-encoded.
    """
    host = request.headers.get("Host") or request.host
    # WSGI decodes headers as Latin-1.
    host = quote(host.encode("latin-1", "replace"), safe="[]:%!$&'()*+,;=")
    return f"{request.scheme}://{host}{quote(request.root_path + request.path, safe=_IN_PATH)}"


def page_response(wrapper: str, make: Make, page: Page) -> Response:
    """Return a page of a list under its wrapper key, with pagination headers."""
    headers = page_headers(page)
    if not isinstance(page.rows, RowStream):
        return json_response({wrapper: make(page.rows)}, headers=headers)
    response = streamed_list(make, page.rows, f'{{"{wrapper}":'.encode(), b"}")
    response.headers.update(headers)
    return response


def streamed_list(make: Make, rows: RowStream, before: bytes = b"", after: bytes = b"") -> Response:
    """Return the response with a list, or an object, of rows that are read while it is sent.

    Args:
        make: converts a batch of rows.
        before: the JSON text before the list, and ``after`` the text behind it.
    """
    pieces = _list_in_pieces(make, rows, before, after)
    return streamed_response(pieces, "application/json", rows)


def streamed_response(pieces: Iterator[bytes], mimetype: str, rows: object = None) -> Response:
    """Return a response that is sent while it is made.

    The first piece is made now, so that an error in it has a response of its own. A later one
    aborts the connection, so that clients do not mistake a part for the whole.

    Args:
        rows: the rows in the pieces. A stream of rows is closed at the end.
    """
    close = rows.close if isinstance(rows, RowStream) else getattr(pieces, "close", lambda: None)
    try:
        first = next(pieces, b"")
    except BaseException:
        close()
        raise
    response = Response(stream_with_context(_with_rest(first, pieces)), mimetype=mimetype)
    # Release the connection also if the client disconnects, and for HEAD requests.
    response.call_on_close(close)
    return response


def _with_rest(first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    try:
        yield from pieces
    except Exception as error:
        log = current_app.logger.warning if is_unavailable(error) else current_app.logger.exception
        log("a list response was aborted")
        raise


def name_as_sent(parameter: str) -> str:
    """Return a name such as ``filter[after]`` in the form that the request uses for filters."""
    sent, own = request.args, plain(parameter)
    uses_plain = own in sent or (sent and not any("filter[" in name for name in sent))
    return own if uses_plain and current_dialect().has_plain_filters else parameter


def page_headers(page: Page) -> dict[str, str]:
    """Return the pagination headers of a page for the current request."""
    query = [pair for pair in request.args.items(multi=True) if pair[0] not in QUERY_CREDENTIALS]
    translate = current_dialect().translate
    headers = page.headers(request_address(), query)
    return {translate(name): value for name, value in headers.items()}


def next_link(parameter: str, value: int) -> dict[str, str]:
    """Return the ``Link`` to the next page of a feed, whose cursor is a parameter (RFC 8288)."""
    parameter = name_as_sent(parameter)
    query = [
        pair
        for pair in request.args.items(multi=True)
        if pair[0] not in QUERY_CREDENTIALS and pair[0] != parameter
    ]
    address = f"{request_address()}?{urlencode([*query, (parameter, value)])}"
    return {"Link": f'<{address}>; rel="next"'}


def _list_in_pieces(make: Make, rows: RowStream, before: bytes, after: bytes) -> Iterator[bytes]:
    """Yield a list, or an object, in batches, and its closing bracket at the end."""
    with rows.reading():
        brackets = orjson.dumps(make([]))
    prefix = before + brackets[:1]
    for batch in rows.batches():
        with rows.reading():
            made = make(batch)
        yield prefix + orjson.dumps(made)[1:-1]
        prefix = b","
    yield (prefix if prefix != b"," else b"") + brackets[1:] + after + b"\n"
