"""``shop-api backup`` and ``restore-backup``: database and secret key in one file."""

import json
import os
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypedDict

import click
from flask import current_app
from flask.cli import with_appcontext

from app.config import VERSION
from app.db import backups
from app.db.backups import BackupError
from app.db.migrations import REVISION, is_newer
from app.db.read_pool import fetch
from app.db.session import db
from app.db.sql.databases import uses_sqlite

MANIFEST, DATABASE, SECRET = "manifest.json", "database", "secret_key"


class Manifest(TypedDict):
    """What a backup contains: the content of its first file."""

    version: str  # of the service
    database: str  # sqlite or postgresql
    schema: str  # the latest migration
    created_at: str
    rows: Mapping[str, int]  # by the names of the tables


@click.command("backup")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@with_appcontext
def backup(file: Path) -> None:
    """Write the database and the secret key to FILE, while the service runs.

    FILE is a tar archive that only its owner can read. It must not exist. PostgreSQL needs pg_dump
    of the server's version or a newer one.
    """
    if file.exists():
        raise click.ClickException(f"{file} exists. Choose another name, or remove it first.")
    with _folder_beside(file) as folder:
        try:
            rows = backups.dump(db.engine, folder / DATABASE)
        except BackupError as error:
            raise click.ClickException(str(error)) from None
        ((schema,),) = fetch(REVISION)
        manifest = Manifest(
            version=VERSION,
            database=db.engine.url.get_backend_name(),
            schema=schema,
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
            rows=rows,
        )
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1))
        (folder / SECRET).write_text(current_app.config["SECRET_KEY"])
        archive = folder / "archive"
        with tarfile.open(archive, "w:gz") as tar:
            for name in (MANIFEST, SECRET, DATABASE):
                tar.add(folder / name, name)
        archive.replace(file)
    click.echo(f"{file}: {_summary(rows)}, and the secret key. Keep it where nobody else reads it.")


@click.command("restore-backup")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@with_appcontext
def restore_backup(file: Path) -> None:
    """Fill the empty database of DATABASE_URL from FILE, and restore the secret key.

    Stop the service first. If the restore fails, the database stays empty. Run `shop-api doctor`
    afterwards.
    """
    with db.engine.connect() as connection:
        if backups.row_counts(connection):
            raise click.ClickException(
                "The database is not empty. Restore into an empty database, and exchange the two."
            )
    with _folder_beside(
        Path(db.engine.url.database or "") if uses_sqlite(db.engine) else file
    ) as folder:
        manifest = _extracted(file, folder)
        try:
            backups.load(db.engine, folder / DATABASE)
        except BackupError as error:
            raise click.ClickException(str(error)) from None
        with db.engine.connect() as connection:
            rows = backups.row_counts(connection)
        lost = sorted(name for name, count in manifest["rows"].items() if rows.get(name) != count)
        if lost:
            raise click.ClickException(f"These tables are not complete: {', '.join(lost)}.")
        secret = (folder / SECRET).read_text()
    click.echo(f"{_summary(rows)} were restored, as of {manifest['created_at']}.")
    _restore_secret(secret, file)


@contextmanager
def _folder_beside(file: Path) -> Iterator[Path]:
    """Yield a folder for temporary files, on the disk of a file, that only its owner can read."""
    before = os.umask(0o077)
    try:
        with TemporaryDirectory(dir=file.absolute().parent, prefix=".shop-backup-") as folder:
            yield Path(folder)
    finally:
        os.umask(before)


def _extracted(file: Path, folder: Path) -> Manifest:
    """Write the files of a backup to a folder, and return its manifest."""
    try:
        with tarfile.open(file) as tar:
            for name in (MANIFEST, SECRET, DATABASE):
                source = tar.extractfile(name)  # without the path and the mode of the archive
                if source is None:
                    raise KeyError(f"{name} is not a file")
                with source, (folder / name).open("wb") as target:
                    shutil.copyfileobj(source, target)
        manifest: Manifest = json.loads((folder / MANIFEST).read_text())
    except (tarfile.TarError, EOFError, KeyError, OSError, ValueError) as error:
        raise click.ClickException(f"{file} is not a complete backup: {error}") from None
    kind = db.engine.url.get_backend_name()
    if manifest["database"] != kind:
        raise click.ClickException(
            f"The backup is of {manifest['database']}, and DATABASE_URL is of {kind}. Restore it "
            "into a database of its kind, then use `shop-api db copy`."
        )
    if is_newer(manifest["schema"]):
        raise click.ClickException(
            f"The backup is of version {manifest['version']}. Install that version first."
        )
    return manifest


def _restore_secret(secret: str, file: Path) -> None:
    """Write the secret key to the instance folder, unless a setting has it."""
    path = Path(current_app.instance_path) / SECRET
    configured = current_app.config["SECRET_KEY"]
    if configured == secret:
        return
    if not path.exists() or path.read_text().strip() != configured:
        click.echo(
            "SECRET_KEY differs from that of the backup, so its API keys do not work. Set it to "
            f"what this prints: tar -xOf {file} {SECRET}",
            err=True,
        )
        return
    temporary = path.with_name(f"{SECRET}.restored")
    temporary.touch(mode=0o600)
    temporary.write_text(secret)
    temporary.replace(path)
    click.echo(f"The secret key is in {path}.")


def _summary(rows: Mapping[str, int]) -> str:
    return ", ".join(f"{rows.get(name, 0):,} {name}" for name in ("coupons", "users", "orders"))
