"""``shop-api coupons``: generate coupons with random codes, in any number."""

import json
from decimal import Decimal
from pathlib import Path

import click
import marshmallow as ma
import orjson
from flask.cli import AppGroup
from sqlalchemy import select

from app.auth.principals import ROLES, Principal
from app.cli.keys import require_schema
from app.cli.progress import showing_progress
from app.conversions.text import comparable
from app.db.read_pool import fetch
from app.errors import ShopError
from app.models import User
from app.schemas.coupons.batch import CHARSET, CodesInput
from app.schemas.loading import instance_of, invalid_params
from app.services.coupons import batches as coupon_batches

coupons = AppGroup("coupons", help="Coupons: generate batches of codes.")


@coupons.command("generate")
@click.option("--count", required=True, type=click.IntRange(min=1), help="Number of coupons.")
@click.option("--name", default="", help="Name of the batch, such as the campaign.")
@click.option("--prefix", default="", help="Text that all codes begin with.")
@click.option(
    "--pattern",
    default="####-####",
    show_default=True,
    help="Text that follows the prefix. Each # becomes a random character.",
)
@click.option(
    "--charset", default=CHARSET, show_default=True, help="Letters and digits for the # signs."
)
@click.option(
    "--coupon",
    default="{}",
    metavar="JSON|@FILE",
    help='Fields of every coupon, as in the API: \'{"type": "percent", "amount": "10"}\'.',
)
@click.option(
    "--allow-guessable",
    is_flag=True,
    help="Accept 100 times as many possible codes as coupons, instead of a million times.",
)
@click.option("--login", help="Username of the author. By default, the coupons have no author.")
@click.option("--json", "as_json", is_flag=True, help="Print only one line of JSON.")
def generate(
    *,
    count: int,
    name: str,
    prefix: str,
    pattern: str,
    charset: str,
    coupon: str,
    login: str | None,
    allow_guessable: bool,
    as_json: bool,
) -> None:
    """Generate coupons with random codes, all of them or none.

    Write the codes to a file with `shop-api export coupons FILE --filter batch=ID`.
    """
    require_schema()
    given: dict[str, object] = {
        "name": name,
        "prefix": prefix,
        "pattern": pattern,
        "charset": charset,
        "allow_guessable": allow_guessable,
        "coupon": _fields(coupon),
    }
    actor = author(login)
    try:
        data = instance_of(CodesInput, strict=True).load(given)
        with showing_progress("coupons", count) as note_progress:
            batch = coupon_batches.generate(actor, data, count, note_progress)
    except ma.ValidationError as error:
        raise click.ClickException(str(invalid_params(error))) from None
    except ShopError as error:
        if "remedy" in error.details and not allow_guessable:
            error.details["remedy"] = "Add # signs, or use --allow-guessable."
        text = error.sentence(lambda param: param.replace("generate.", "--"))
        raise click.ClickException(str(text)) from None
    if as_json:
        shown = {name: batch[name] for name in ("id", "count", "prefix", "pattern", "charset")}
        click.echo(orjson.dumps(shown))
        return
    click.echo(f"Batch {batch['id']}: {count:,} coupons.")


def _fields(text: str) -> object:
    """Return the fields of every coupon, from JSON or from a file with JSON."""
    try:
        if text.startswith("@"):
            text = Path(text[1:]).read_text(encoding="utf-8")
        orjson.loads(text)  # rejects NaN and lone surrogates
        found = json.loads(text, parse_float=Decimal)
    except ValueError as error:
        raise click.BadParameter(f"is not valid JSON: {error}", param_hint="--coupon") from None
    if not isinstance(found, dict):
        raise click.BadParameter("must be a JSON object.", param_hint="--coupon")
    return found


def author(login: str | None) -> Principal:
    """Return the author of records: the operator, on behalf of a user or without a user."""
    user_id = 0
    if login is not None:
        rows = fetch(select(User.id).where(User.username_normalized == comparable(login)))
        if not rows:
            raise click.BadParameter(f"user {login!r} does not exist.", param_hint="--login")
        user_id = rows[0].id
    return Principal(user_id, ROLES["administrator"])
