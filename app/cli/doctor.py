"""``shop-api doctor``: check an installation and suggest fixes."""

import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click
from flask import Config, current_app
from flask.cli import with_appcontext
from sqlalchemy import inspect, select, text
from sqlalchemy.exc import SQLAlchemyError

from app.auth.failed_logins import is_redis_available
from app.cli import program
from app.cli.failures import diagnose
from app.config.current import expiry_zone
from app.config.loading import unknown_settings
from app.config.secret_key import MIN_LENGTH
from app.config.settings import GUNICORN_SETTINGS
from app.db.erased_rows import may_have_copies
from app.db.migrations import REVISION, SchemaState
from app.db.read_pool import fetch, on_postgresql, read_engine
from app.db.replicas.monitor import State
from app.db.replicas.routing import current_replicas
from app.db.schema_upgrade import HOW_TO_RESTORE, differences_from
from app.db.sequences import sequences_behind
from app.db.session import schema_state
from app.db.sql.functions import clock_seconds
from app.services.api_keys import queries as api_key_queries
from app.services.campaigns.writes import wrong_numbers
from app.services.customers.traces import number_left
from app.services.maintenance import order_sums, stored_texts
from app.services.webhooks.deliveries import statistics as delivery_statistics

FREE_BYTES = 100 * 1024 * 1024
YEARS = range(2026, 2100)
CLOCK_SECONDS = 5
CHECKS, PAUSE_SECONDS = 10, 0.2


@dataclass(frozen=True, slots=True)
class Finding:
    """The state of what was checked.

    Args:
        remedy: how to fix the problem, or an empty string if there is no problem.
        is_warning: whether the finding does not count as a problem.
    """

    subject: str
    state: str
    remedy: str = ""
    is_warning: bool = False

    @property
    def label(self) -> str:
        """The first word of the output line."""
        return "warn" if self.is_warning else "FAIL" if self.remedy else "ok"


@click.command("doctor")
@with_appcontext
def doctor() -> None:
    """Check the settings, secret key, database, schema and clocks, and suggest fixes.

    The exit status is 1 if there are problems. Invalid settings stop every command, including this
    command, with a message.
    """
    problems = 0
    for finding in _check():
        problems += finding.label == "FAIL"
        click.echo(f"{finding.label:<6} {finding.subject}: {finding.state}")
        if finding.remedy:
            click.echo(f"       -> {finding.remedy}")
    if problems:
        what_to_fix = (
            "1 problem found. Fix it" if problems == 1 else f"{problems} problems found. Fix them"
        )
        raise click.ClickException(f"{what_to_fix} and run `doctor` again.")


def _check() -> Iterator[Finding]:
    yield from _settings()
    yield _secret()
    yield _folder()
    yield _clock("system", datetime.now(UTC))
    if url := current_app.config["SHOP_REDIS_URL"]:
        yield _redis(url)
    try:
        yield _database()
        schema = _schema()
        yield schema
        yield from _tables()
        if not schema.remedy:
            yield _key()
            yield _webhooks()
            yield from _erasures()
            yield from _sums()
            yield _campaigns()
            yield from _texts()
            yield from _sequences()
        yield _clock("database", _database_time())
        yield from _replicas()
    except (SQLAlchemyError, sqlite3.Error, OSError) as error:
        bug = f"{type(error).__name__}: {error}".splitlines()[0], "Report this"
        reason, remedy = diagnose(error) or bug
        yield Finding("database", reason, f"{remedy or 'Check DATABASE_URL'}.")


def _settings() -> Iterator[Finding]:
    unknown = unknown_settings({*current_app.config, *os.environ})
    for message in unknown:
        yield Finding("settings", message, "docs/configuration.md lists all settings.")
    if in_file := _settings_in_file_only(Path(current_app.instance_path)):
        state = f"instance/config.py sets {', '.join(in_file)}, which gunicorn does not read there"
        remedy = "Set them in the environment, unless you start the service with `shop-api serve`."
        yield Finding("settings of gunicorn", state, remedy, is_warning=True)
    if not unknown:
        yield Finding("settings", "all settings are known and valid")
    zone = expiry_zone()
    when = f"end in {zone.key}" if zone else "beginning in UTC"
    yield Finding("expiry dates", f"coupons stop working at the {when} of their expiry date")


def _secret() -> Finding:
    secret = current_app.config["SECRET_KEY"]
    path = Path(current_app.instance_path) / "secret_key"
    try:
        is_in_file = path.exists() and path.read_text().strip() == secret
    except OSError as error:
        remedy = "Make the service user its owner, or remove it if SECRET_KEY replaces it."
        return Finding("secret", f"{path} cannot be read: {error.strerror}", remedy)
    if not is_in_file:
        if len(secret) < MIN_LENGTH:
            remedy = f"Use {MIN_LENGTH} random characters, then create all API keys again."
            return Finding("secret", f"SECRET_KEY has {len(secret)} characters", remedy)
        return Finding("secret", "SECRET_KEY is set")
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        return Finding(
            "secret", f"{path} is accessible to other users (mode {mode:04o})", f"chmod 600 {path}"
        )
    return Finding("secret", f"{path} is accessible only to its owner")


def _folder() -> Finding:
    file = _file()
    path = Path(file).parent if file else Path(current_app.instance_path)
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return Finding("folder", f"{path} is not writable", "Make the service user its owner.")
    free = shutil.disk_usage(path).free
    state = f"{path} has {free // 1024**2} MiB free"
    return Finding("folder", state, "Free up disk space." if free < FREE_BYTES else "")


def _file() -> str | None:
    """Return the database file on SQLite, or None."""
    return None if on_postgresql() else read_engine().url.database


def _redis(url: str) -> Finding:
    if is_redis_available(url):
        return Finding("redis", "available")
    remedy = (
        "Check SHOP_REDIS_URL and that Redis is running. Until then, each worker counts separately."
    )
    return Finding("redis", "unavailable", remedy)


def _database() -> Finding:
    if not (path := _file()):
        (row,) = fetch(text("SHOW server_version"))
        return Finding("database", f"PostgreSQL {row[0]} is available")
    (row,) = fetch(text("PRAGMA journal_mode"))
    if row[0] != "wal":
        remedy = "Move the database to a local disk."
        return Finding("database", f"{path} uses journal mode {row[0]} instead of wal", remedy)
    if not os.access(path, os.W_OK):
        return Finding("database", f"{path} is not writable", "Make the service user its owner.")
    folder, file = Path(path).parent.stat().st_mode, Path(path).stat().st_mode
    if folder & stat.S_IXOTH and file & stat.S_IROTH:  # as earlier versions created it
        return Finding("database", f"{path} is readable by every user", f"chmod 600 {path}*", True)
    return Finding("database", f"{path} is available")


_REPLICA_REMEDIES = {
    State.LAGGING: "Check the replication, the network and the load of the standby.",
    State.UNKNOWN: "Check the replication and the load of the standby.",
    State.UNAVAILABLE: "Start the standby, or correct DATABASE_REPLICA_URLS.",
    State.NOT_A_STANDBY: "Remove the URL from DATABASE_REPLICA_URLS, or make it a standby.",
    State.OTHER_TIMELINE: "Let it follow the current primary (primary_conninfo).",
    State.OLD_SCHEMA: "It lacks the newest migration. Check the replication.",
}


def _replicas() -> Iterator[Finding]:
    """Check each replica several times, because a standby lags slightly."""
    replicas = current_replicas()
    monitors = [replica.monitor for replica in replicas.all] if replicas else []
    for monitor in monitors:
        for _ in range(CHECKS):
            if monitor.check().current_at is not None:
                break
            time.sleep(PAUSE_SECONDS)
    has_replica = any(monitor.state is State.OK for monitor in monitors)
    for number, monitor in enumerate(monitors, 1):
        state, lag = monitor.state, monitor.lag
        if state is State.OK:
            yield Finding(f"replica {number}", f"lags at most {lag:.1f} seconds")
        elif state is State.NOT_A_STANDBY and has_replica:
            # With automatic failover, the setting lists all servers, also the primary.
            yield Finding(f"replica {number}", "not used, because it is a primary")
        else:
            yield Finding(f"replica {number}", state, _REPLICA_REMEDIES[state])


def _schema() -> Finding:
    state = schema_state()
    if state is SchemaState.CURRENT:
        return Finding("schema", "current")
    found = "not current" if state is SchemaState.OLD else "requires a newer version of the service"
    return Finding("schema", found, program.schema_remedy(state))


def _tables() -> Iterator[Finding]:
    """Compare the tables with the latest migration, which a restore can separate from them."""
    with read_engine().connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return
        found = differences_from(connection, connection.scalar(REVISION) or "")
    for names, reason in (
        (found.missing, "missing from the schema"),
        (found.later, "of later migrations than the database has run"),
    ):
        if names:
            yield Finding("tables", f"{reason}: {', '.join(names)}", f"{HOW_TO_RESTORE}.")
    if found.unknown:
        state = f"unknown to this version: {', '.join(found.unknown)}"
        remedy = f"Ignore this if they belong to another program. Otherwise: {HOW_TO_RESTORE}."
        yield Finding("tables", state, remedy, is_warning=True)


def _key() -> Finding:
    if count := api_key_queries.count_keys():
        return Finding("keys", f"{count} API {'key' if count == 1 else 'keys'}")
    return Finding("keys", "no API keys", program.new_key())


def _webhooks() -> Finding:
    active = delivery_statistics.active_webhooks()
    if stuck := delivery_statistics.stuck():
        overdue = "delivery or event is" if stuck == 1 else "deliveries or events are"
        state = f"no worker is running, and {stuck} {overdue} overdue"
        return Finding("webhooks", state, f"Start a worker: {program.command('worker')}")
    return Finding("webhooks", f"{active} active, and nothing is overdue")


def _erasures() -> Iterator[Finding]:
    if may_have_copies():
        state = "the database file can still contain copies of erased rows"
        remedy = f"A running worker removes them: {program.command('worker')}. See docs/privacy.md"
        yield Finding("erased rows", state, remedy, is_warning=True)
    left = number_left()
    if not left["erasures"]:
        return
    of_them = ", ".join(f"{number} {name}" for name, number in left.items() if name != "erasures")
    state = f"{left['erasures']} not complete, with {of_them} left"
    remedy = f"A running worker completes them: {program.command('worker')}"
    yield Finding("erasures", state, remedy, is_warning=True)


def _sums() -> Iterator[Finding]:
    for subject, wrong, source in (
        ("order sums", order_sums.count_wrong_sums(), "orders"),
        ("customer totals", order_sums.count_wrong_totals(), "order sums"),
    ):
        if wrong:
            state = f"{wrong} {'differs' if wrong == 1 else 'differ'} from the {source}"
            yield Finding(subject, state, program.command("db rebuild-sums"))
        else:
            yield Finding(subject, f"equal to the {source}")


def _campaigns() -> Finding:
    if wrong := wrong_numbers():
        first = ", ".join(map(str, wrong[:10]))
        state = f"{len(wrong)} store other numbers than those of their uses: {first}"
        return Finding(
            "campaigns", state, "Set their limit or budget again, which counts the uses."
        )
    return Finding("campaigns", "stored numbers are equal to the uses")


def _texts() -> Iterator[Finding]:
    if codes := list(stored_texts.unstable_codes()):
        first = ", ".join(str(coupon_id) for coupon_id, _ in codes[:10])
        state = f"{len(codes)} cannot be found by their code, such as those with the ID {first}"
        yield Finding("coupons", state, program.command("db upgrade --normalize"))
    for message in stored_texts.accounts_with_one_address():
        yield Finding("accounts", message.rstrip("."), "Change the address of one account.", True)


def _sequences() -> Iterator[Finding]:
    for name, highest in sequences_behind():
        state = f"{name} would assign an ID that is in use"
        yield Finding("IDs", state, f"Run in psql: SELECT setval('{name}', {highest});")


def _database_time() -> datetime:
    return datetime.fromtimestamp(fetch(select(clock_seconds()))[0][0], UTC)


def _clock(name: str, time: datetime) -> Finding:
    state = f"{time:%Y-%m-%d %H:%M:%S} UTC"
    difference = abs((datetime.now(UTC) - time).total_seconds())
    if time.year not in YEARS or difference > CLOCK_SECONDS:
        if difference > CLOCK_SECONDS:
            state += f", {difference:.0f} seconds from the system clock"
        return Finding(f"clock of the {name}", state, "Synchronize the clocks with NTP.")
    return Finding(f"clock of the {name}", state)


def _settings_in_file_only(instance: Path) -> list[str]:
    """Return the settings of gunicorn that only ``config.py`` of the instance folder contains.

    gunicorn itself ignores them there. ``serve`` passes them on.
    """
    file = Config(instance)
    file.from_pyfile("config.py", silent=True)
    return [name for name in GUNICORN_SETTINGS if name in file and not os.environ.get(name)]
