"""``shop-api keys``: create, list, update, rotate and revoke API keys."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from urllib.parse import urlsplit

import click
from flask import current_app
from flask.cli import AppGroup

from app.auth import principals
from app.auth.api_keys import ApiKeyCredentials
from app.cli import program
from app.config.urls import own_url
from app.conversions.dates import parse_timestamp
from app.conversions.text import is_username
from app.db.migrations import SchemaState
from app.db.session import schema_state
from app.errors import ShopError
from app.services.api_keys import links, queries
from app.services.api_keys import writes as service
from app.services.api_keys.rights import Rights, checked_expiry, checked_resources

keys = AppGroup(
    "keys", help="API keys: create, list, update, rotate, revoke, and links to sign in."
)

PERMISSION = click.Choice([permission.value for permission in principals.Permission])


NEVER = "never"

RESOURCES = (
    "coupons",
    "customers",
    "events",
    "imports",
    "keys",
    "orders",
    "persons",
    "redemptions",
    "reports",
    "webhooks",
)
"""The resources of the core."""


def _limits(command: Callable[..., object]) -> Callable[..., object]:
    """Add the options for the resources and the expiry of a key to a command."""
    resources = click.option(
        "--resources",
        help="Resources that the key can be used for, separated by commas: all, or some of "
        f"{', '.join(RESOURCES)}, and those of plugins.",
    )
    expires = click.option(
        "--expires",
        metavar="DATE",
        help=f"When the key expires, as a date, a date-time in UTC, Unix seconds, or {NEVER}.",
    )
    return resources(expires(command))


def _names_in(resources: str) -> list[str]:
    """Return the names in a comma-separated list."""
    return [name.strip() for name in resources.split(",") if name.strip()]


def _expiry(text: str | None) -> datetime | None:
    """Return the time in the option ``--expires``, or None for never."""
    if text is None or text == NEVER:
        return None
    try:
        return parse_timestamp(text)
    except ValueError as error:
        reason = f"{error} Use {NEVER} for a key that does not expire."
        raise click.BadParameter(reason, param_hint="--expires") from None


def require_schema() -> None:
    """Raise ClickException with a remedy unless this version can use the schema."""
    if (state := schema_state()) is not SchemaState.CURRENT:
        raise click.ClickException(f"{state}. {program.schema_remedy(state, 'Run: {}')}")


@contextmanager
def reporting_errors() -> Iterator[None]:
    """Convert an error of a service into a message for the operator."""
    try:
        yield
    except ShopError as error:
        raise click.ClickException(
            str(error.sentence(lambda param: param.removeprefix("key.")))
        ) from None


@keys.command("create")
@click.option("--login", required=True, help="Username. A user that does not exist is created.")
@click.option(
    "--role",
    type=click.Choice(list(principals.ROLES)),
    help="Role of the user. Required for a new user; an existing user keeps its role. On a "
    "terminal, the command asks for it.",
)
@click.option("--permission", type=PERMISSION, default="read", show_default=True)
@click.option("--description", default="", help="Description of the key.")
@_limits
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
    resources: str | None,
    expires: str | None,
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
    allowed = principals.Permission(permission)
    with reporting_errors():
        names = _names_in(principals.ALL_RESOURCES if resources is None else resources)
        rights = Rights(allowed, checked_resources(names), checked_expiry(_expiry(expires)))
    pair = existing_pair() if existing else None

    def created(role: str | None) -> service.NewKey:
        return service.create_key(login, role, allowed, description, pair, rights=rights)

    try:
        try:
            key = created(role)
        except service.RoleRequired:
            key = created(ask_for_role(login))
    except service.KeyExists:
        raise click.ClickException("This consumer key already exists.") from None
    if role and key.role != role:
        click.echo(f"User {key.login} already exists and keeps the role {key.role!r}.", err=True)
    if as_json:
        click.echo(json.dumps(asdict(key)))
        return
    show_new(key)


def ask_for_role(login: str) -> str:
    """Ask for the role of a new user, or raise UsageError if there is no terminal."""
    if not sys.stdin.isatty():
        raise click.UsageError(
            f"User {login!r} does not exist. To create it, add --role: "
            f"{', '.join(principals.ROLES)}."
        ) from None
    click.echo(f"User {login!r} does not exist and will be created.", err=True)
    role: str = click.prompt(
        "Role (shop_manager manages the shop, shop_assistant changes status and notes of orders)",
        type=click.Choice(list(principals.ROLES)),
        err=True,
    )
    return role


def existing_pair() -> ApiKeyCredentials:
    """Prompt for a consumer key and its secret."""
    try:
        key = click.prompt("Consumer key", err=True)
        secret = click.prompt("Consumer secret", err=True, hide_input=sys.stdin.isatty())
    except click.Abort:
        if sys.stdin.isatty():
            raise  # Ctrl-C
        raise click.ClickException(
            "Standard input must contain the consumer key and the consumer secret, one per line."
        ) from None
    for value, name in ((key, "consumer key"), (secret, "consumer secret")):
        # A colon would end the user name in HTTP Basic. Short values could be guessed.
        if not re.fullmatch(r"[!-9;-~]{20,200}", value):
            raise click.ClickException(
                f"The {name} must be 20 to 200 visible ASCII characters without colons."
            )
    return ApiKeyCredentials(key, secret)


def show_new(key: service.NewKey) -> None:
    """Print a new key."""
    click.echo(f"Key {key.key_id} of {key.login} ({key.role}), permission {key.permission}:")
    show_secret(asdict(key))


def show_secret(key: Mapping[str, object]) -> None:
    """Print the consumer key and the secret of a key."""
    click.echo(f"  consumer key     {key['consumer_key']}")
    click.echo(f"  consumer secret  {key['consumer_secret']}")
    click.echo("The secret is not shown again. To use it with curl, run this command:")
    click.echo(f"  export KEY={key['consumer_key']}:{key['consumer_secret']}")


@keys.command("list")
def list_() -> None:
    """List all API keys without their secrets."""
    require_schema()
    row = "{:>6}  {:<20} {:<11} {:<11} {:<17} {:<17} {:<17} {:<20} {}"
    click.echo(
        row.format(
            "key_id",
            "login",
            "permission",
            "key",
            "created",
            "last used",
            "expires",
            "resources",
            "description",
        )
    )
    for key in queries.every_key():
        click.echo(
            row.format(
                key.id,
                key.username,
                key.permission,
                f"…{key.truncated_key}",
                minute(key.created_at, ""),
                minute(key.last_used_at, NEVER),
                minute(key.expires_at, NEVER),
                key.resources,
                key.description,
            ).rstrip()
        )


def minute(time: datetime | None, otherwise: str) -> str:
    """Return a time to the minute, in UTC."""
    return otherwise if time is None else f"{time:%Y-%m-%d %H:%M}"


@keys.command("update")
@click.argument("key_id", type=int)
@click.option("--permission", type=PERMISSION)
@click.option("--description", help="Description of the key.")
@_limits
def update(key_id: int, expires: str | None, resources: str | None, **given: str | None) -> None:
    """Change an API key. A restriction takes effect immediately."""
    require_schema()
    data: dict[str, object] = {name: value for name, value in given.items() if value is not None}
    if resources is not None:
        data["resources"] = _names_in(resources)
    if expires is not None:
        data["expires_at"] = _expiry(expires)
    if not data:
        raise click.UsageError("Nothing to change. Add an option, for example --permission.")
    with reporting_errors():
        service.update_key(service.OPERATOR, known(key_id), data)
    click.echo(f"Key {key_id} was updated.")


@keys.command("rotate")
@click.argument("key_id", type=int)
@click.option("--json", "as_json", is_flag=True, help="Print only one line of JSON.")
def rotate(key_id: int, *, as_json: bool) -> None:
    """Replace the consumer key and the secret of an API key, and show them once."""
    require_schema()
    with reporting_errors():
        key = service.rotate_key(service.OPERATOR, known(key_id))
    if as_json:
        shown = ("consumer_key", "consumer_secret")
        click.echo(json.dumps({"key_id": key_id} | {name: key[name] for name in shown}))
        return
    click.echo(f"Key {key_id} of {key['username']} was rotated. The old key no longer works:")
    show_secret(key)


@keys.command("link")
@click.option("--login", help="Username. By default, the newest key of an administrator is used.")
@click.option("--key", "key_id", type=int, help="ID of the key. By default, the newest one.")
@click.option("--url", help="Address of the service. By default, that of HOST and PORT.")
def link(login: str | None, key_id: int | None, url: str | None) -> None:
    """Print a link that signs in to the admin pages once within 10 minutes.

    The session has the rights of an existing key of the user that may read.
    """
    require_schema()
    if key_id is not None:
        known(key_id)
    elif login is not None:
        key_id = links.newest_reading_key(login)
    else:
        key_id = links.newest_administrator_key()
    if key_id is None:
        whose = f"User {login!r} has no key" if login else "No administrator has a key"
        raise click.ClickException(f"{whose} that may read. Create one: {program.new_key()}")
    with reporting_errors():
        click.echo(sign_in_url(key_id, url))


def sign_in_url(key_id: int, url: str | None = None) -> str:
    """Create a link that signs in with a key, and return its address."""
    base = own_url(current_app.config) if url is None else _base_url(url)
    return f"{base}/admin/sign-in?token={links.create_link(key_id)}"


def _base_url(text: str) -> str:
    """Return the address in ``--url`` without a slash at its end."""
    try:
        parts = urlsplit(text)
        is_valid = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_valid = False
    if not is_valid or not re.fullmatch(r"[!-~]+", text) or re.search("[?#@]", text):
        reason = "must be the http or https address of the service, such as https://shop.example."
        raise click.BadParameter(reason, param_hint="--url")
    return text.rstrip("/")


@keys.command("revoke")
@click.argument("key_id", type=int)
def revoke(key_id: int) -> None:
    """Revoke an API key immediately."""
    require_schema()
    service.revoke_key(known(key_id))
    click.echo(f"Key {key_id} was revoked.")


def known(key_id: int) -> int:
    """Return the ID of a key, or raise ClickException if it does not exist."""
    if not queries.exists(key_id):
        raise click.ClickException(f"Key {key_id} does not exist. List all keys with `keys list`.")
    return key_id
