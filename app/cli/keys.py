"""``flask --app wsgi keys``: create, list and revoke API keys."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict

import click
from flask.cli import AppGroup

from app.auth import principals
from app.cli.failures import UPGRADE
from app.db.session import schema_is_current
from app.services import api_keys as service
from app.text import is_username

NEW_KEY = ".venv/bin/flask --app wsgi keys create --login NAME --role ROLE --permission read_write"

keys = AppGroup("keys", help="API keys: create, list, revoke.")


def require_schema() -> None:
    """Raise ClickException with the upgrade command unless the schema is up to date."""
    if not schema_is_current():
        raise click.ClickException(f"The database schema is not current. Run: {UPGRADE}")


@keys.command("create")
@click.option("--login", required=True, help="Username. A user that does not exist is created.")
@click.option(
    "--role",
    type=click.Choice(list(principals.ROLES)),
    help="Role of the user. Required for a new user; an existing user keeps its role.",
)
@click.option(
    "--permission",
    type=click.Choice([permission.value for permission in principals.Permission]),
    default="read",
    show_default=True,
)
@click.option("--description", default="", help="Description of the key.")
@click.option(
    "--existing",
    is_flag=True,
    help="Import an existing consumer key and secret instead of generating them. Prompts for both, "
    "or reads them from standard input, one per line.",
)
@click.option("--json", "as_json", is_flag=True, help="Print only one line of JSON.")
def create(
    login: str,
    role: str | None,
    permission: str,
    description: str,
    *,
    existing: bool,
    as_json: bool,
) -> None:
    """Create an API key and show its secret once."""
    require_schema()
    if not is_username(login):
        raise click.BadParameter(
            "must be 1 to 60 letters, digits, _ . - @ or single spaces between them.",
            param_hint="--login",
        )
    pair = existing_pair() if existing else None
    try:
        key = service.create_key(login, role, principals.Permission(permission), description, pair)
    except service.KeyExists:
        raise click.ClickException("This consumer key already exists.") from None
    except service.RoleRequired:
        raise click.UsageError(
            f"User {login!r} does not exist. To create it, add --role: "
            f"{', '.join(principals.ROLES)}."
        ) from None
    if role and key.role != role:
        click.echo(f"User {key.login} already exists and keeps the role {key.role!r}.", err=True)
    if as_json:
        click.echo(json.dumps(asdict(key)))
        return
    show(key)


def existing_pair() -> principals.ApiKeyCredentials:
    """Prompt for a consumer key and its secret."""
    key = click.prompt("Consumer key", err=True)
    secret = click.prompt("Consumer secret", err=True, hide_input=sys.stdin.isatty())
    for value, name in ((key, "consumer key"), (secret, "consumer secret")):
        # A colon would end the user name in HTTP Basic. Short values could be guessed.
        if not re.fullmatch(r"[!-9;-~]{20,200}", value):
            raise click.ClickException(
                f"The {name} must be 20 to 200 visible ASCII characters without colons."
            )
    return principals.ApiKeyCredentials(key, secret)


def show(key: service.NewKey) -> None:
    """Print a new key."""
    click.echo(f"Key {key.key_id} of {key.login} ({key.role}), permission {key.permission}:")
    click.echo(f"  consumer key     {key.consumer_key}")
    click.echo(f"  consumer secret  {key.consumer_secret}")
    click.echo("The secret is not shown again. To use it with curl, run this command:")
    click.echo(f"  export KEY={key.consumer_key}:{key.consumer_secret}")


@keys.command("list")
def list_() -> None:
    """List all API keys without their secrets."""
    require_schema()
    row = "{:>6}  {:<20} {:<11} {:<11} {:<20} {}"
    click.echo(row.format("key_id", "login", "permission", "key", "created", "description"))
    for key in service.list_keys():
        click.echo(
            row.format(
                key.id,
                key.username,
                key.permission,
                f"…{key.truncated_key}",
                f"{key.created_at:%Y-%m-%d %H:%M}",
                key.description,
            )
        )


@keys.command("revoke")
@click.argument("key_id", type=int)
def revoke(key_id: int) -> None:
    """Revoke an API key immediately."""
    require_schema()
    if not service.revoke_key(key_id):
        raise click.ClickException(f"Key {key_id} does not exist. List all keys with `keys list`.")
    click.echo(f"Key {key_id} is revoked.")
