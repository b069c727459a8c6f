"""Create, downgrade and inspect migrations, with all commands of Flask-Migrate.

Operators need only ``shop-api db upgrade``. docs/migrations.md describes how to add a migration.
"""

import sys
from pathlib import Path

from flask_migrate.cli import db

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from app import create_app


def main() -> None:
    """Run a command, for example ``downgrade 0031``."""
    with create_app().app_context():
        db.main(prog_name="tools/migrations.py")


if __name__ == "__main__":
    main()
