"""Write what pages in ``docs`` repeat of the code: ``python tools/generated_pages.py``.

These are the page of all commands, and the tables of the operations and of the settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from flask import Flask

from app import create_app
from app.cli.program import SCRIPT
from app.config.settings import SettingsSchema

DOCS = Path(__file__).parents[1] / "docs"

COMMANDS_START = """# Commands

Every command with its options, as `shop-api COMMAND --help` prints them. In a folder of the
repository, the program is `.venv/bin/shop-api`. [Configuration](configuration.md) describes the
settings that all commands read, and [Operations](operations.md) when to use which command.
"""


def pages(app: Flask) -> dict[Path, str]:
    """Return the text of each page, by its file.

    Args:
        app: an app of the service.
    """
    operations = "| Method | Path | Operation | What it does |"
    settings = "| Setting | Default | Meaning |"
    return {
        DOCS / "commands.md": _commands_page(app),
        DOCS / "endpoints.md": _with_rows("endpoints.md", operations, _operations(app)),
        DOCS / "configuration.md": _with_rows("configuration.md", settings, _settings()),
    }


def _with_rows(name: str, header: str, rows: Iterable[Sequence[str]]) -> str:
    """Return a page in which the table with this header has these rows."""
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    old = re.compile(rf"({re.escape(header)}\n\|[-|]+\n)(?:\|.*\n)*")
    return old.sub(lambda found: found[1] + table, (DOCS / name).read_text(encoding="utf-8"))


def _operations(app: Flask) -> Iterable[Sequence[str]]:
    document = app.test_client().get("/openapi.json").get_json()
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                name, summary = operation["operationId"], operation["summary"]
                yield method.upper(), f"`{path}`", f"`{name}`", summary


def _settings() -> Iterable[Sequence[str]]:
    for name, field in SettingsSchema().fields.items():
        default = field.load_default
        text = ",".join(default) if isinstance(default, tuple) else default
        meaning = field.metadata["description"].replace("|", r"\|")
        yield f"`{name}`", "none" if text in {None, ""} else f"`{text}`", meaning


def _commands_page(app: Flask) -> str:
    """Return the page of all commands, from their help texts."""
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
        for path, text in pages(app).items():
            path.write_text(text, encoding="utf-8")
