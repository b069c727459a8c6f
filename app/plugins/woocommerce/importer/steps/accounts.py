"""The import steps of accounts, of their API keys, and of webhooks, which are paused."""

import re
from collections.abc import Iterator, Sequence
from functools import partial

from sqlalchemy import select

from app.auth.encryption import encrypt
from app.auth.hashes import IMPORTED_HASH, keyed_hash
from app.auth.principals import Permission
from app.conversions.emails import comparable_email
from app.conversions.numbers import whole_number
from app.conversions.text import comparable
from app.conversions.webhooks import is_delivery_url
from app.db.read_pool import fetch
from app.db.records import Record
from app.db.session import now
from app.models import API_KEYS
from app.models.webhook import WebhookFormat, WebhookStatus
from app.outbound.client import has_valid_host
from app.outbound.signatures import new_secret
from app.plugins.woocommerce.importer.context import ImportContext
from app.plugins.woocommerce.importer.convert import Alterations, Converted, LeftOut, whole
from app.plugins.woocommerce.importer.kinds import API_KEY, CUSTOMER, WEBHOOK
from app.plugins.woocommerce.importer.source.clock import EPOCH, ShopClock, from_unix
from app.plugins.woocommerce.importer.source.php_values import UnreadableValue, keys_of
from app.plugins.woocommerce.importer.source.staging import Meta, MetaRows, Pages, meta_in
from app.plugins.woocommerce.stored_keys import ADDRESS_KEYS, USER_KEYS
from app.plugins.woocommerce.topics import ACTION, is_topic


def customers(context: ImportContext, page: Pages) -> Iterator[list[Converted]]:
    """Convert accounts, with their roles and addresses."""
    metas = context.staging.meta_rows("usermeta", list(page))

    sources = {user_id: (rows[-1], metas.get(user_id, [])) for user_id, rows in page.items()}
    found = context.converted(CUSTOMER, "users", sources, partial(_customer, context))
    _make_unique(context, found)
    yield found


def _customer(
    context: ImportContext, user_id: int, row: Sequence[str | None], rows: MetaRows
) -> Converted:
    """Return an account. Its password is not imported, because this service checks no passwords.

    Args:
        row: username, e-mail and registration.

    Raises:
        LeftOut: it has no username.
    """
    altered, meta, clock = Alterations(), meta_in(rows), context.source.clock
    capabilities = f"{context.source.prefix}capabilities"
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
    entries = context.metadata.entries("usermeta", rows, fields, altered)
    return Converted(user_id, values, altered, roles=roles, metadata=entries)


def _make_unique(context: ImportContext, accounts: Sequence[Converted]) -> None:
    """Empty e-mail addresses, and change usernames, that an earlier account of the source has."""
    owners = context.index.add_values(
        "email",
        [(key, a.source_id) for a in accounts if (key := comparable_email(a.values["email"]))],
    )
    names = context.index.add_values(
        "username", [(comparable(a.values["username"]), a.source_id) for a in accounts]
    )
    for account in accounts:
        email, username = account.values["email"], account.values["username"]
        if email and (owner := owners[comparable_email(email)]) != account.source_id:
            account.values["email"] = ""
            account.altered.append(
                f"account {owner} also has the e-mail {email!r}, so the "
                "e-mail of the later account was emptied"
            )
        number = 2
        name = username
        owner = names[comparable(name)]
        while owner != account.source_id:
            name = f"{username}-{number}"
            key = comparable(name)
            owner = context.index.add_values("username", [(key, account.source_id)])[key]
            number += 1
        if name != username:
            account.values["username"] = name
            account.altered.append(f"the username {username!r} is in use; the new one is {name!r}")


def api_keys(context: ImportContext, page: Pages) -> Iterator[list[Converted]]:
    """Convert API keys. Clients can continue to use them."""
    users = [whole(rows[-1][0]) for rows in page.values()]
    accounts = context.writer.records.targets("customer", users, merged=False)
    known = context.writer.records.targets("api_key", list(page))

    def convert(key_id: int, row: Sequence[str | None]) -> Converted:
        key = _api_key(key_id, row, accounts)
        key_hash = key.values["consumer_key_hash"]
        # The old server used the first of several keys with the same consumer key.
        owner = context.index.add_values("api_key", [(key_hash, key_id)])[key_hash]
        if owner != key_id:
            raise LeftOut(f"key {owner} has the same consumer key")
        same = select(API_KEYS.c.id).where(API_KEYS.c.consumer_key_hash == key_hash)
        if key_id not in known and fetch(same):
            raise LeftOut("the key already exists in this shop")
        return key

    sources = {key_id: (rows[-1],) for key_id, rows in page.items()}
    yield context.converted(API_KEY, "woocommerce_api_keys", sources, convert)


def _api_key(key_id: int, row: Sequence[str | None], accounts: dict[int, int]) -> Converted:
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
        values,
        references={"customer": user_id},
        resolved={"created_at": now(), "consumer_secret_encrypted": encrypt(secret)},
    )


WEBHOOK_TABLE, POSTS = "wc_webhooks", "posts:shop_webhook"
_BARE = re.compile(r"(?:wp_api_v)?([1-9])")
"""Payload versions whose webhooks send bare objects, as those of wc/v3 do.

WooCommerce stores the version of the legacy API as 0, -1, -3, ``legacy_v3`` or not at all.
"""


def webhooks_table(context: ImportContext) -> str:
    """Return the name of the staged table with the webhooks. WooCommerce 3.3 introduced a table."""
    return WEBHOOK_TABLE if context.staging.count(WEBHOOK_TABLE) else POSTS


def webhooks(context: ImportContext, page: Pages) -> Iterator[list[Converted]]:
    """Convert webhooks with the payload of the legacy API, paused."""
    name = webhooks_table(context)
    found: dict[int, Sequence[str | None]] = {each: rows[-1] for each, rows in page.items()}
    if name == POSTS:
        metas = context.staging.meta_of("postmeta", list(page))
        found = {each: _row_of_post(row, metas.get(each, {})) for each, row in found.items()}
    sources = {webhook_id: (row,) for webhook_id, row in found.items()}
    convert = partial(_webhook, context.source.clock)
    yield context.converted(WEBHOOK, name.partition(":")[0], sources, convert)


def _row_of_post(row: Sequence[str | None], meta: Meta) -> Sequence[str | None]:
    """Return a webhook that is stored as a post like a row of the table of webhooks."""
    _, status, title, _, user, _, created, _, updated, _ = row
    url, secret, topic = meta.get("_delivery_url"), meta.get("_secret"), meta.get("_topic")
    return status, title, user, url, secret, topic, created, updated, meta.get("_api_version")


def _webhook(clock: ShopClock, webhook_id: int, row: Sequence[str | None]) -> Converted:
    """Return a webhook with the payload of the legacy API, or of wc/v3.

    Args:
        row: the columns after the ID.

    Raises:
        LeftOut: its topic or URL is not valid.
    """
    altered = Alterations()
    _, name, user, url, secret, topic, created_gmt, updated_gmt, version = row
    bare = _BARE.match(version or "")
    if bare and bare[1] != "3":
        altered.append(f"its payload is that of version 3, not of version {bare[1]}")
    topic, url = topic or "", (url or "").strip()
    if not is_topic(topic) or (bare and topic.startswith(f"{ACTION}.")):
        raise LeftOut(f"the topic {topic!r} is unknown")
    if not is_delivery_url(url) or not has_valid_host(url):
        raise LeftOut("the delivery URL is not valid")
    if not secret:
        altered.append("it has no secret, so a secret was generated")
    created = clock.utc(created_gmt) or EPOCH
    values = {
        "name": altered.text(name),
        "format": WebhookFormat.LEGACY,
        "is_bare": bool(bare),
        "status": WebhookStatus.PAUSED,
        "disabled_reason": None,
        "topics": [topic],
        "delivery_url": url,
        "created_at": created,
        "updated_at": clock.utc(updated_gmt) or created,
        "failure_count": 0,
    }
    # The encrypted secret differs each time, so its hash shows whether it changed.
    secret_hash = int(keyed_hash(secret or "")[:12], 16)
    return Converted(
        webhook_id,
        values,
        altered,
        references={"customer": whole(user), "secret": secret_hash},
        resolved={"secret_encrypted": encrypt(secret or new_secret())},
    )
