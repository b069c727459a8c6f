"""Settings that gunicorn reads from the environment only."""

from __future__ import annotations

import os
from pathlib import Path

from flask import Config

from app.config.settings import GUNICORN_SETTINGS


def settings_in_file_only(instance: Path) -> list[str]:
    """Return the settings of gunicorn that only ``config.py`` of the instance folder contains.

    gunicorn itself ignores them there. ``serve`` passes them on.
    """
    file = Config(instance)
    file.from_pyfile("config.py", silent=True)
    return [name for name in GUNICORN_SETTINGS if name in file and not os.environ.get(name)]
