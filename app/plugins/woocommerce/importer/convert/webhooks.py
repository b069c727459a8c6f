"""Conversion of webhooks. Imported webhooks are paused until an operator activates them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.auth.encryption import encrypt
from app.auth.hashes import keyed_hash
from app.conversions.webhooks import is_delivery_url
from app.models.webhook import WebhookFormat, WebhookStatus
from app.outbound.client import has_valid_host
from app.outbound.signatures import new_secret
from app.plugins.woocommerce.importer.convert.converted import Converted, LeftOut
from app.plugins.woocommerce.importer.convert.customers import EPOCH
from app.plugins.woocommerce.importer.convert.stored_values import Alterations, whole
from app.plugins.woocommerce.importer.source.clock import ShopClock
from app.plugins.woocommerce.importer.source.staging import Metas, Pages
from app.plugins.woocommerce.topics import ACTION, is_topic

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
