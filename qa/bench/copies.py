"""Make a large shop from a small one: copy each record many times, with a statement for each table.

``shop-api demo`` takes half an hour for a million of each, and hardly uses its coupons.
Here the times of the copies are spread over five years, the IDs of orders, coupons and events
ascend with their times, and sums and counts are those that the triggers would compute.
"""
# ruff: noqa: S608  # statements of our own, for test data

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, create_engine, inspect

COPIES = 100
TILL, TILL_COPIES = 77, 11
"""The customer to whom 11 copies of each order of an account belong, such as a till."""

USES = 5 * COPIES
"""Copies of each use of a coupon: those beyond the first 100 have no order."""

DELIVERIES = 200_000
_STEP = 157
"""Seconds between two copies, so that those of a record of 10,000 end where the next one begins."""

_TIMES = {
    "created_at", "updated_at", "completed_at", "paid_at", "confirmed_at", "expires_at",
    "registered_at", "trashed_at", "access_expires",
}  # fmt: skip
_KEYS = {"id", "customer_id", "user_id", "order_id", "coupon_id"}
_DERIVED = ("row_counts", "order_sums", "customer_totals", "stale_totals", "order_products")
_FILLED = (
    "users", "user_roles", "user_tags", "coupons", "orders", "redemptions", "download_permissions",
    "customer_metadata", "coupon_metadata", "order_metadata", "order_refunds", "events",
    "webhook_deliveries", "order_notes", *_DERIVED,
)  # fmt: skip
_SEARCHED = ("users", "coupons", "orders")

_COPY = "(CASE WHEN n.k = 1 THEN '' ELSE n.k || '.' END)"
_CODE = "s.code || (CASE WHEN n.k % 100 = 1 THEN '' ELSE '-' || (n.k % 100) END)"
_ACCOUNT = {
    "username": f"{_COPY} || s.username",
    "username_normalized": f"{_COPY} || s.username_normalized",
    "email": f"{_COPY} || s.email",
    "email_normalized": f"{_COPY} || s.email_normalized",
    "search_text": f"replace(s.search_text, s.email_normalized, {_COPY} || s.email_normalized)",
}
_ORDER = {
    "customer_id": f"CASE WHEN n.k <= {COPIES - TILL_COPIES} OR s.customer_id IS NULL "
    f"THEN (s.customer_id - 1) * {COPIES} + n.k ELSE {TILL} END",
    "order_number": f"((s.id - 1) * {COPIES} + n.k) || ''",
    "order_key": "s.order_key || '-' || n.k",
    "billing_email": f"{_COPY} || s.billing_email",
    "search_text": "replace(replace(s.search_text, lower(s.billing_email), "
    f"{_COPY} || lower(s.billing_email)), s.order_number, '' || ((s.id - 1) * {COPIES} + n.k))",
}
_USE = {
    "id": f"(s.id - 1) * {USES} + n.k",
    "order_id": f"CASE WHEN n.k <= {COPIES} THEN (s.order_id - 1) * {COPIES} + n.k END",
    "coupon_id": f"(s.coupon_id - 1) * {COPIES} + (n.k - 1) % {COPIES} + 1",
    "customer_id": f"(s.customer_id - 1) * {COPIES} + (n.k - 1) % {COPIES} + 1",
    "code": _CODE,
    "reference": "s.reference || '-' || n.k",
}
_PAID = "('completed', 'processing')"


class _Filling:
    """Fills a database in one transaction."""

    def __init__(self, connection: Connection, present: datetime) -> None:
        self._connection = connection
        self._end = int(present.timestamp())
        self.on_sqlite = connection.dialect.name == "sqlite"
        self._tables = inspect(connection)

    def run(self, statement: str) -> Any:
        """Execute a statement."""
        return self._connection.exec_driver_sql(statement.replace("%", self._percent))

    @property
    def _percent(self) -> str:
        return "%" if self.on_sqlite else "%%"

    def columns(self, table: str) -> list[str]:
        """Return the names of the columns of a table that are not computed from others."""
        found = self._tables.get_columns(table)
        return [column["name"] for column in found if not column.get("computed")]

    def copy(
        self, table: str, values: Mapping[str, str] = {}, copies: int = COPIES, only: str = ""
    ) -> None:
        """Replace the records of a table by copies of them, which follow each other.

        Args:
            table: the name of the table.
            values: expressions of columns, in which ``s`` is the record and ``n.k`` the number of
                the copy. IDs and times have expressions by default.
            copies: the number of copies.
            only: a condition.
        """
        key = ", ".join(self._tables.get_pk_constraint(table)["constrained_columns"])
        self.run(f"CREATE TABLE seed AS SELECT * FROM {table} ORDER BY {key}")
        self.run(f"DELETE FROM {table}")
        names = self.columns(table)
        chosen = ", ".join(values.get(name) or self._default(name, copies) for name in names)
        numbers = (
            f"(WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < {copies})"
            " SELECT k FROM n) n"
            if self.on_sqlite  # PostgreSQL reads the seed in its order because of the reference
            else f"LATERAL generate_series(CASE WHEN s IS NULL THEN 0 ELSE 1 END, {copies}) n(k)"
        )
        source = f"SELECT {chosen} FROM seed s CROSS JOIN {numbers} {only and f'WHERE {only}'}"
        self.run(f"INSERT INTO {table} ({', '.join(names)}) {source}")
        self.run("DROP TABLE seed")

    def _default(self, name: str, copies: int) -> str:
        if name in _KEYS:
            return f"(s.{name} - 1) * {copies} + n.k"
        return self._time(f"s.{name}") if name in _TIMES else f"s.{name}"

    def _time(self, column: str) -> str:
        """Return the time of a copy: three years become five."""
        seconds = (
            f"unixepoch(substr({column}, 1, 19))"
            if self.on_sqlite
            else f"extract(epoch FROM {column})::bigint"
        )
        before = f"({self._end} - {seconds}) * 5 / 3 + ({COPIES} - (n.k - 1) % {COPIES}) * {_STEP}"
        later = f"{self._end} - ({before})"
        if self.on_sqlite:
            return f"datetime({later}, 'unixepoch') || '.000000'"
        return f"to_timestamp({later})"

    def week(self, column: str) -> str:
        """Return the Monday before a time."""
        if self.on_sqlite:
            return f"date({column}, 'weekday 0', '-6 days')"
        return f"date_trunc('week', {column} AT TIME ZONE 'UTC')::date"

    def padded(self, number: str, length: int) -> str:
        """Return a number with leading zeros."""
        if self.on_sqlite:
            return f"printf('%0{length}d', {number})"
        return f"lpad(({number})::text, {length}, '0')"


def multiply(url: str, present: datetime) -> None:
    """Replace the records of a demo shop by 100 copies of each.

    Also adds an event for each order, refunds, and deliveries of the first webhook.

    Args:
        url: the database.
        present: the time at which the shop ends.
    """
    with _filled(url, present) as filling:
        _fill(filling)


def multiply_codes(url: str, present: datetime, copies: int, uses: int, tagged: int) -> None:
    """Replace a customer, a coupon and the uses of a coupon by a million of each, or so.

    Args:
        url: the database. The bench has its first account, and there is one customer with tags.
        present: the time of the records.
        copies: how many of each.
        uses: uses of the first campaign. The other campaigns get all copies.
        tagged: customers with the tags.
    """
    is_copy = "n.k = 1 OR s.id > 1"
    tags = {"tags": f"CASE WHEN n.k <= {tagged} THEN s.tags END"}
    code = {"code": "s.code || '-' || n.k"}
    own = {"coupon_id": "n.k", **code, "reference": "s.reference || '-' || n.k"}
    guest = {name: f"n.k || s.{name}" for name in ("email", "email_normalized")}
    with _filled(url, present) as filling:
        filling.copy("users", {**_ACCOUNT, **tags}, copies, is_copy)
        filling.copy("user_roles", {}, copies, "n.k = 1 OR s.user_id > 1")
        filling.copy("user_tags", {}, copies, f"n.k <= {tagged}")
        filling.copy("coupons", {**code, "author_id": "s.author_id"}, copies)
        filling.copy("redemptions", {**own, **guest}, copies, f"s.campaign_id > 1 OR n.k <= {uses}")


@contextmanager
def _filled(url: str, present: datetime) -> Iterator[_Filling]:
    """Let a database be filled without its indexes and triggers, in one transaction."""
    engine = create_engine(url)
    with engine.connect() as connection:
        filling = _Filling(connection, present)
        if filling.on_sqlite:
            for setting in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -1000000"):
                filling.run(f"PRAGMA {setting}")
        else:
            filling.run("SET session_replication_role = replica")
            filling.run("SET maintenance_work_mem = '1GB'")
            filling.run("SET timezone = 'UTC'")
        with _without_indexes(filling):
            yield filling
        connection.commit()
        if filling.on_sqlite:
            filling.run("PRAGMA journal_mode = WAL")
    engine.dispose()


@contextmanager
def _without_indexes(filling: _Filling) -> Iterator[None]:
    """Drop the triggers and indexes of the filled tables and create them again."""
    names = ", ".join(f"'{name}'" for name in (*_FILLED, *(f"{each}_search" for each in _SEARCHED)))
    if filling.on_sqlite:
        found = filling.run(
            "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND "
            f"type IN ('index', 'trigger') AND tbl_name IN ({names}) ORDER BY type"
        ).all()
    else:
        found = filling.run(
            "SELECT 'index', i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) "
            "FROM pg_index i LEFT JOIN pg_constraint c ON c.conindid = i.indexrelid "
            f"WHERE c.oid IS NULL AND i.indrelid::regclass::text IN ({names})"
        ).all()
    for kind, name, _ in found:
        filling.run(f"DROP {kind} {name}")
    yield
    for _, _, statement in found:
        filling.run(statement)


def _fill(filling: _Filling) -> None:
    for table in _DERIVED:
        filling.run(f"DELETE FROM {table}")
    # There is one administrator, with the key.
    administrators = "(SELECT user_id FROM user_roles WHERE role <> 'customer')"
    filling.copy("users", _ACCOUNT, only=f"n.k = 1 OR s.id NOT IN {administrators}")
    filling.copy("user_roles", only="n.k = 1 OR s.role = 'customer'")
    for table in ("api_keys", "webhooks"):
        filling.run(f"UPDATE {table} SET user_id = (user_id - 1) * {COPIES} + 1")
    filling.run(f"UPDATE coupon_batches SET author_id = (author_id - 1) * {COPIES} + 1")
    author = {"author_id": f"(s.author_id - 1) * {COPIES} + 1"}
    filling.copy("coupons", {"code": _CODE, **author})
    filling.copy("orders", _ORDER)
    filling.copy("order_notes", only="n.k = 1")
    filling.copy("redemptions", _USE, USES)
    filling.copy("download_permissions")
    _fill_metadata(filling)
    _fill_related(filling)
    _fill_derived(filling)


def _fill_metadata(filling: _Filling) -> None:
    for noun, owner, prefix, length in (
        ("customer", "s.customer_id", "K-", 6), ("order", "s.order_id", "A-", 7),
    ):  # fmt: skip
        number = f"'{prefix}' || {filling.padded(f'({owner} - 1) * {COPIES} + n.k', length)}"
        own = "CASE WHEN s.key = 'erp_id' THEN {} ELSE s.{} END"
        value = own.format(f"'\"' || {number} || '\"'", "value")
        found = own.format(number, "found_value")
        filling.copy(f"{noun}_metadata", {"value": value, "found_value": found})
    filling.copy("coupon_metadata")


def _fill_related(filling: _Filling) -> None:
    """Add an event for each order, refunds of every fifteenth order, and deliveries."""
    filling.run("DELETE FROM events")
    filling.run(
        "INSERT INTO events (position, id, type, resource, resource_id, created_at, data, "
        "customer_id) SELECT id, id, CASE WHEN id % 4 = 0 THEN 'order.updated' ELSE "
        "'order.created' END, 'order', id, created_at, '{\"order\":{\"id\":' || id || "
        f'\',"note":"{"x" * 200}"}}}}\', customer_id FROM orders ORDER BY id'
    )
    filling.run("DELETE FROM order_refunds")
    filling.run(
        "INSERT INTO order_refunds (id, order_id, created_at, updated_at, amount, reason, "
        "line_items, revision) SELECT id, id, updated_at, updated_at, 500, '', '[]', 0 FROM "
        "orders WHERE status IN ('refunded', 'completed', 'processing') AND id % 15 = 0"
    )
    state = "CASE WHEN n.k % 20 = 0 THEN 'failed' ELSE 'delivered' END"
    own = {"id": "n.k", "webhook_id": "s.webhook_id", "event_id": "n.k", "state": state}
    own |= {"resource": "'order'", "resource_id": "n.k"}
    filling.copy("webhook_deliveries", own, DELIVERIES)


def _fill_derived(filling: _Filling) -> None:
    """Compute what the triggers would have computed."""
    for table, partition, time in (
        ("users", "''", "created_at"), ("user_roles", "role", "registered_at"),
        ("coupons", "status", "created_at"), ("orders", "status", "created_at"),
        ("redemptions", "''", "created_at"),
    ):  # fmt: skip
        filling.run(
            f"INSERT INTO row_counts (table_name, partition, week, shard, count) SELECT '{table}', "
            f"{partition}, {filling.week(time)}, 0, count(*) FROM {table} GROUP BY 1, 2, 3"
        )
    filling.run(
        "INSERT INTO order_sums (customer_id, status, shard, orders, total) SELECT customer_id, "
        "status, 0, count(*), sum(total) FROM orders WHERE customer_id IS NOT NULL GROUP BY 1, 2"
    )
    filling.run(
        "INSERT INTO customer_totals (customer_id, orders_count, total_spent) SELECT u.id, "
        f"coalesce(sum(o.orders), 0), coalesce(sum(CASE WHEN o.status IN {_PAID} THEN o.total END)"
        ", 0) FROM users u LEFT JOIN order_sums o ON o.customer_id = u.id GROUP BY u.id"
    )
    product = (
        "value ->> 'product_id', sum(coalesce(value ->> 'quantity', 0)) FROM orders o, "
        "json_each(o.line_items)"
        if filling.on_sqlite
        else "(value ->> 'product_id')::bigint, sum((value ->> 'quantity')::bigint) FROM orders o, "
        "json_array_elements(o.line_items::json)"
    )
    filling.run(
        "INSERT INTO order_products (order_id, product_id, quantity) SELECT o.id, "
        f"{product} GROUP BY 1, 2"
    )
    if filling.on_sqlite:
        return
    for table in _SEARCHED:
        filling.run(f"DELETE FROM {table}_search")
        filling.run(f"INSERT INTO {table}_search SELECT id, search_text FROM {table} ORDER BY id")
    for table in _FILLED:
        name = "position" if table == "events" else "id"
        if name in filling.columns(table):
            sequence = f"pg_get_serial_sequence('{table}', '{name}')"
            filling.run(f"SELECT setval({sequence}, max({name})) FROM {table}")
    filling.run("DELETE FROM event_feed")
    filling.run("INSERT INTO event_feed SELECT 1, max(id), 0 FROM events")
