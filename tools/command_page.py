"""Write the page of all commands, from their help texts: ``python tools/command_page.py``."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import click
from flask import Flask

from app import create_app
from app.cli.program import SCRIPT

COMMANDS = Path(__file__).parents[1] / "docs" / "commands.md"

COMMANDS_START = """# Commands

Every command with its options, as `shop-api COMMAND --help` prints them. In a folder of the
repository, the program is `.venv/bin/shop-api`. [Configuration](configuration.md) describes the
settings that all commands read, and [Operations](operations.md) when to use which command.
"""


def commands_page(app: Flask) -> str:
    """Return the page of all commands, from their help texts.

    Args:
        app: an app of the service.
    """
    lines = [COMMANDS_START]

    def describe(command: click.Command, parent: click.Context, name: str) -> None:
        context = click.Context(command, info_name=name, parent=parent)
        context.max_content_width = 100
        if isinstance(command, click.Group):
            for each in command.list_commands(context):
                found = command.get_command(context, each)
                if found and not found.hidden:
                    describe(found, context, each)
            return
        lines.append(f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n")

    root = click.Context(app.cli, info_name=SCRIPT, terminal_width=100)
    for name in app.cli.list_commands(root):
        command = app.cli.get_command(root, name)
        if command and not command.hidden:
            describe(command, root, name)
    return "\n".join(lines)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/shop.db"
        app = create_app({"SECRET_KEY": "k" * 32, "DATABASE_URL": url})
        COMMANDS.write_text(commands_page(app), encoding="utf-8")
