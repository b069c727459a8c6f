"""The console script ``shop-api``: the commands of the service, without those of Flask itself."""

import gc
import sys
from importlib.metadata import entry_points

import click
from flask import Flask
from flask.cli import FlaskGroup

from app import create_app
from app.cli import COMMANDS, SCRIPT
from app.config import PLUGINS, VERSION

CANNOT_START = 3
"""Exit status for errors of the configuration. gunicorn does not start another worker after it."""


class Program(FlaskGroup):
    """The commands of the app. Shows them without importing them, unless a plugin may add more."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of the commands."""
        if entry_points(group=PLUGINS):
            super().format_commands(ctx, formatter)
            return
        summaries = {name: summary for name, (_, _, summary) in COMMANDS.items()}
        summaries["openapi"] = "OpenAPI commands."  # of flask-smorest
        limit = formatter.width - 6 - max(map(len, summaries))
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, click.Command(name, help=summaries[name]).get_short_help_str(limit))
                    for name in sorted(summaries)
                ]
            )


def load_app() -> Flask:
    """Return the app, or exit with CANNOT_START and a message that describes the remedy."""
    gc.disable()  # a full collection would examine all that was imported, and find nothing
    try:
        app = create_app()
        gc.freeze()  # nor does a later one examine it, nor the one at the end
        return app
    except Exception as error:
        if reason := _reason(error):
            sys.stderr.write(f"The service cannot start: {reason}\n")
            raise SystemExit(CANNOT_START) from None
        raise
    finally:
        gc.enable()


def _reason(error: Exception) -> object:
    """Return why the service cannot start, or None for a bug."""
    from app.blueprints import PluginError  # the same
    from app.cli.failures import explain  # imported with the app
    from app.config.loading import SettingsError  # the same

    if isinstance(error, SettingsError | PluginError):
        return error
    return explain(error) if isinstance(error, OSError) else None


def main() -> None:
    """Run a command."""
    group = Program(
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
