"""What the largest tables cost: orders and events with ten million rows, and with a tenth of them.

Rows are copies of those of ``shop-api demo``, with other IDs, keys, times and customers. They are written
without triggers, and the counters of the lists are computed afterwards, as the triggers would have.
"""

import statistics
import time
from contextlib import contextmanager

import psycopg

from qa.cluster.cluster import Cluster
from qa.cluster.demonstrations.upgrade import command
from qa.cluster.postgresql import DATABASE, SUPERUSER
from tests.serving import ROOT

ROWS = 10_000_000
SAMPLES = 1000  # orders that are copied
OF_A_CUSTOMER = 10  # orders, with any number of rows: a response sums up those of its customers
ROUNDS = 21

_SETTINGS = """
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
max_wal_size = 8GB
autovacuum = off
shared_buffers = 512MB
maintenance_work_mem = 1GB
max_parallel_maintenance_workers = 0
max_parallel_workers_per_gather = 0
"""
# The columns that differ from those of the row that is copied.
_ORDERS = {
    "id": "n",
    "order_number": "n::text",
    "order_key": "'wc_order_' || md5(n::text)",
    "created_at": "timestamptz '2022-01-01' + n * interval '15 seconds'",
    "updated_at": "timestamptz '2022-01-01' + n * interval '15 seconds'",
    "total": "(n * 7919) % 50000",
    "customer_id": "CASE WHEN sample.customer_id IS NOT NULL THEN accounts.id END",
}
_EVENTS = {
    "position": "n", "id": "n", "type": "'order.updated'", "resource": "'order'",
    "resource_id": "n % 1000000 + 1", "data": "sample.data",
    "created_at": "timestamptz '2022-01-01' + n * interval '15 seconds'",
    "request_id": "md5(n::text)", "user_id": "1", "customer_id": "NULL",
}  # fmt: skip
_COUNTS = """
DELETE FROM row_counts WHERE table_name = 'orders';
INSERT INTO row_counts (table_name, partition, week, shard, count)
SELECT 'orders', status, date_trunc('week', created_at AT TIME ZONE 'UTC')::date, 0, count(*)
FROM orders GROUP BY 2, 3
"""


def run(rows=ROWS, tell=lambda line: None, logs=None):
    """Fill the tables, measure, and drop them; return the figures by their number of rows."""
    cluster = Cluster(replicas=0, settings=_SETTINGS, logs=logs)
    try:
        cluster.start()
        customers = str(rows // OF_A_CUSTOMER)
        command(ROOT, cluster, "demo", "--customers", customers, "--orders", str(SAMPLES))
        with psycopg.connect(
            cluster.primary.url(SUPERUSER, DATABASE), autocommit=True
        ) as connection:
            tables = _Tables(connection)
            found = {}
            for number in (rows // 10, rows):
                found[number] = tables.fill(number)
                tell(f"{number:,} rows: {found[number]}")
                found[number] |= _requests(cluster, number)
                tell(f"{number:,} rows: {found[number]}")
            found["partitions"] = tables.partition(rows)
            tell(f"partitions: {found['partitions']}")
        return [], found
    finally:
        cluster.close()


class _Tables:
    def __init__(self, connection):
        self._run = connection.execute
        self._run("SET session_replication_role = replica")  # no triggers, no foreign keys
        self._run(f"CREATE TABLE sample AS SELECT * FROM orders ORDER BY id LIMIT {SAMPLES}")
        self._run("ALTER TABLE sample ADD COLUMN data text")
        self._run(
            "UPDATE sample SET data = jsonb_build_object('order', to_jsonb(sample) - 'data')::text"
        )
        self._run("CREATE UNIQUE INDEX ON sample ((id - 1))")
        self._run(
            "CREATE TABLE accounts AS SELECT row_number() OVER (ORDER BY user_id) - 1 AS number, "
            "user_id AS id FROM user_roles WHERE role = 'customer'"
        )

    def fill(self, rows):
        """Add rows up to a number; return the costs of the tables."""
        figures = {}
        indexes = self._rows(
            "SELECT tablename, indexname, indexdef FROM pg_indexes "
            "WHERE tablename IN ('orders', 'events', 'orders_search') AND indexname NOT LIKE 'pk_%' AND indexname NOT LIKE '%_pkey'"
        )
        for _, name, _ in indexes:
            self._run(f'DROP INDEX "{name}"')
        columns = [
            row[0]
            for row in self._rows(
                "SELECT column_name FROM information_schema.columns WHERE table_name = 'orders'"
            )
        ]
        orders = {name: _ORDERS.get(name, f"sample.{name}") for name in columns}
        # PostgreSQL writes no log for a table that is emptied in the same transaction.
        self._run("BEGIN")
        self._run("TRUNCATE orders, orders_search, events CASCADE")
        for table, values in (("orders", orders), ("events", _EVENTS)):
            with timed(figures, f"{table}: seconds to write without indexes"):
                self._run(
                    f"INSERT INTO {table} ({', '.join(values)}) "
                    f"SELECT {', '.join(values.values())} FROM generate_series(1::bigint, {rows}) AS n "
                    f"JOIN sample ON sample.id - 1 = n % {SAMPLES} "
                    f"JOIN accounts ON accounts.number = n * 7919 % {rows // OF_A_CUSTOMER}"
                )
        self._run("INSERT INTO orders_search SELECT id, search_text FROM orders")
        self._run("COMMIT")
        for table, name, definition in indexes:
            with timed(figures, f"{table}: seconds to build {name}"):
                self._run(definition)
        for table in ("orders", "events"):
            with timed(figures, f"{table}: seconds of VACUUM ANALYZE"):
                self._run(f"VACUUM (ANALYZE) {table}")
            heap, total = self._rows(
                f"SELECT pg_table_size('{table}'), pg_total_relation_size('{table}')"
            )[0]
            figures[f"{table}: bytes per row"] = heap // rows
            figures[f"{table}: bytes of indexes per row"] = (total - heap) // rows
            figures[f"{table}: GiB"] = round(total / 2**30, 2)
        for statement in _COUNTS.split(";"):
            self._run(statement)
        self._run("SELECT setval(pg_get_serial_sequence('orders', 'id'), max(id)) FROM orders")
        self._run(
            "SELECT setval(pg_get_serial_sequence('events', 'position'), max(id)) FROM events"
        )
        self._run("DELETE FROM event_feed")
        self._run(f"INSERT INTO event_feed VALUES (1, {rows}, 0)")
        self._run("ANALYZE")
        return figures

    def partition(self, rows):
        """Compare the removal of a tenth of the events with and without partitions."""
        figures, tenth = {}, rows // 10
        self._run("CREATE TABLE parts (LIKE events) PARTITION BY RANGE (position)")
        self._run("ALTER TABLE parts ADD PRIMARY KEY (position)")
        for number in range(10):
            first = number * tenth + 1
            self._run(
                f"CREATE TABLE parts_{number} PARTITION OF parts "
                f"FOR VALUES FROM ({first}) TO ({first + tenth})"
            )
        self._run(f"INSERT INTO parts SELECT * FROM events WHERE position <= {tenth}")
        with timed(figures, "seconds to delete a tenth of the events"):
            self._run(f"DELETE FROM events WHERE position <= {tenth}")
        with timed(figures, "seconds of the VACUUM after it"):
            self._run("VACUUM events")
        with timed(figures, "seconds to drop a partition with as many"):
            self._run("DROP TABLE parts_0")
        return figures

    def _rows(self, statement):
        return self._run(statement).fetchall()


def _requests(cluster, rows):
    """Return the CPU milliseconds of PostgreSQL for requests, as medians."""
    service = cluster.serve(f"machine-{rows}", WEB_CONCURRENCY="1", WEB_THREADS="1")
    client = cluster.client(service)
    kinds = {
        "GET /orders/{id}": lambda n: client.get(f"/orders/{n * 7919 % rows + 1}"),
        "GET /orders": lambda _: client.get("/orders"),
        "GET /orders, middle page": lambda _: client.get(f"/orders?page={rows // 20}"),
        "GET /orders?filter[status]=completed": lambda _: client.get(
            "/orders?filter[status]=completed"
        ),
        "GET /orders/count": lambda _: client.get("/orders/count"),
        "GET /events?filter[after]": lambda n: client.get(
            f"/events?filter[after]={n * 7919 % rows}"
        ),
        "POST /orders": lambda _: client.post("/orders", {"order": {"status": "completed"}}),
    }
    figures = {}
    for name, send in kinds.items():
        seconds = []
        for number in range(ROUNDS + 3):
            before = cluster.primary.cpu_seconds()
            reply = send(number)
            seconds.append(cluster.primary.cpu_seconds() - before)
            assert reply.status in {200, 201}, (name, reply)
        figures[f"ms: {name}"] = round(statistics.median(seconds[3:]) * 1000, 2)
    client.close()
    service.stop()
    return figures


@contextmanager
def timed(figures, name):
    """Store the seconds that a block takes."""
    started = time.monotonic()
    yield
    figures[name] = round(figures.get(name, 0) + time.monotonic() - started, 1)
