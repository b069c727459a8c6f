"""Password hashing with argon2id. Passwords are never stored, shown or logged (decisions 5)."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from argon2 import PasswordHasher
from flask import current_app


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
