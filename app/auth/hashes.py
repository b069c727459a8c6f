"""Hashes of consumer keys and secrets, which have 160 random bits each, and of passwords.

Passwords are hashed with argon2id, and never stored, shown or logged (decisions 5).
"""

import hmac
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from argon2 import PasswordHasher
from flask import current_app

IMPORTED_HASH = "wc-api:"
"""Prefix of a stored hash that the shop of an imported consumer key made of it.

An imported key has no other hash, because its source does not store the key itself."""

NO_SECRET = "0" * 64
"""A value with the length of a hash that matches no secret."""


def imported_hash(consumer_key: str) -> str:
    """Return the stored hash of an imported consumer key: HMAC-SHA256 with a public key.

    This is sufficient for a consumer key with 160 random bits.
    """
    return IMPORTED_HASH + hmac.digest(b"wc-api", consumer_key.encode(), "sha256").hex()


def keyed_hash(secret: str) -> str:
    """Return a keyed hash. Secrets with 160 random bits do not need a slow hash."""
    key: str = current_app.config["SECRET_KEY"]
    return hmac.digest(key.encode(), secret.encode(), "sha256").hex()


def hash_passwords(passwords: Sequence[str]) -> list[str]:
    """Return the hash of each password.

    Several hashes are computed in parallel. argon2 releases the global interpreter lock, so other
    requests continue.
    """
    hasher = PasswordHasher(
        time_cost=current_app.config["SHOP_ARGON2_TIME_COST"],
        memory_cost=current_app.config["SHOP_ARGON2_MEMORY_KIB"],
        parallelism=1,
    )
    if len(passwords) < 2:
        return [hasher.hash(password) for password in passwords]
    with ThreadPoolExecutor(min(len(passwords), os.cpu_count() or 1)) as pool:
        return list(pool.map(hasher.hash, passwords))
