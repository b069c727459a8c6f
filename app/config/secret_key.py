"""The server secret in the instance folder, for installations without the setting SECRET_KEY."""

import contextlib
import errno
import os
import secrets
from pathlib import Path

from app.config.loading import SettingsError

MIN_LENGTH = 32
"""Characters of a secret that cannot be guessed."""


def secret_key(instance: Path) -> str:
    """Return the server secret of an instance folder. Create it if it does not exist.

    Workers that start at the same time get the same secret.
    """
    path = instance / "secret_key"
    try:
        return _read_or_create_secret(path)
    except OSError as error:
        remedy = (
            "Make room on the disk"
            if error.errno == errno.ENOSPC
            else "Make the folder writable for the user of the service"
        )
        raise SettingsError(
            f"SECRET_KEY: {path} cannot be created or read: {error.strerror}. {remedy}, or set "
            "SECRET_KEY."
        ) from error


def _read_or_create_secret(path: Path) -> str:
    instance = path.parent
    instance.mkdir(parents=True, exist_ok=True)
    temporary = instance / f"secret_key.{os.getpid()}.{secrets.token_hex(4)}"
    if not path.exists():
        temporary.touch(mode=0o600)
        temporary.write_text(secrets.token_hex(32))
        # Creating a hard link is atomic and never replaces the secret of another worker.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(temporary)
        temporary.unlink()
    if not (secret := path.read_text().strip()):
        raise SettingsError(f"SECRET_KEY: {path} is empty. Remove it to create a new secret.")
    return secret
