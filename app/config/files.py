"""Location of files that are next to the package in a checkout and inside it in a wheel."""

import sys
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def folder_of(name: str) -> Path:
    """Return a folder such as ``migrations``."""
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


def instance_folder() -> Path:
    """Return the folder of the database and the secret, beside the package in a checkout.

    An installed package uses the current folder, because pipx and uv remove environments. It keeps
    the folder in an environment that an earlier version has used.
    """
    if not (_PACKAGE / "runtime").is_dir():
        return _PACKAGE.parent / "instance"
    former = Path(sys.prefix, "var", "app-instance")
    return former if former.is_dir() else Path.cwd() / "instance"


def runtime_folder() -> Path:
    """Return the folder of ``wsgi.py``, ``gunicorn.conf.py`` and the package ``server``."""
    inside = _PACKAGE / "runtime"
    return inside if inside.is_dir() else _PACKAGE.parent
