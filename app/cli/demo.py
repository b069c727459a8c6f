"""``flask --app wsgi demo``: a believable shop, the same for the same seed, loaded in bulk."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from datetime import timedelta
from itertools import islice
from typing import cast

import click
from flask.cli import with_appcontext
from sqlalchemy import Table, func, insert, select
from sqlalchemy.orm import Session

from app import dates
from app.auth.principals import Permission
from app.cli.demo_redemptions import add_cart_redemptions, add_order_redemptions
from app.cli.demo_shop import PRODUCTS, DemoShop, Record
from app.cli.keys import require_schema, show
from app.db.read_pool import fetch
from app.db.session import now, run_in_transaction
from app.models import Coupon, DownloadPermission, Order, User, UserRole
from app.models.user import role_of
from app.services import api_keys
from app.services.customers import NEW_ROLE

CHUNK = 5000  # rows in one statement and transaction


@click.command("demo")
@click.option("--customers", default=1000, show_default=True, type=click.IntRange(min=0))
@click.option("--coupons", default=200, show_default=True, type=click.IntRange(min=0))
@click.option("--orders", default=3000, show_default=True, type=click.IntRange(min=0))
@click.option("--seed", default=1, show_default=True, help="The same seed makes the same shop.")
@click.option("--now", "at", metavar="ISO", help="The shop's present time; default: now.")
@with_appcontext
def demo(customers: int, coupons: int, orders: int, seed: int, at: str | None) -> None:
    """Fill the database with a believable shop and print a key for it."""
    require_schema()
    try:
        present = dates.moment(at) if at else now()
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--now") from None
    shop = DemoShop(random.Random(seed), present.replace(microsecond=0))  # noqa: S311  # nosec B311  # no secrets
    first = _load("customers", customers, User, shop, DemoShop.customer, then=_add_roles)
    # Its own customers only, in a known order: one seed makes one shop on every database.
    ids = select(UserRole.user_id).where(UserRole.user_id >= first).order_by(UserRole.user_id)
    shop.customer_ids = [row[0] for row in fetch(ids)]
    _load("coupons", coupons, Coupon, shop, DemoShop.coupon)
    run_in_transaction(lambda session: add_cart_redemptions(session, shop.present))
    _load("orders", orders, Order, shop, DemoShop.order, then=_add_downloads)
    key = api_keys.create_key("admin", "administrator", Permission.READ_WRITE, "created by demo")
    show(key)


def _load(
    label: str,
    length: int,
    model: type,
    shop: DemoShop,
    make: Callable[[DemoShop, int], Record],
    *,
    then: Callable[..., None] | None = None,
) -> int:
    """Insert records in chunks, each in a transaction, under a progress bar.

    Returns:
        The id from which on they are.
    """
    table = cast("Table", model.__table__)  # type: ignore[attr-defined] # every model has one
    start: int = fetch(select(func.coalesce(func.max(table.c.id), 0)))[0][0] + 1
    records = (make(shop.at(done / length), start + done) for done in range(length))
    with click.progressbar(length=length, label=f"{label:>10}", file=sys.stderr) as bar:
        while chunk := list(islice(records, CHUNK)):
            run_in_transaction(lambda session, rows=chunk: _insert(session, table, rows, then))  # type: ignore[misc] # the default binds this chunk
            bar.update(len(chunk))
    return start


def _insert(
    session: Session, table: Table, rows: list[Record], then: Callable[..., None] | None
) -> None:
    before = session.scalar(select(func.coalesce(func.max(table.c.id), 0)))
    session.execute(insert(table), rows)
    if then:
        then(session, session.scalars(select(table.c.id).where(table.c.id > before)).all(), rows)


def _add_roles(session: Session, ids: list[int], users: list[Record]) -> None:
    rows = [
        role_of(user_id, NEW_ROLE, user["created_at"])
        for user_id, user in zip(sorted(ids), users, strict=True)
    ]
    session.execute(insert(UserRole), rows)


def _add_downloads(session: Session, ids: list[int], orders: list[Record]) -> None:
    """Grant the buyers of digital products their downloads, and add the uses of coupons."""
    add_order_redemptions(session, ids, orders)
    digital = {number: name for number, name, _, _, is_digital in PRODUCTS if is_digital}
    granted = [
        {
            "order_id": order_id,
            "product_id": line["product_id"],
            "download_id": f"file-{line['product_id']}",
            "download_name": digital[line["product_id"]],
            "download_url": f"https://shop.example/?download_file={line['product_id']}"
            f"&order={order['order_key']}&key=file-{line['product_id']}",
            "file_name": digital[line["product_id"]],
            "file_url": f"https://shop.example/files/{line['product_id']}.pdf",
            # Every third is limited, every fifth has an end; some are used up or over.
            "downloads_remaining": order_id % 4 if order_id % 3 == 0 else None,
            "access_expires": order["created_at"] + timedelta(days=730)
            if order_id % 5 == 0
            else None,
        }
        for order_id, order in zip(sorted(ids), orders, strict=True)
        for line in order["line_items"]
        if line["product_id"] in digital
    ]
    if granted:
        session.execute(insert(DownloadPermission), granted)
