"""Topics, delivery URLs and secrets of webhooks (events 2 and 3)."""

import re
from base64 import b64decode
from collections.abc import Collection, Mapping
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


def known_topics(event_types: Collection[str]) -> list[str]:
    """Return ``*``, ``coupon.*`` for each resource, and the event types."""
    resources = {f"{event_type.partition('.')[0]}.*" for event_type in event_types}
    return [EVERYTHING, *sorted({*event_types, *resources})]


def unknown_topics(topics: Collection[str], event_types: Collection[str]) -> list[str]:
    """Return the topics that are not an event type, ``coupon.*`` or ``*``."""
    known = set(known_topics(event_types))
    return [topic for topic in topics if topic not in known]


def wants(topics: Collection[str], event_type: str) -> bool:
    """Return whether a webhook with these topics receives events of a type."""
    return (
        EVERYTHING in topics
        or event_type in topics
        or f"{event_type.partition('.')[0]}.*" in topics
    )


# --- the legacy API (events 3) ---

LEGACY_ACTION = "action"
LEGACY_HOOKS: Mapping[str, list[str]] = {
    "customer.created": [
        "user_register",
        "woocommerce_created_customer",
        "woocommerce_new_customer",
    ],
    "customer.updated": ["profile_update", "woocommerce_update_customer"],
    "customer.deleted": ["delete_user"],
    "customer.restored": [],
} | {
    f"{resource}.{event}": hooks
    for resource in ("coupon", "order")
    for event, hooks in {
        "created": [f"woocommerce_process_shop_{resource}_meta", f"woocommerce_new_{resource}"],
        "updated": [f"woocommerce_process_shop_{resource}_meta", f"woocommerce_update_{resource}"],
        "deleted": ["wp_trash_post"],
        "restored": ["untrashed_post"],
    }.items()
}
"""The names that the legacy server listed as ``hooks``, by topic."""

_LEGACY_TOPIC = re.compile(
    r"(coupon|customer|order|product)\.(created|updated|deleted|restored)"
    r"|action\.[A-Za-z0-9_./:-]{1,190}"
)


def legacy_topic(text: str) -> str:
    """Return a topic as it is stored: in lower case, except for the name of a hook.

    The legacy server accepted any letter case.
    """
    topic = text.strip()
    return topic if topic.startswith(f"{LEGACY_ACTION}.") else topic.lower()


def is_legacy_topic(topic: str) -> bool:
    """Return whether the legacy API accepts a topic.

    Topics of events that do not exist here are accepted, but never delivered (events 3).
    """
    return _LEGACY_TOPIC.fullmatch(topic) is not None


def legacy_hooks(topic: str) -> list[str]:
    """Return the ``hooks`` of a topic as the legacy server listed them."""
    resource, _, event = topic.partition(".")
    return [event] if resource == LEGACY_ACTION else LEGACY_HOOKS.get(topic, [])
