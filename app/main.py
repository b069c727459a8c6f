"""The console script ``shop-api``: the commands of the service, without those of Flask itself."""

from __future__ import annotations

import sys

import click
from flask import Flask
from flask.cli import FlaskGroup

from app import create_app
from app.cli.failures import explain
from app.cli.program import SCRIPT
from app.config import VERSION
from app.config.loading import SettingsError
from app.plugins import PluginError

CANNOT_START = 3
"""Exit status for errors of the configuration. gunicorn does not start another worker after it."""


def load_app() -> Flask:
    """Return the app, or exit with CANNOT_START and a message that describes the remedy."""
    try:
        return create_app()
    except (SettingsError, PluginError, OSError) as error:
        reason = explain(error) if isinstance(error, OSError) else error
        sys.stderr.write(f"The service cannot start: {reason}\n")
        raise SystemExit(CANNOT_START) from None


def main() -> None:
    """Run a command."""
    group = FlaskGroup(
        name=SCRIPT,
        help="Commands of the Shop Administration API.",
        create_app=load_app,
        add_default_commands=False,
    )
    # Hide the options of Flask that select an app and a file with settings.
    group.params = []
    click.version_option(VERSION, prog_name=SCRIPT)(group)
    group.main(prog_name=SCRIPT)


if __name__ == "__main__":
    main()
