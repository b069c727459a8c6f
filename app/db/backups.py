"""Complete copies of a database in a file: that of SQLite by VACUUM, the dump of PostgreSQL."""

import os
import shutil
import sqlite3
import subprocess  # nosec B404  # for the programs of PostgreSQL
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from sqlalchemy import (
    Connection,
    Engine,
    MetaData,
    Table,
    create_engine,
    func,
    inspect,
    select,
    text,
)

from app.db import timeouts
from app.db.read_pool import begin_snapshot
from app.db.sql.databases import uses_sqlite


class BackupError(Exception):
    """A backup cannot be made or restored. The message says why."""


def row_counts(connection: Connection) -> Mapping[str, int]:
    """Return the number of rows of each table of a database. An empty database has no tables."""
    names = inspect(connection).get_table_names()
    tables = {name: Table(name, MetaData()) for name in names}
    return {
        name: connection.scalar(select(func.count()).select_from(table)) or 0
        for name, table in tables.items()
    }


def dump(engine: Engine, file: Path) -> Mapping[str, int]:
    """Write the database to a file, while it is used, and return the numbers of its rows.

    Raises:
        BackupError: the file is damaged, or ``pg_dump`` fails or is not installed.
    """
    if uses_sqlite(engine):
        with closing(sqlite3.connect(engine.url.database or "")) as source:
            source.execute("VACUUM INTO ?", [str(file)])  # without copies of erased rows
        with closing(sqlite3.connect(file)) as copy:
            copy.execute("PRAGMA user_version = 0")  # see erased_rows
        return _checked(file)
    with timeouts.unlimited(engine) as connection:
        begin_snapshot(connection)
        snapshot = connection.scalar(text("SELECT pg_export_snapshot()"))
        options = ["--format=custom", f"--file={file}", f"--snapshot={snapshot}"]
        _run("pg_dump", engine, *options)
        return row_counts(connection)


def load(engine: Engine, file: Path) -> None:
    """Fill the empty database with the content of a file. If that fails, it stays empty.

    Raises:
        BackupError: the file is damaged, or ``pg_restore`` fails or is not installed.
    """
    if uses_sqlite(engine):
        _checked(file)
        target = Path(engine.url.database or "")
        engine.dispose()
        for journal in ("-wal", "-shm"):
            target.with_name(f"{target.name}{journal}").unlink(missing_ok=True)
        file.replace(target)
        return
    _run(
        "pg_restore",
        engine,
        "--single-transaction",
        "--exit-on-error",
        "--no-owner",
        "--no-comments",
        str(file),
    )


def _checked(file: Path) -> Mapping[str, int]:
    """Return the numbers of rows of a SQLite file, unless it is damaged."""
    with closing(sqlite3.connect(file)) as copy:
        found = [row[0] for row in copy.execute("PRAGMA integrity_check")]
        if found != ["ok"]:
            raise BackupError(f"The copy of the database is damaged: {found[0]}")
    engine = create_engine(f"sqlite:///{file}")
    try:
        with engine.connect() as connection:
            return row_counts(connection)
    finally:
        engine.dispose()


def _run(program: str, engine: Engine, *options: str) -> None:
    """Run a program of PostgreSQL for the database of an engine."""
    if shutil.which(program) is None:
        raise BackupError(
            f"{program} is not installed. It belongs to the client programs of PostgreSQL."
        )
    url = engine.url.set(drivername="postgresql", password=None)
    environment = dict(os.environ)
    if engine.url.password:  # not in the arguments, which other users of the machine can read
        environment["PGPASSWORD"] = str(engine.url.password)
    done = subprocess.run(  # noqa: S603  # nosec B603  # without a shell
        [program, *options, f"--dbname={url.render_as_string()}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BackupError(f"{program} failed: {done.stderr.strip() or done.returncode}")
