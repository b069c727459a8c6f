"""Options of the database engines, and their events.

With ``DATABASE_POOLER=transaction``, consecutive transactions of a connection can run on different
server connections, so nothing may depend on the state of a session: statements are not prepared,
no startup options are sent, and the statement timeout is set within each transaction.
"""

import warnings
from collections.abc import Mapping
from functools import partial

import orjson
from flask import Config
from psycopg import ProgrammingError
from psycopg.conninfo import make_conninfo
from sqlalchemy import Engine, event, make_url
from sqlalchemy.exc import SAWarning

from app.config.loading import SettingsError
from app.db import deadline, patient_pool, sqlite, timeouts
from app.db.read_pool import READ, STREAM

Options = dict[str, object]

_CONNECT = {
    "connect_timeout": 5,
    # Detect a lost server by seconds without traffic and by milliseconds without an
    # acknowledgement. The defaults of the operating system are hours and minutes.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}


def is_sqlite(config: Config) -> bool:
    """Return whether the database of a configuration is SQLite."""
    return make_url(config["DATABASE_URL"]).get_backend_name() == "sqlite"


def has_pooler(config: Config) -> bool:
    """Return whether a pooler in transaction mode is in front of the database."""
    return bool(config["DATABASE_POOLER"])


def check_settings(config: Config) -> None:
    """Raise SettingsError if a setting of the database requires another database.

    The same applies to a URL with an option that the driver does not know.
    """
    _check_options("DATABASE_URL", config["DATABASE_URL"])
    for url in config["DATABASE_REPLICA_URLS"]:
        _check_options("DATABASE_REPLICA_URLS", url)
    for name in ("DATABASE_POOLER", "DATABASE_REPLICA_URLS"):
        if config[name] and is_sqlite(config):
            raise SettingsError(f"{name}: Requires a PostgreSQL database in DATABASE_URL.")


def _check_options(name: str, url: str) -> None:
    """Raise SettingsError if the driver rejects an option of a URL, or would ignore it."""
    parsed = make_url(url)
    try:
        with warnings.catch_warnings(action="error", category=SAWarning):
            _, options = parsed.get_dialect()().create_connect_args(parsed)
        if parsed.get_backend_name() == "postgresql":
            make_conninfo(**options)
    except SAWarning as warning:
        raise SettingsError(f"{name}: {str(warning).partition(' and are being ')[0]}.") from None
    except (ValueError, ProgrammingError) as error:
        raise SettingsError(f"{name}: {str(error).strip()}.") from None


def write_options(config: Config) -> Options:
    """Return the options of the write engine."""
    url, idle_seconds = config["DATABASE_URL"], timeouts.idle_seconds(config)
    return _common(config, url, idle_seconds) | {"max_overflow": config["WEB_THREADS"]}


def read_options(config: Config, url: str) -> Options:
    """Return the options of an engine for reads, which has no transactions of its own."""
    options = _common(config, url)
    return options | {
        "max_overflow": config["WEB_THREADS"],
        "isolation_level": "AUTOCOMMIT",
        "skip_autocommit_rollback": True,
    }


def stream_options(config: Config, url: str) -> Options:
    """Return the options of an engine for streams.

    The client determines how long a stream takes, so do not wait for a connection. All statements
    of a connection see one state of the database: see also ``read_pool.stream_connection``.
    """
    isolation = {} if is_sqlite(config) else {"isolation_level": "REPEATABLE READ"}
    return _common(config, url) | isolation | {"max_overflow": 0, "pool_timeout": 0}


def _common(config: Config, url: str, idle_seconds: float = 0) -> Options:
    seconds = config["SHOP_STATEMENT_TIMEOUT_SECONDS"]
    connect: Options
    if is_sqlite(config):
        # Seconds that a write transaction waits for the lock.
        connect = {"timeout": sqlite.WAIT_SECONDS}
        if seconds:
            connect["factory"] = partial(sqlite.LimitedConnection, seconds=seconds)
    elif has_pooler(config):
        # PgBouncer rejects `options`, and before 1.21 it fails on prepared statements.
        connect = _CONNECT | {"prepare_threshold": None}
    else:
        limits = timeouts.postgresql_options(seconds, idle_seconds)
        # PostgreSQL would compile the statement of a long report, which takes longer than its run.
        connect = _CONNECT | {"options": f"-c timezone=UTC -c jit=off {limits}"}
    pool: Options = {} if is_sqlite(config) else {"poolclass": patient_pool.PatientPool}
    limit_each = {timeouts.LOCAL_LIMIT: timeouts.local_limit(seconds)}
    return {
        "url": url,
        "execution_options": limit_each if has_pooler(config) else {},
        "json_serializer": lambda value: orjson.dumps(value).decode(),
        "json_deserializer": orjson.loads,
        "hide_parameters": True,  # no parameter values in errors and logs
        "connect_args": connect,
        "pool_size": config["WEB_THREADS"],
        "pool_use_lifo": True,
    } | pool


def binds(config: Config) -> dict[str | None, Options]:
    """Return the options of the read-only engines by name."""
    url = config["DATABASE_URL"]
    found: dict[str | None, Options]
    found = {READ: read_options(config, url), STREAM: stream_options(config, url)}
    for number, replica in enumerate(config["DATABASE_REPLICA_URLS"], 1):
        found[replica_name(number, READ)] = read_options(config, replica)
        found[replica_name(number, STREAM)] = stream_options(config, replica)
    return found


def replica_name(number: int, kind: str) -> str:
    """Return the name of an engine of a replica, for READ or STREAM."""
    return f"replica-{number}-{kind}"


def prepare(engines: Mapping[str | None, Engine], config: Config) -> None:
    """Register the connection and transaction events of the engines of an app."""
    on_sqlite = is_sqlite(config)
    for name, engine in engines.items():
        if on_sqlite:
            sqlite.prepare(engine)
        elif has_pooler(config) and (name is None or name.endswith(STREAM)):
            idle_seconds = 0 if name else timeouts.idle_seconds(config)
            seconds = config["SHOP_STATEMENT_TIMEOUT_SECONDS"]
            timeouts.limit_transactions(engine, seconds, idle_seconds)
        if not on_sqlite:
            event.listen(engine, "do_connect", deadline.connect)
            event.listen(engine, "checkout", patient_pool.require_open)
    if on_sqlite:
        sqlite.begin_immediately(engines[None])
        sqlite.map_file(engines[READ])
