"""Location of files that are next to the package in a checkout and inside it in a wheel."""

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def folder_of(name: str) -> Path:
    """Return a folder such as ``migrations``."""
    inside = _PACKAGE / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


def runtime_folder() -> Path:
    """Return the folder of ``wsgi.py``, ``gunicorn.conf.py`` and the package ``server``."""
    inside = _PACKAGE / "runtime"
    return inside if inside.is_dir() else _PACKAGE.parent
