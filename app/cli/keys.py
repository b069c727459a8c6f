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
    """Refuse a database without the tables, with the command that makes them."""
    if not schema_is_current():
        raise click.ClickException(f"The database schema is not current. Run: {UPGRADE}")


@keys.command("create")
@click.option("--login", required=True, help="Username; the user is created when there is none.")
@click.option(
    "--role",
    type=click.Choice(list(principals.ROLES)),
    help="Role of a new user, for which it is required; an existing user keeps its own.",
)
@click.option(
    "--permission",
    type=click.Choice([permission.value for permission in principals.Permission]),
    default="read",
    show_default=True,
)
@click.option("--description", default="", help="What the key is for.")
@click.option(
    "--existing",
    is_flag=True,
    help="Ask for a key and secret that clients of another server have, instead of making new "
    "ones; or read them from standard input, a line each.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON and nothing else.")
def create(
    login: str,
    role: str | None,
    permission: str,
    description: str,
    *,
    existing: bool,
    as_json: bool,
) -> None:
    """Create a key and show its secret, once."""
    require_schema()
    if not is_username(login):
        raise click.BadParameter(
            "1 to 60 letters, digits, _ . - @ and inner single blanks.", param_hint="--login"
        )
    pair = existing_pair() if existing else None
    try:
        key = service.create_key(login, role, principals.Permission(permission), description, pair)
    except service.KeyExists:
        raise click.ClickException("This consumer key is there already.") from None
    except service.RoleRequired:
        raise click.UsageError(
            f"There is no user {login!r}. Add --role to create it: {', '.join(principals.ROLES)}."
        ) from None
    if role and key.role != role:
        click.echo(f"{key.login} was there already and keeps the role {key.role!r}.", err=True)
    if as_json:
        click.echo(json.dumps(asdict(key)))
        return
    show(key)


def existing_pair() -> principals.ApiKeyCredentials:
    """Ask for a consumer key and its secret."""
    key = click.prompt("Consumer key", err=True)
    secret = click.prompt("Consumer secret", err=True, hide_input=sys.stdin.isatty())
    for value, name in ((key, "consumer key"), (secret, "consumer secret")):
        # A colon would end the user name of HTTP Basic; who can guess one needs no key.
        if not re.fullmatch(r"[!-9;-~]{20,200}", value):
            raise click.ClickException(
                f"The {name} must have 20 to 200 letters, digits and signs, without blanks and "
                "colons."
            )
    return principals.ApiKeyCredentials(key, secret)


def show(key: service.NewKey) -> None:
    """Print a new key for a person."""
    click.echo(f"Key {key.key_id} of {key.login} ({key.role}), permission {key.permission}:")
    click.echo(f"  consumer key     {key.consumer_key}")
    click.echo(f"  consumer secret  {key.consumer_secret}")
    click.echo("The secret is not shown again. For curl, paste this line into a terminal:")
    click.echo(f"  export KEY={key.consumer_key}:{key.consumer_secret}")


@keys.command("list")
def list_() -> None:
    """Show every key, without secrets."""
    require_schema()
    row = "{:>6}  {:<20} {:<11} {:<11} {:<20} {}"
    click.echo(row.format("key_id", "login", "permission", "key", "created", "description"))
    for key in service.list_keys():
        click.echo(
            row.format(
                key.id,
                key.username,
                key.permission,
                f"…{key.ending}",
                f"{key.created_at:%Y-%m-%d %H:%M}",
                key.description,
            )
        )


@keys.command("revoke")
@click.argument("key_id", type=int)
def revoke(key_id: int) -> None:
    """End a key at once."""
    require_schema()
    if not service.revoke_key(key_id):
        raise click.ClickException(f"There is no key {key_id}; `keys list` shows them all.")
    click.echo(f"Key {key_id} is revoked.")
