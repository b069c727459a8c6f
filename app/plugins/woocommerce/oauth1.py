"""Verification of one-legged OAuth 1.0a signatures (RFC 5849, decisions 12).

Clients deviate from RFC 5849 in different ways: in the order of parameters, in the
percent-encoding and in the signing key. The signature is therefore compared with every known
form of the request, the most common form first. The number of forms does not depend on the secret
and is at most MAX_FORMS.
"""

import hmac
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from urllib.parse import parse_qsl, quote, unquote

ALGORITHMS = {"HMAC-SHA1": "sha1", "HMAC-SHA256": "sha256"}

MAX_FORMS = 64
MAX_PARAMETERS = 100
"""Maximum number of parameters of a request, in the query and in the header together."""
MAX_FORM_FIELDS = 200
"""Maximum number of fields of a form in the body that is signed."""

PASTED = tuple(
    form
    for start, end in [("", "\n"), ("", "\r\n"), ("", " "), ("", "\t"), (" ", ""), ("\t", "")]
    for form in (f"{start}{{}}{end}&", f"{quote(start)}{{}}{quote(end)}&")
)
"""Signing keys of a secret that was pasted with white space, as it is and percent-encoded."""

PASTED_FORMS = 4
"""Number of forms that are compared with those keys."""

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Signature:
    """The OAuth parameters of a request.

    Args:
        timestamp: the time of the signature in Unix seconds, as sent.
        nonce: a value that the key uses only once per timestamp.
        method: the name of the algorithm.
        value: the signature in base64.
    """

    consumer_key: str
    timestamp: str
    nonce: str
    method: str
    value: str

    def forms(self) -> list[bytes]:
        """Return the possible signatures: unchanged, percent-decoded, and with blanks as pluses.

        The Ruby library percent-encodes the signature twice (decisions 14). Before version 1.2 it
        did not encode the signature, so that a plus arrives as a blank.
        """
        forms = self.value, unquote(self.value), self.value.replace(" ", "+")
        return [form.encode() for form in dict.fromkeys(forms)]


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """The signed parts of a request, as received.

    Args:
        methods: the HTTP method, and a second method if a signed parameter overrides it.
        origin: ``http://host:port``, as sent by the client.
        path: the path as sent, percent-encoded.
        query: the query string as sent.
        form: the fields of a form in the body, as sent, which are parameters, too.
        is_form_optional: whether a signature in the query or the header can leave out the form.
        header: the decoded parameters of an ``Authorization: OAuth`` header.
    """

    methods: Sequence[str]
    origin: str
    path: str
    query: str
    header: Pairs = ()
    form: str = ""
    is_form_optional: bool = False

    def signature(self) -> Signature | str | None:
        """Return the signature, the name of a missing parameter, or None without a signature."""
        given = dict([*self.header, *_parsed(self._with_form())])
        if not given.keys() & {"oauth_signature", "oauth_consumer_key"}:
            return None
        names = "consumer_key", "timestamp", "nonce", "signature_method", "signature"
        for name in names:
            if not given.get(f"oauth_{name}"):
                return f"oauth_{name}"
        return Signature(*(given[f"oauth_{name}"] for name in names))

    def is_signed_with(self, secret: str, signature: Signature, max_forms: int = MAX_FORMS) -> bool:
        """Return whether a secret made the signature, in one of the first ``max_forms`` forms."""
        algorithm = ALGORITHMS.get(signature.method)
        if algorithm is None:
            return False
        given = signature.forms()
        # RFC 5849 uses the consumer secret, an ampersand and an empty token secret. Some clients
        # omit the ampersand.
        keys = f"{secret}&", secret
        pasted = [form.format(secret) for form in PASTED]
        for at, text in enumerate(islice(self._forms(), max_forms)):
            for key in (*keys, *(pasted if at < PASTED_FORMS else ())):
                made = b64encode(hmac.digest(key.encode(), text.encode(), algorithm))
                if any(hmac.compare_digest(made, each) for each in given):
                    return True
        return False

    def _forms(self) -> Iterator[str]:
        """Yield each possible signature base string once."""
        seen = set()
        urls = self._urls()
        for parameters in self._parameters():  # lazily, because the first nearly always matches
            for method, url in product(self.methods, urls):
                text = f"{method}&{url}&{parameters}"
                if text not in seen:
                    seen.add(text)
                    yield text

    def _urls(self) -> list[str]:
        """Return the possible signed URLs, with and without a trailing slash."""
        paths = [self.path, unquote(self.path)]
        paths += [path[:-1] if path.endswith("/") else f"{path}/" for path in paths]
        origins = [self.origin, self.origin.lower(), self.origin.removesuffix(":80")]
        urls = (quote(origin + path, safe="~") for path, origin in product(paths, origins))
        return list(dict.fromkeys(urls))

    def _parameters(self) -> Iterator[str]:
        """Yield the possible normalized parameter strings."""
        for pairs in self._pairs():
            for safe in "~", "~/":
                encoded = [(quote(name, safe), quote(value, safe)) for name, value in pairs]
                by_name = sorted(range(len(pairs)), key=lambda at: pairs[at][0].partition("[")[0])
                for ordered in (
                    sorted(encoded),
                    [encoded[at] for at in by_name],
                    [encoded[at] for at in sorted(range(len(pairs)), key=pairs.__getitem__)],
                ):
                    text = "&".join(f"{name}={value}" for name, value in ordered)
                    yield quote(text, safe)

    def _with_form(self) -> str:
        return "&".join(filter(None, (self.query, self.form)))

    def _pairs(self) -> Iterator[Pairs]:
        """Yield the possible parameter lists of the client, without duplicate parameters.

        Some clients send a parameter twice, once as given and once as signed. Other clients do not
        sign empty parameters.
        """
        sent = [self._with_form()]
        if self.form and self.is_form_optional:
            sent.append(self.query)
        # A plus can mean a blank or a plus.
        sent += [text.replace("+", "%2B") for text in sent if "+" in text]
        for query in map(_parsed, sent):
            pairs = [
                pair
                for pair in dict.fromkeys([*self.header, *query])
                if pair[0] not in {"oauth_signature", "realm"}
            ]
            # Some clients decode values that look percent-encoded before they sign.
            decoded = [(unquote(name), unquote(value)) for name, value in pairs]
            forms = [pairs, decoded, [(name, value) for name, value in decoded if value]]
            # Only a literal `_method` in the query overrides the method. Ignore forms in which
            # decoding creates another `_method`, because the request was not handled that way.
            yield from (
                form
                for at, form in enumerate(forms)
                if form not in forms[:at] and _overrides(form) == _overrides(pairs)
            )


def _parsed(query: str) -> list[tuple[str, str]]:
    # Replaces octets that are not UTF-8, as the app does when it parses the query.
    return parse_qsl(query, keep_blank_values=True)


def _overrides(pairs: Pairs) -> list[str]:
    return [value for name, value in pairs if name == "_method"]
