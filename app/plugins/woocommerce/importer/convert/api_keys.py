"""Conversion of API keys, so that clients can continue to use them."""

from collections.abc import Sequence

from sqlalchemy import select

from app.auth.encryption import encrypt
from app.auth.hashes import IMPORTED_HASH, keyed_hash
from app.auth.principals import Permission
from app.conversions.numbers import whole_number
from app.db.read_pool import fetch
from app.db.session import now
from app.models import API_KEYS
from app.plugins.woocommerce.importer.convert.converted import Converted, LeftOut


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
