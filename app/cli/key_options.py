"""Options of the commands for API keys: resources and expiry."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from app.conversions.dates import parse_timestamp

NEVER = "never"

RESOURCES = ("coupons", "customers", "events", "keys", "orders", "redemptions", "webhooks")
"""The resources of the core."""


def limits(command: Callable[..., Any]) -> Callable[..., Any]:
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


def names_in(resources: str) -> list[str]:
    """Return the names in a comma-separated list."""
    return [name.strip() for name in resources.split(",") if name.strip()]


def expiry(text: str | None) -> datetime | None:
    """Return the time in the option ``--expires``, or None for never."""
    if text is None or text == NEVER:
        return None
    try:
        return parse_timestamp(text)
    except ValueError as error:
        reason = f"{error} Use {NEVER} for a key that does not expire."
        raise click.BadParameter(reason, param_hint="--expires") from None
