"""The response with the OpenAPI document: compact, compressed once, and with an entity tag."""

import gzip
from dataclasses import dataclass
from hashlib import blake2b
from http import HTTPStatus
from typing import Any, Self

import orjson
from flask import Response, request

from app.errors import ShopError


@dataclass(frozen=True, slots=True)
class ServedDocument:
    """A document as it is sent.

    Args:
        text: the JSON text, without white space.
        compressed: the same in gzip format.
        tag: the hash of the text.
    """

    text: bytes
    compressed: bytes
    tag: str

    @classmethod
    def of(cls, document: dict[str, Any]) -> Self:
        """Return a document in both forms."""
        text = orjson.dumps(document)
        tag = blake2b(text, digest_size=16).hexdigest()
        return cls(text, gzip.compress(text, mtime=0), tag)

    def response(self) -> Response:
        """Return the response to the current request, 304 if the client has the document.

        Raises:
            ShopError: ``If-Match`` names another version of the document.
        """
        is_compressed = request.accept_encodings["gzip"] > 0
        response = Response(
            self.compressed if is_compressed else self.text, content_type="application/json"
        )
        if is_compressed:
            response.content_encoding = "gzip"
        response.vary.add("Accept-Encoding")
        response.cache_control.no_cache = True  # store it, and ask whether it has changed
        # The bytes differ between the two forms, and so must their tags (RFC 9110, section 8.8.3).
        response.set_etag(f"{self.tag}-gzip" if is_compressed else self.tag)
        response.make_conditional(request)
        if response.status_code == HTTPStatus.PRECONDITION_FAILED:
            raise ShopError("shop_api_precondition_failed")
        return response
