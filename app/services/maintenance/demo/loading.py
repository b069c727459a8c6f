"""Loading of a reproducible demo shop in bulk."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

from flask import current_app
from sqlalchemy import Table, func, insert, or_, select, update
from sqlalchemy.orm import Session

from app.auth.principals import Permission
from app.db import timeouts
from app.db.bulk_inserts import insert_records
from app.db.read_pool import fetch
from app.db.records import Record, row_dicts
from app.db.session import Model, now, run_in_transaction
from app.models import (
    COUPON_METADATA,
    CUSTOMER_METADATA,
    DEMO_RUNS,
    ORDER_METADATA,
    Coupon,
    DemoRun,
    DownloadPermission,
    Order,
    User,
    UserRole,
)
from app.models.user import role_of
from app.services.api_keys import writes as api_keys
from app.services.common.metadata_rules import found_text, json_text
from app.services.customers import totals
from app.services.customers.columns import NEW_ROLE
from app.services.maintenance.demo.examples import (
    add_cart_redemptions,
    add_examples,
    add_order_redemptions,
    limited_coupons,
)
from app.services.maintenance.demo.names import PRODUCTS
from app.services.maintenance.demo.shop import (
    ADDRESSES,
    EXAMPLE,
    EXAMPLE_EMAIL,
    MAX_ITEMS,
    DemoShop,
    with_addresses,
)
from app.services.maintenance.import_runs import record_import
from app.services.orders.locks import new_ids

CHUNK = 5000  # rows per statement and transaction


class DemoKind(NamedTuple):
    """A type of records in the demo shop.

    Args:
        name: name of the records, and prefix of their columns in DemoRun.
        model: the model of the records.
        make: function that returns a record, given its number.
        then: function that adds related records after the insert.
    """

    name: str
    model: type[Model]
    make: Callable[[DemoShop, int], Record]
    then: Callable[[Session, list[int], list[Record]], None] | None = None

    @property
    def first(self) -> str:
        """The DemoRun column with the number of the first record."""
        return f"first_{self.name.removesuffix('s')}"

    @property
    def table(self) -> Table:
        """The table of the records."""
        return self.model.__table__


class DemoError(Exception):
    """The demo shop cannot be loaded."""


class UnfinishedDemoError(DemoError):
    """Another run was interrupted.

    Attributes:
        run: the run by column name.
    """

    def __init__(self, run: Record) -> None:
        super().__init__("A demo run was interrupted.")
        self.run = run


Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Function that takes the name and the number of records, and returns a function that is told how
many more are loaded."""


@contextmanager
def _silent(*_: object) -> Iterator[Callable[[int], None]]:
    yield lambda _: None


def load_demo_shop(
    lengths: dict[str, int],
    seed: int,
    present: datetime | None = None,
    *,
    add: bool = False,
    owner_id: int | None = None,
    progress: Progress = _silent,
    note_resumed: Callable[[], None] = lambda: None,
) -> api_keys.NewKey | None:
    """Load a demo shop, or continue an interrupted run with the same arguments.

    Args:
        lengths: number of customers, coupons and orders.
        seed: the random seed.
        present: current time of the shop; None for now.
        add: whether to add to an existing demo shop.
        owner_id: the user of the example records; None creates an administrator with a key.
        note_resumed: called if the run continues an interrupted one.

    Returns:
        The key of the new administrator, or None.

    Raises:
        DemoError: there is a demo shop already, or another process loads it.
        UnfinishedDemoError: another run was interrupted.
    """
    run = _unfinished(lengths, seed, present, add=add)
    if run is None:
        if not add and fetch(select(DemoRun.id).limit(1)):
            raise DemoError(
                "The database already contains a demo shop. Use --add to add another one."
            )
        wanted = lengths | {"seed": seed, "present": present or now()}
        run = run_in_transaction(lambda session: _begin(session, wanted))
    elif any(run[f"{part.name}_loaded"] for part in PARTS):
        note_resumed()
    shop = DemoShop(run["seed"], run["present"], current_app.config["SHOP_CURRENCY"])
    taken = or_(User.username_normalized == EXAMPLE, User.email_normalized == EXAMPLE_EMAIL)
    if not fetch(select(User.id).where(taken)):
        shop.example_number = run[CUSTOMERS.first]
    _load(CUSTOMERS, run, shop, progress)
    shop.customer_ids = _customers_of(run)
    shop.limited_coupons = limited_coupons(run[COUPONS.first])
    _load(COUPONS, run, shop, progress)
    run_in_transaction(lambda session: add_cart_redemptions(session, run["present"]))
    _load(ORDERS, run, shop, progress)
    totals.refresh()
    return run_in_transaction(lambda session: _finish(session, run, owner_id))


def _unfinished(
    lengths: dict[str, int], seed: int, present: datetime | None, *, add: bool
) -> Record | None:
    """Return the interrupted run with these options, or None."""
    runs = select(DEMO_RUNS).where(DemoRun.finished_at.is_(None)).order_by(DemoRun.id)
    unfinished: list[Record] = row_dicts(fetch(runs))
    for run in unfinished:
        if lengths | {"seed": seed, "present": present or run["present"]} == {
            name: run[name] for name in (*lengths, "seed", "present")
        }:
            return run
    if unfinished and not add:
        raise UnfinishedDemoError(unfinished[-1])
    return None


def _begin(session: Session, wanted: Record) -> Record:
    """Record a new run and return it."""
    run = wanted | {"finished_at": None}
    for part in PARTS:
        run[f"{part.name}_loaded"] = 0
        last = session.scalar(select(func.coalesce(func.max(part.table.c.id), 0)))
        run[part.first] = (last or 0) + 1
    run["id"] = session.scalar(insert(DemoRun).values(run).returning(DemoRun.id))
    return run


def _customers_of(run: Record) -> list[int]:
    """Return the IDs of the customers of a run in order."""
    own = select(User.id).where(
        User.id >= run[CUSTOMERS.first],
        User.email == User.username + "@example.com",
        User.created_at <= run["present"],
    )
    return [row[0] for row in fetch(own.order_by(User.id).limit(run["customers"]))]


def _load(part: DemoKind, run: Record, shop: DemoShop, progress: Progress) -> None:
    """Insert the missing records of a run, with one transaction per chunk."""
    length, done = run[part.name], run[f"{part.name}_loaded"]
    with progress(part.name, length) as note:
        note(done)
        while done < length:
            end = min(done + CHUNK, length)
            make = partial(_rows, part, shop, run, range(done, end))
            run_in_transaction(partial(_insert, part=part, run_id=run["id"], make=make, done=done))
            note(end - done)
            done = end


def _rows(
    part: DemoKind, shop: DemoShop, run: Record, numbers: range, session: Session
) -> list[Record]:
    """Return the records of a chunk. They are the same when an interrupted run is resumed."""
    shop.begin(f"{part.name} {numbers.start}")
    if part is ORDERS:
        _, ids = new_ids(session, 0, len(numbers) * MAX_ITEMS)
        shop.item_ids = iter(ids)
    first, length = run[part.first], run[part.name]
    rows = [part.make(shop.at(number / length), first + number) for number in numbers]
    if part is not ORDERS:
        return rows
    columns = (CUSTOMERS.table.c[name] for name in ADDRESSES)
    customers = {order["customer_id"] for order in rows} - {None}
    found = session.execute(select(User.id, *columns).where(User.id.in_(customers)))
    accounts = {user_id: dict(zip(ADDRESSES, row, strict=True)) for user_id, *row in found}
    return [with_addresses(order, accounts) for order in rows]


def _insert(
    session: Session,
    *,
    part: DemoKind,
    run_id: int,
    make: Callable[[Session], list[Record]],
    done: int,
) -> None:
    """Insert a chunk and update the progress of the run."""
    timeouts.lift_limit(session.connection())
    rows = make(session)
    loaded = DEMO_RUNS.c[f"{part.name}_loaded"]
    progress = update(DemoRun).where(DemoRun.id == run_id, loaded == done)
    progress = progress.values({loaded: done + len(rows)})
    if session.connection().execute(progress).rowcount != 1:
        raise DemoError("Another process is loading this demo shop.")
    table = part.table
    before = session.scalar(select(func.coalesce(func.max(table.c.id), 0)))
    insert_records(session, table, rows)
    if part.then:
        ids = session.scalars(select(table.c.id).where(table.c.id > before)).all()
        part.then(session, sorted(ids), rows)


def _finish(session: Session, run: Record, owner_id: int | None) -> api_keys.NewKey | None:
    """Add the last records of a run with one event, mark it as finished, and return an API key."""
    session.execute(update(DemoRun).where(DemoRun.id == run["id"]).values(finished_at=now()))
    numbers = {part.name: run[part.name] for part in PARTS}
    record_import(session, "demo", numbers, created=sum(numbers.values()))
    key = None
    if owner_id is None:
        key = api_keys.create_key(
            "admin", "administrator", Permission.READ_WRITE, "created by demo", reports=False
        )
        owner_id = key.user_id
    first = select(Order.id).where(
        Order.id >= run[ORDERS.first], Order.order_number == str(run[ORDERS.first])
    )
    add_examples(session, run["present"], owner_id, session.scalar(first))
    return key


def _add_roles(session: Session, ids: list[int], users: list[Record]) -> None:
    rows = [
        role_of(user_id, NEW_ROLE, user["created_at"])
        for user_id, user in zip(ids, users, strict=True)
    ]
    session.execute(insert(UserRole), rows)
    insert_records(session, CUSTOMER_METADATA, [*map(_stored, metadata_of_customers(ids))])


def _add_coupon_metadata(session: Session, ids: list[int], coupons: list[Record]) -> None:
    insert_records(session, COUPON_METADATA, [*map(_stored, metadata_of_coupons(ids, coupons))])


def _stored(entry: Record) -> Record:
    """Return an entry of metadata as its table stores it."""
    text = json_text(entry["value"])
    return entry | {"value": text, "found_value": found_text(text)}


def _add_downloads(session: Session, ids: list[int], orders: list[Record]) -> None:
    """Add metadata, download permissions for digital products and the uses of coupons."""
    add_order_redemptions(session, ids, orders)
    insert_records(session, ORDER_METADATA, [*map(_stored, metadata_of_orders(ids, orders))])
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
            # Every third is limited and every fifth expires. Some are used up or expired.
            "downloads_remaining": order_id % 4 if order_id % 3 == 0 else None,
            "access_expires": order["created_at"] + timedelta(days=730)
            if order_id % 5 == 0
            else None,
        }
        for order_id, order in zip(ids, orders, strict=True)
        for line in order["line_items"]
        if line["product_id"] in digital
    ]
    if granted:
        session.execute(insert(DownloadPermission), granted)


CUSTOMERS = DemoKind("customers", User, DemoShop.customer, _add_roles)
COUPONS = DemoKind("coupons", Coupon, DemoShop.coupon, _add_coupon_metadata)
ORDERS = DemoKind("orders", Order, DemoShop.order, _add_downloads)
PARTS = (CUSTOMERS, COUPONS, ORDERS)


_LEVELS = ("bronze", "silver", "gold")


def metadata_of_customers(ids: Sequence[int]) -> Iterator[Record]:
    """Yield three entries for each customer."""
    for customer_id in ids:
        loyalty = {"level": _LEVELS[customer_id % 3], "points": customer_id * 7 % 500}
        for key, value in (
            ("erp_id", f"K-{customer_id:06}"),
            ("newsletter", customer_id % 4 != 0),
            ("loyalty", loyalty),
        ):
            yield {"customer_id": customer_id, "key": key, "value": value}


def metadata_of_coupons(ids: Sequence[int], coupons: Sequence[Record]) -> Iterator[Record]:
    """Yield an entry for each coupon."""
    for coupon_id, coupon in zip(ids, coupons, strict=True):
        campaign = coupon["description"].removesuffix(" campaign").lower()
        yield {"coupon_id": coupon_id, "key": "campaign", "value": campaign}


def metadata_of_orders(ids: Sequence[int], orders: Sequence[Record]) -> Iterator[Record]:
    """Yield an entry for each order, and a second one for orders that were sent."""
    for order_id, order in zip(ids, orders, strict=True):
        yield {"order_id": order_id, "key": "erp_id", "value": f"A-{order_id:07}"}
        if order["status"] == "completed":
            tracking = {"carrier": "dhl", "number": f"{order_id * 7919:012}"}
            yield {"order_id": order_id, "key": "tracking", "value": tracking}
