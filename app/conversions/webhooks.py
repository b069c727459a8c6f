"""Topics, delivery URLs and secrets of webhooks (events 2 and 3)."""

import re
from base64 import b64decode
from collections.abc import Collection
from urllib.parse import urlsplit

MAX_URL_LENGTH = 2000
MAX_TOPICS = 100

SECRET_PREFIX = "whsec_"  # noqa: S105  # the prefix of every secret
MIN_SECRET_BYTES, MAX_SECRET_BYTES = 24, 64

EVERYTHING = "*"


def secret_key(secret: str) -> bytes | None:
    """Return the key that a secret contains, or None unless it is ``whsec_`` and base64.

    The key has 24 to 64 bytes (Standard Webhooks).
    """
    encoded = secret.removeprefix(SECRET_PREFIX)
    if encoded == secret or not re.fullmatch(r"[A-Za-z0-9+/]{32,}={0,2}", encoded):
        return None
    if len(encoded) % 4:  # b64decode accepts padding that is not needed
        return None
    try:
        key = b64decode(encoded, validate=True)
    except ValueError:
        return None
    return key if MIN_SECRET_BYTES <= len(key) <= MAX_SECRET_BYTES else None


def is_delivery_url(url: str) -> bool:
    """Return whether a URL is http or https, without user information and forbidden characters."""
    if not 0 < len(url) <= MAX_URL_LENGTH or re.search(r"[\s\\\x00-\x1f\x7f]", url):
        return False
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    return (
        parts.scheme in {"http", "https"}
        and "@" not in parts.netloc
        and bool(parts.hostname)
        and port != 0
        # An internationalized name is checked when it is encoded.
        and re.fullmatch(r"[a-z0-9._:-]+|.*[^\x00-\x7f].*", parts.hostname or "") is not None
    )


def is_delivered(event_type: str) -> bool:
    """Return whether webhooks deliver events of a type. Events of keys stay in the feed."""
    return not event_type.startswith("key.")


def known_topics(event_types: Collection[str]) -> list[str]:
    """Return ``*``, ``coupon.*`` for each resource, and the event types that are delivered."""
    event_types = list(filter(is_delivered, event_types))
    resources = {f"{event_type.partition('.')[0]}.*" for event_type in event_types}
    return [EVERYTHING, *sorted({*event_types, *resources})]


def unknown_topics(topics: Collection[str], event_types: Collection[str]) -> list[str]:
    """Return the topics that are not an event type, ``coupon.*`` or ``*``."""
    known = set(known_topics(event_types))
    return [topic for topic in topics if topic not in known]


def wants(topics: Collection[str], event_type: str) -> bool:
    """Return whether a webhook with these topics receives events of a type."""
    return is_delivered(event_type) and (
        EVERYTHING in topics
        or event_type in topics
        or f"{event_type.partition('.')[0]}.*" in topics
    )
