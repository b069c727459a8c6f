"""Conversion of accounts, of their API keys, and of webhooks, which are paused."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import select

from app.auth.encryption import encrypt
from app.auth.hashes import IMPORTED_HASH, keyed_hash
from app.auth.principals import Permission
from app.conversions.numbers import whole_number
from app.conversions.webhooks import is_delivery_url
from app.db.read_pool import fetch
from app.db.records import Record
from app.db.session import now
from app.models import API_KEYS
from app.models.webhook import WebhookFormat, WebhookStatus
from app.outbound.client import has_valid_host
from app.outbound.signatures import new_secret
from app.plugins.woocommerce.importer.convert.converted import Converted, LeftOut
from app.plugins.woocommerce.importer.convert.metadata import MetadataConverter
from app.plugins.woocommerce.importer.convert.stored_values import Alterations, whole
from app.plugins.woocommerce.importer.source.clock import ShopClock, from_unix
from app.plugins.woocommerce.importer.source.php_values import UnreadableValue, keys_of
from app.plugins.woocommerce.importer.source.staging import MetaRows, Metas, Pages, meta_in
from app.plugins.woocommerce.stored_keys import ADDRESS_KEYS, USER_KEYS
from app.plugins.woocommerce.topics import ACTION, is_topic

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def customer(
    user_id: int,
    row: Sequence[str | None],
    rows: MetaRows,
    clock: ShopClock,
    capabilities: str,
    *,
    metadata: MetadataConverter,
) -> Converted:
    """Return an account. Its password is not imported, because this service checks no passwords.

    Args:
        row: username, e-mail and registration.
        capabilities: the key of its roles in the metadata.

    Raises:
        LeftOut: it has no username.
    """
    altered = Alterations()
    meta = meta_in(rows)
    username, email, registered = row
    values: Record = {key: altered.text(meta.get(key)) for key in ADDRESS_KEYS}
    # WordPress stores registrations in UTC.
    created = clock.utc(registered)
    if created is None:
        created = EPOCH
        altered.append("the time of registration is missing")
    values |= {
        "username": altered.text(username).strip(),
        "email": altered.text(email).strip(),
        "password_hash": None,
        "first_name": altered.text(meta.get("first_name")),
        "last_name": altered.text(meta.get("last_name")),
        "created_at": created,
        "updated_at": from_unix(meta.get("last_update")) or created,
    }
    if not values["username"]:
        raise LeftOut("the account has no username")
    try:
        found = keys_of(meta.get(capabilities))
        roles = tuple(dict.fromkeys(altered.text(role) for role in found if role))
    except UnreadableValue:
        roles = ()
        altered.append("the roles cannot be read")
    fields = {*USER_KEYS, capabilities}
    entries = metadata.entries("usermeta", rows, fields, altered)
    return Converted(user_id, "users", values, altered, roles=roles, metadata=entries)


def api_key(key_id: int, row: Sequence[str | None], accounts: dict[int, int]) -> Converted:
    """Return an API key. The source stores a hash of the consumer key, and the secret in plaintext.

    Args:
        row: the columns after the ID.
        accounts: the new IDs of accounts, by their ID at the source.

    Raises:
        LeftOut: its account was not imported, or it cannot be used.
    """
    user, description, permissions, key_hash, secret, truncated = row
    user_id = whole_number(user or "") or 0
    if user_id not in accounts:
        raise LeftOut(f"its account {user_id} was not imported")
    if permissions not in set(Permission):
        raise LeftOut(f"the permission {permissions!r} is unknown")
    if not key_hash or not secret:
        raise LeftOut("the key or its secret is empty")
    values = {
        "permission": permissions,
        "description": (description or "").replace("\0", ""),
        "consumer_key_hash": f"{IMPORTED_HASH}{key_hash.lower()}",
        "consumer_secret_hash": keyed_hash(secret),
        "truncated_key": truncated or "",
    }
    return Converted(
        key_id,
        "woocommerce_api_keys",
        values,
        references={"customer": user_id},
        resolved={
            "user_id": accounts[user_id],
            "created_at": now(),
            "consumer_secret_encrypted": encrypt(secret),
        },
    )


def present_hashes(hashes: Sequence[str]) -> dict[str, int]:
    """Return the IDs of the stored keys with these hashes, by the hash."""
    column = API_KEYS.c.consumer_key_hash
    return {
        row[0]: row[1] for row in fetch(select(column, API_KEYS.c.id).where(column.in_(hashes)))
    }


WEBHOOK_TABLE, POSTS = "wc_webhooks", "posts:shop_webhook"
_BARE = re.compile(r"(?:wp_api_v)?([1-9])")
"""Payload versions whose webhooks send bare objects, as those of wc/v3 do.

WooCommerce stores the version of the legacy API as 0, -1, -3, ``legacy_v3`` or not at all.
"""


@dataclass(frozen=True, slots=True)
class SourceWebhook:
    """A webhook as the source stores it."""

    id: int
    name: str | None
    user_id: str | None
    delivery_url: str | None
    secret: str | None
    topic: str | None
    created: str | None
    updated: str | None
    api_version: str | None


def read_webhooks(name: str, page: Pages, metas: Metas) -> Iterator[SourceWebhook]:
    """Yield the webhooks of a page of a staged table: that of webhooks, or posts."""
    for webhook_id, rows in page.items():
        row = rows[-1]
        if name == WEBHOOK_TABLE:
            _, title, user, url, secret, topic, created, updated, version = row
        else:
            get = metas.get(webhook_id, {}).get
            _, _, title, _, user, _, created, _, updated, _ = row
            url, secret, topic = get("_delivery_url"), get("_secret"), get("_topic")
            version = get("_api_version")
        yield SourceWebhook(webhook_id, title, user, url, secret, topic, created, updated, version)


def webhook(source: SourceWebhook, clock: ShopClock, accounts: Mapping[int, int]) -> Converted:
    """Return a webhook with the payload of the legacy API, or of wc/v3.

    Args:
        accounts: the new IDs of accounts, by their ID at the source.

    Raises:
        LeftOut: its topic or URL is not valid.
    """
    altered = Alterations()
    bare = _BARE.match(source.api_version or "")
    if bare and bare[1] != "3":
        altered.append(f"its payload is that of version 3, not of version {bare[1]}")
    topic, url = source.topic or "", (source.delivery_url or "").strip()
    if not is_topic(topic) or (bare and topic.startswith(f"{ACTION}.")):
        raise LeftOut(f"the topic {topic!r} is unknown")
    if not is_delivery_url(url) or not has_valid_host(url):
        raise LeftOut("the delivery URL is not valid")
    if not source.secret:
        altered.append("it has no secret, so a secret was generated")
    created = clock.utc(source.created) or EPOCH
    user_id = whole(source.user_id)
    values = {
        "name": altered.text(source.name),
        "format": WebhookFormat.LEGACY,
        "is_bare": bool(bare),
        "status": WebhookStatus.PAUSED,
        "disabled_reason": None,
        "topics": [topic],
        "delivery_url": url,
        "created_at": created,
        "updated_at": clock.utc(source.updated) or created,
        "failure_count": 0,
    }
    # The encrypted secret differs each time, so its hash shows whether it changed.
    secret_hash = int(keyed_hash(source.secret or "")[:12], 16)
    return Converted(
        source.id,
        "wc_webhooks",
        values,
        altered,
        references={"customer": user_id, "secret": secret_hash},
        resolved={
            "user_id": accounts.get(user_id),
            "secret_encrypted": encrypt(source.secret or new_secret()),
        },
    )


def users_of(webhooks: Sequence[SourceWebhook]) -> list[int]:
    """Return the IDs of the accounts of webhooks at the source."""
    return [whole(each.user_id) for each in webhooks]
