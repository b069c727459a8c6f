"""How to run the commands, for messages that suggest one."""

import sys
from pathlib import Path

from app.cli import SCRIPT
from app.db.migrations import SchemaState


def command(arguments: str) -> str:
    """Return the command line for a command, with the path by which the current one was run."""
    program = Path(sys.argv[0])
    return f"{program if program.name == SCRIPT else f'.venv/bin/{SCRIPT}'} {arguments}"


def upgrade() -> str:
    """Return the command line that migrates the database."""
    return command("db upgrade")


def schema_remedy(state: SchemaState, run: str = "{}") -> str:
    """Return how to make a schema usable that is OLD or TOO_NEW."""
    if state is SchemaState.TOO_NEW:
        return "Install a newer version of the service"
    return run.format(upgrade())


def new_key() -> str:
    """Return the command line that creates a key."""
    return command("keys create --login NAME --role ROLE --permission read_write")
