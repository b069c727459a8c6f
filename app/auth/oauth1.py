"""OAuth 1.0a, one-legged: is a request signed with a secret (RFC 5849, decisions 12)?

The programs that sign requests for the legacy API disagree with RFC 5849 and with each other:
about the order of parameters, about what is encoded how often, and about the key. Whoever knows the
secret may take any of these ways, so each of them is tried, the usual one first. How many there are
does not depend on the secret, and there are at most MAX_FORMS of them.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from urllib.parse import parse_qsl, quote, unquote

ALGORITHMS = {"HMAC-SHA1": "sha1", "HMAC-SHA256": "sha256"}

MAX_FORMS = 64
MAX_PARAMETERS = 100

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Signature:
    """What a request says of its signature.

    Args:
        consumer_key: whose secret signed it.
        timestamp: when, in Unix seconds, as it was sent.
        nonce: sent once only by that key at that time.
        method: the name of the algorithm.
        value: the signature, in base64.
    """

    consumer_key: str
    timestamp: str
    nonce: str
    method: str
    value: str


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """What was signed, as it came over the wire.

    Args:
        methods: the HTTP method; a second one where the request overrides its method.
        origin: ``http://host:port``, as the client wrote it.
        path: as it was sent, percent-encoded.
        query: as it was sent.
        header: the parameters of an ``Authorization: OAuth`` header, decoded.
    """

    methods: Sequence[str]
    origin: str
    path: str
    query: str
    header: Pairs = ()

    def signature(self) -> Signature | str | None:
        """Return the signature; the name of the parameter that is missing; None without any.

        Raises:
            ValueError: there are more than MAX_PARAMETERS parameters.
        """
        given = dict([*self.header, *_parsed(self.query)])
        if not given.keys() & {"oauth_signature", "oauth_consumer_key"}:
            return None
        names = "consumer_key", "timestamp", "nonce", "signature_method", "signature"
        for name in names:
            if not given.get(f"oauth_{name}"):
                return f"oauth_{name}"
        return Signature(*(given[f"oauth_{name}"] for name in names))

    def is_signed_with(self, secret: str, signature: Signature) -> bool:
        """Tell whether a secret made a signature of this request."""
        algorithm = ALGORITHMS.get(signature.method)
        if algorithm is None:
            return False
        given = signature.value.encode()
        # The second key is that of RFC 5849: consumer secret, ampersand, and no token secret.
        keys = f"{secret}&".encode(), secret.encode()
        for text, key in product(islice(self._forms(), MAX_FORMS), keys):
            made = b64encode(hmac.digest(key, text.encode(), algorithm))
            if hmac.compare_digest(made, given):
                return True
        return False

    def _forms(self) -> Iterator[str]:
        """Return each text that may have been signed, once."""
        seen = set()
        urls = self._urls()
        for parameters in self._parameters():  # one after the other: the first is nearly always it
            for method, url in product(self.methods, urls):
                text = f"{method}&{url}&{parameters}"
                if text not in seen:
                    seen.add(text)
                    yield text

    def _urls(self) -> list[str]:
        """Return the address as it may have been signed: with and without a slash at its end."""
        paths = [self.path, unquote(self.path)]
        paths += [path[:-1] if path.endswith("/") else f"{path}/" for path in paths]
        origins = [self.origin, self.origin.lower(), self.origin.removesuffix(":80")]
        urls = (quote(origin + path, safe="~") for path, origin in product(paths, origins))
        return list(dict.fromkeys(urls))

    def _parameters(self) -> Iterator[str]:
        """Return the parameters as they may have been signed."""
        for pairs in self._pairs():
            for safe in "~", "~/":
                encoded = [(quote(name, safe), quote(value, safe)) for name, value in pairs]
                by_name = sorted(range(len(pairs)), key=lambda at: _root(pairs[at][0]))
                for ordered in (
                    sorted(encoded),
                    [encoded[at] for at in by_name],
                    [encoded[at] for at in sorted(range(len(pairs)), key=pairs.__getitem__)],
                ):
                    text = "&".join(f"{name}={value}" for name, value in ordered)
                    yield quote(text, safe)

    def _pairs(self) -> Iterator[Pairs]:
        """Return the parameters as the client may have known them, each once.

        Some send a parameter twice, once as the caller gave it and once as they signed it, and some
        sign none that is empty.
        """
        queries = [_parsed(self.query)]
        if "+" in self.query:  # a plus is a blank, or itself
            queries.append(_parsed(self.query.replace("+", "%2B")))
        for query in queries:
            pairs = [
                pair
                for pair in dict.fromkeys([*self.header, *query])
                if pair[0] not in {"oauth_signature", "realm"}
            ]
            # A value that looks encoded is decoded first, by some.
            decoded = [(unquote(name), unquote(value)) for name, value in pairs]
            forms = [pairs, decoded, [(name, value) for name, value in decoded if value]]
            yield from (form for at, form in enumerate(forms) if form not in forms[:at])


def _parsed(query: str) -> list[tuple[str, str]]:
    # Octets that are no UTF-8 are replaced, as the app itself reads them.
    return parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_PARAMETERS)


def _root(name: str) -> str:
    """Return the name of the array that a parameter belongs to: ``filter`` of ``filter[q]``."""
    return name.partition("[")[0]
