"""Columns of API keys: new credentials, their hashes, and keys as responses contain them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from flask import current_app
from sqlalchemy.orm import Session

from app.auth.api_keys import ApiKeyCredentials
from app.auth.encryption import encrypt
from app.auth.hashes import keyed_hash
from app.db.session import now
from app.models import ApiKey, User
from app.services.api_keys.queries import SHOWN
from app.services.api_keys.rights import Rights

Record = dict[str, Any]


def new_credentials() -> ApiKeyCredentials:
    """Return a random consumer key and secret, with 160 bits each."""
    return ApiKeyCredentials(f"ck_{secrets.token_hex(20)}", f"cs_{secrets.token_hex(20)}")


def secret_columns(pair: ApiKeyCredentials) -> Record:
    """Return the columns that contain hashes of credentials and the encrypted secret."""
    # Only the legacy API needs the secret itself, to verify signatures.
    signs = current_app.config["SHOP_LEGACY_API"]
    return {
        "consumer_key_hash": keyed_hash(pair.consumer_key),
        "consumer_secret_hash": keyed_hash(pair.consumer_secret),
        "consumer_secret_encrypted": encrypt(pair.consumer_secret) if signs else None,
        "truncated_key": pair.consumer_key[-7:],
    }


def insert_key(
    session: Session, user_id: int, rights: Rights, description: str, pair: ApiKeyCredentials
) -> ApiKey:
    """Insert a key and return it with its ID."""
    key = ApiKey(
        user_id=user_id,
        description=description,
        created_at=now(),
        **rights.columns,
        **secret_columns(pair),
    )
    session.add(key)
    session.flush()
    return key


def set_columns(key: ApiKey, columns: Mapping[str, Any]) -> None:
    """Set columns of a stored key."""
    for name, value in columns.items():
        setattr(key, name, value)


def columns_of(key: ApiKey) -> Record:
    """Return the columns of a key that responses contain."""
    return {name: getattr(key, name) for name in SHOWN}


def record_of(session: Session, key: ApiKey) -> Record:
    """Return a key by the names of ``api_key_queries.COLUMNS``."""
    return columns_of(key) | {"username": session.get_one(User, key.user_id).username}


def record_with_secret(session: Session, key: ApiKey, pair: ApiKeyCredentials) -> Record:
    """Return a key with its credentials, which only this response contains."""
    return record_of(session, key) | {
        "consumer_key": pair.consumer_key,
        "consumer_secret": pair.consumer_secret,
    }
