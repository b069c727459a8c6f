"""What the shop knows of a person, as one JSON document from one snapshot (people 4)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import ColumnElement, and_, or_, select

from app.api.representations import API_KEY, EVENT
from app.auth.principals import Principal
from app.catalog import ErasedPerson, current_catalog
from app.db.records import as_printed
from app.db.session import now
from app.import_export.export_kinds import KINDS
from app.import_export.exports import Snapshot, records, whole_snapshot
from app.models import (
    ADMIN_SESSIONS,
    API_KEYS,
    COUPONS,
    EVENTS,
    ORDER_NOTES,
    ORDER_REFUNDS,
    ORDERS,
    USERS,
)
from app.models.refused_cart import REFUSED_CARTS
from app.services.events.sequence import number_events
from app.services.persons.erasure import coupons_with, other_emails
from app.services.persons.lookup import Person, find_person

Batches = Iterable[Sequence[Any]]


def person_data(actor: Principal, names: Mapping[str, object]) -> Iterator[bytes]:
    """Yield the document with the data of a person. The first piece checks the rights.

    Raises:
        ShopError: the person is unknown, or a right is missing.
    """
    number_events()
    with whole_snapshot() as snapshot:
        person = find_person(snapshot.fetch, names)
        actor.require("shop_api_user_cannot_read_person")
        head = {
            "generated_at": now(),
            "customer_ids": person.customer_ids,
            "emails": person.emails,
            "other_emails": other_emails(snapshot.fetch, person),
        }
        text = orjson.dumps(head, option=orjson.OPT_UTC_Z)
        yield b'{"person_data":' + text[:-1]
        for name, batches in _lists(snapshot, person).items():
            yield from _list(name, batches())
        yield b"}}\n"


def _list(name: str, batches: Batches) -> Iterator[bytes]:
    """Yield a list under its name."""
    prefix = b"," + orjson.dumps(name) + b":["
    for batch in batches:
        if batch:
            yield prefix + orjson.dumps(batch, option=orjson.OPT_UTC_Z)[1:-1]
            prefix = b","
    yield (prefix if prefix != b"," else b"") + b"]"


def _lists(snapshot: Snapshot, person: Person) -> dict[str, Callable[[], Batches]]:
    """Return the lists of a person, each with a function that reads them."""
    of_orders = select(ORDERS.c.id).where(person.has_order)
    conditions = {
        "customers": USERS.c.id.in_(person.customer_ids),
        "orders": person.has_order,
        "refunds": ORDER_REFUNDS.c.order_id.in_(of_orders),
        "redemptions": person.has_redemption,
    }

    def of_kind(name: str) -> Callable[[], Batches]:
        return lambda: records(snapshot, KINDS[name], [conditions[name]])

    def of_plugin(name: str) -> Callable[[], Batches]:
        return lambda: [_of_plugin(snapshot, person, name)]

    return {
        **{name: of_kind(name) for name in conditions},
        "events": lambda: _events(snapshot, person),
        "keys": lambda: [_keys(snapshot, person)],
        "sessions": lambda: [_sessions(snapshot, person)],
        "coupons": lambda: [_coupons(snapshot, person)],
        "refused_codes": lambda: [_refused_codes(snapshot, person)],
        **{name: of_plugin(name) for name in current_catalog().person_hooks},
    }


def _events(snapshot: Snapshot, person: Person) -> Iterator[list[object]]:
    """Yield the events of the account, of the orders, and of their notes and refunds."""
    orders = select(ORDERS.c.id).where(person.has_order)
    found: list[ColumnElement[bool]] = [EVENTS.c.customer_id.in_(person.customer_ids)]
    for resource, ids in (
        ("customer", select(USERS.c.id).where(USERS.c.id.in_(person.customer_ids))),
        ("order", orders),
        ("order_note", select(ORDER_NOTES.c.id).where(ORDER_NOTES.c.order_id.in_(orders))),
        ("order_refund", select(ORDER_REFUNDS.c.id).where(ORDER_REFUNDS.c.order_id.in_(orders))),
    ):
        found.append(and_(EVENTS.c.resource == resource, EVENTS.c.resource_id.in_(ids)))
    serializer = EVENT.only(dict.fromkeys(EVENT.selectable))
    columns = [as_printed(column) for column in serializer.columns]
    is_theirs = and_(EVENTS.c.id.is_not(None), or_(*found))
    statement = select(*columns, EVENTS.c.id).where(is_theirs).order_by(EVENTS.c.id)
    for rows in snapshot.chunks(statement):
        yield [serializer.row(row) for row in rows]


def _keys(snapshot: Snapshot, person: Person) -> list[object]:
    of_account = API_KEYS.c.user_id.in_(person.customer_ids)
    columns = [as_printed(column) for column in API_KEY.columns]
    rows = snapshot.fetch(select(*columns).where(of_account).order_by(API_KEYS.c.id))
    return [API_KEY.row(row) for row in rows]


def _sessions(snapshot: Snapshot, person: Person) -> list[Any]:
    names = ("created_at", "last_used_at", "expires_at", "user_agent")
    of_account = select(API_KEYS.c.id).where(API_KEYS.c.user_id.in_(person.customer_ids))
    columns = [as_printed(ADMIN_SESSIONS.c[name]) for name in names]
    found = select(*columns).where(ADMIN_SESSIONS.c.key_id.in_(of_account))
    rows = snapshot.fetch(found.order_by(ADMIN_SESSIONS.c.id))
    return [dict(zip(names, row, strict=True)) for row in rows]


def _coupons(snapshot: Snapshot, person: Person) -> list[Any]:
    ids = coupons_with(snapshot.fetch, frozenset(person.emails)).coupons
    found = select(COUPONS.c.id, COUPONS.c.code).where(COUPONS.c.id.in_(ids))
    rows = snapshot.fetch(found.order_by(COUPONS.c.id))
    return [{"id": row.id, "code": row.code} for row in rows]


def _refused_codes(snapshot: Snapshot, person: Person) -> list[Any]:
    names = ("created_at", "code", "reason", "total", "currency")
    columns = [as_printed(REFUSED_CARTS.c[name]) for name in names]
    found = select(*columns).where(person.has_refusal).order_by(REFUSED_CARTS.c.id)
    return [dict(zip(names, row, strict=True)) for row in snapshot.fetch(found)]


def _of_plugin(snapshot: Snapshot, person: Person, name: str) -> list[Any]:
    ids = snapshot.fetch(select(ORDERS.c.id).where(person.has_order).order_by(ORDERS.c.id))
    given = ErasedPerson(person.customer_id, person.emails, [row.id for row in ids])
    return list(current_catalog().person_hooks[name].data(given))
