"""The commands; Flask-Migrate adds ``db`` and flask-smorest ``openapi``."""

from __future__ import annotations

from flask import Flask
from flask_migrate import Migrate

from app.cli.demo import demo
from app.cli.doctor import doctor
from app.cli.keys import keys
from app.cli.serve import serve
from app.db import MIGRATIONS, db


def init_app(app: Flask) -> None:
    """Add the commands to an app."""
    Migrate(app, db, directory=str(MIGRATIONS), render_as_batch=True)
    app.cli.add_command(demo)
    app.cli.add_command(doctor)
    app.cli.add_command(keys)
    app.cli.add_command(serve)
