"""Loading of a reproducible demo shop, through the services that clients use."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import NamedTuple

from sqlalchemy import Table, func, insert, or_, select, update
from sqlalchemy.orm import Session

from app.auth.principals import ROLES, Permission, Principal
from app.db import timeouts
from app.db.read_pool import fetch
from app.db.records import Record, row_dicts
from app.db.session import now, run_in_transaction
from app.errors import ShopError
from app.models import COUPONS, DEMO_RUNS, ORDERS, USERS, DemoRun
from app.services.api_keys import writes as api_keys
from app.services.common.bulk import BulkItem, Data, WriteResult
from app.services.common.progress import NoteProgress, Progress
from app.services.coupons.queries import PUBLISHED
from app.services.coupons.refusals import CouponRefused
from app.services.coupons.writes import save_coupons
from app.services.customers import totals
from app.services.customers.writes import save_customers
from app.services.events.bulk import summarized
from app.services.maintenance.demo.examples import COUPONS_OF_EXAMPLES, add_carts, add_examples
from app.services.maintenance.demo.shop import EXAMPLE, EXAMPLE_EMAIL, DemoShop
from app.services.maintenance.import_runs import record_import
from app.services.orders.writes import save_orders

CHUNK = 500
"""Number of records that one transaction writes."""


class DemoKind(NamedTuple):
    """A type of records in the demo shop.

    Args:
        name: name of the records, and prefix of their columns in DemoRun.
        table: the table of the records.
        make: function that returns a record as ``save`` takes it, given its number.
        save: the service that creates records.
    """

    name: str
    table: Table
    make: Callable[[DemoShop, int], Data]
    save: Callable[[Principal, Sequence[BulkItem]], Sequence[WriteResult]]

    @property
    def first(self) -> str:
        """The DemoRun column with the number of the first record."""
        return f"first_{self.name.removesuffix('s')}"


PARTS = (
    DemoKind("customers", USERS, DemoShop.customer, save_customers),
    DemoKind("coupons", COUPONS, DemoShop.coupon, save_coupons),
    DemoKind("orders", ORDERS, DemoShop.order, save_orders),
)


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


@contextmanager
def _silent(*_: object) -> Iterator[NoteProgress]:
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
    actor = Principal(owner_id or 0, ROLES["administrator"])
    shop = _shop(run)
    with summarized():
        for part in PARTS:
            _load(part, run, shop, actor, progress)
            if part.table is USERS:
                shop.customer_ids = _customers_of(run)
            if part.table is COUPONS:
                carts = partial(add_carts, present=shop.present, first_id=run["first_coupon"])
                run_in_transaction(partial(carts, actor=actor))
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


def _shop(run: Record) -> DemoShop:
    """Return the shop of a run. What the run itself has added does not change it."""
    taken = or_(USERS.c.username_normalized == EXAMPLE, USERS.c.email_normalized == EXAMPLE_EMAIL)
    is_taken = fetch(select(USERS.c.id).where(taken, USERS.c.id < run["first_customer"]))
    own = COUPONS.c.code.in_(COUPONS_OF_EXAMPLES), COUPONS.c.id < run["first_coupon"]
    used = {row[0] for row in fetch(select(COUPONS.c.code).where(*own, PUBLISHED))}
    coupons: Mapping[int, Data] = {
        number: {**coupon, "code": code}
        for number, (code, coupon) in enumerate(COUPONS_OF_EXAMPLES.items(), run["first_coupon"])
        if code not in used
    }
    return DemoShop(run, coupons, has_example=not is_taken)


def _customers_of(run: Record) -> list[int]:
    """Return the IDs of the customers of a run in order."""
    own = select(USERS.c.id).where(
        USERS.c.id >= run["first_customer"],
        USERS.c.email == USERS.c.username + "@example.com",
        USERS.c.created_at <= run["present"],
    )
    return [row[0] for row in fetch(own.order_by(USERS.c.id).limit(run["customers"]))]


def _load(
    part: DemoKind, run: Record, shop: DemoShop, actor: Principal, progress: Progress
) -> None:
    """Create the missing records of a run, with one transaction per chunk."""
    length, done = run[part.name], run[f"{part.name}_loaded"]
    first = run[part.first]
    with progress(part.name, length) as note:
        note(done)
        while done < length:
            end = min(done + CHUNK, length)
            made = (part.make(shop, first + number) for number in range(done, end))
            items = [BulkItem(None, record) for record in made]
            save = partial(_save, part=part, run_id=run["id"], done=done)
            run_in_transaction(partial(save, actor=actor, items=items))
            done = end
            note(done)


def _save(
    session: Session,
    *,
    part: DemoKind,
    run_id: int,
    done: int,
    actor: Principal,
    items: Sequence[BulkItem],
) -> None:
    """Create a chunk and update the progress of the run."""
    timeouts.lift_limit(session.connection())
    loaded = DEMO_RUNS.c[f"{part.name}_loaded"]
    progress = update(DemoRun).where(DemoRun.id == run_id, loaded == done)
    progress = progress.values({loaded: done + len(items)})
    if session.connection().execute(progress).rowcount != 1:
        raise DemoError("Another process is loading this demo shop.")
    for item, result in zip(items, part.save(actor, items), strict=True):
        saved = result
        if isinstance(result, CouponRefused):  # the coupon of an earlier demo shop has a limit now
            (saved,) = part.save(actor, [BulkItem(None, {**item.data, "coupon_lines": []})])
        if isinstance(saved, ShopError):
            raise DemoError(f"The shop rejects one of the {part.name}: {saved}")


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
    is_first = ORDERS.c.order_number == str(run["first_order"])
    first = select(ORDERS.c.id).where(ORDERS.c.id >= run["first_order"], is_first)
    actor, present = Principal(owner_id, ROLES["administrator"]), run["present"]
    add_examples(session, actor, present, session.scalar(first))
    # Uses are changes of coupons, and the shop ends at its present.
    used = COUPONS.c.code.in_(COUPONS_OF_EXAMPLES), COUPONS.c.id >= run["first_coupon"]
    session.execute(update(COUPONS).where(*used).values(updated_at=present))
    return key
