"""Small shops as each release has written them, and what its API responded.

A folder for each release contains a SQLite file, a dump of the same shop in PostgreSQL, and the
responses. ``tests/db/test_releases.py`` upgrades them. ``python -m qa.releases`` writes the folder
of the current version, as a part of its release (CONTRIBUTING.md). A folder never changes afterwards.
"""

import gzip
import json
from pathlib import Path
from typing import NamedTuple

import psycopg
from sqlalchemy import make_url

FOLDER = Path(__file__).parent
SQLITE, POSTGRESQL, RESPONSES = "sqlite.db.gz", "postgresql.sql.gz", "responses.json"


class Key(NamedTuple):
    """An API key of the shop."""

    consumer_key: str
    consumer_secret: str


class Release(NamedTuple):
    """What a release has left.

    Args:
        folder: its files.
        key: an API key of an administrator.
        responses: the body of the response to GET, by path.
    """

    folder: Path
    key: Key
    responses: dict

    def load(self, url):
        """Load the shop into an empty database."""
        if make_url(url).get_backend_name() == "sqlite":
            database = gzip.decompress((self.folder / SQLITE).read_bytes())
            Path(make_url(url).database).write_bytes(database)
            return
        statements = gzip.decompress((self.folder / POSTGRESQL).read_bytes()).decode()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statements)


def releases():
    """Return the names of the releases, the oldest first."""
    names = [path.name for path in FOLDER.iterdir() if (path / RESPONSES).exists()]
    return sorted(names, key=lambda name: [int(part) for part in name.split(".")])


def read_release(name):
    """Return a release."""
    written = json.loads((FOLDER / name / RESPONSES).read_text())
    return Release(FOLDER / name, Key(**written["key"]), written["responses"])


def losses(then, now, path=""):
    """Return the paths of values that a later version no longer returns, or returns differently.

    A later version may add members to objects, and nothing else.
    """
    if isinstance(then, dict) and isinstance(now, dict):
        names = then.keys()
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        names = range(len(then))
    else:
        return [] if then == now and type(then) is type(now) else [f"{path}: {then!r}, now {now!r}"]
    missing = [
        f"{path}.{name}: missing" for name in names if isinstance(now, dict) and name not in now
    ]
    found = [name for name in names if isinstance(now, list) or name in now]
    return missing + [
        loss for name in found for loss in losses(then[name], now[name], f"{path}.{name}")
    ]
