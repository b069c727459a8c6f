"""Commands report common problems in one line with a remedy, on both databases."""

import os
import resource
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import uuid
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import psycopg
import pytest
from sqlalchemy import make_url

from app import create_app
from app.cli.failures import explain
from app.config.loading import SettingsError
from tests.databases import SECRET, close
from tests.schemas import create_tables
from tests.serving import PATIENCE

pytestmark = pytest.mark.both_databases

ROOT = Path(__file__).parents[2]
UPGRADE = ".venv/bin/shop-api db upgrade"
START = "Start the database server, or correct DATABASE_URL."

WITH_DATABASE = [
    ["db", "upgrade"],
    ["db", "current"],
    ["serve"],
    ["keys", "create", "--login", "erp", "--role", "customer", "--json"],
    ["keys", "list"],
    ["keys", "revoke", "1"],
    ["demo", "--customers", "1", "--coupons", "0", "--orders", "0"],
]
WITH_SCHEMA = WITH_DATABASE[3:]


@pytest.fixture
def told(tmp_path):
    """Return a function: run commands that fail on an app and return the line that all print."""
    apps = []

    def run(*commands, **settings):
        given = {"PORT": free_port(), "SECRET_KEY": SECRET, "INSTANCE_PATH": str(tmp_path)}
        apps.append(create_app(given | settings))
        lines = set()
        for command in commands:
            result = apps[-1].test_cli_runner().invoke(args=command)
            assert (result.exit_code, result.stdout) == (1, ""), command
            assert result.exception is None or isinstance(result.exception, SystemExit), command
            lines |= set(result.stderr.splitlines())
        (line,) = lines
        return line.removeprefix("Error: ")

    yield run
    for app in apps:
        close(app)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def in_a_shell(*command, url, **options):
    """Run a command as an operator does."""
    return subprocess.run(
        [sys.executable, "-m", "app.main", *command],
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": url, "SECRET_KEY": SECRET, "PORT": str(free_port())},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        **options,
    )


# --- the database is unavailable ---


def test_server_that_does_not_run(told):
    line = told(*WITH_DATABASE, DATABASE_URL="postgresql://shop:geheim@127.0.0.1:1/shop")
    assert line == (
        "The database postgresql://shop:***@127.0.0.1:1/shop cannot be used: connection failed: "
        'connection to server at "127.0.0.1", port 1 failed: Connection refused. '
        f"{START}"
    )


def test_password_in_the_query_is_not_shown(told):
    url = "postgresql://127.0.0.1:1/shop?user=shop&password=geheim"
    line = told(["keys", "list"], DATABASE_URL=url)
    assert "geheim" not in line
    assert line.endswith(START)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("mysql://shop:geheim@123@127.0.0.1:1/shop", "Percent-encode special characters of the"),
        ("mysql://shop:g@geheim/w@127.0.0.1:1/shop", "Percent-encode special characters of the"),
        ("mysql://shop:geheim/w", "Not a valid database URL. Example: mysql+pymysql://USER:"),
    ],
)
def test_url_of_a_source_that_cannot_be_parsed(told, tmp_path, source, message):
    url = f"sqlite:///{tmp_path}/shop.db"
    create_tables(url)
    line = told(["import", "woocommerce", source], DATABASE_URL=url)
    assert line.startswith(f"SOURCE: {message}")
    assert "geheim" not in line


def test_file_that_cannot_be_opened(told):
    assert told(*WITH_DATABASE, DATABASE_URL="sqlite:////nowhere/shop.db") == (
        "The database sqlite:////nowhere/shop.db cannot be used: unable to open database file. "
        "Create its folder, make the folder writable, or correct DATABASE_URL."
    )


def test_file_that_is_not_a_database(told, tmp_path):
    (tmp_path / "shop.db").write_text("not a database" * 100)
    url = f"sqlite:///{tmp_path}/shop.db"
    assert told(*WITH_DATABASE, DATABASE_URL=url) == (
        f"The database {url} cannot be used: file is not a database. "
        "Correct DATABASE_URL, or restore a backup."
    )


def test_host_that_does_not_exist(told):
    line = told(["keys", "list"], DATABASE_URL="postgresql://shop@no.such.host.invalid/shop")
    assert line.endswith("Correct the host in DATABASE_URL.")


def test_database_that_does_not_exist(told, postgresql_server):
    url = make_url(postgresql_server).set(drivername="postgresql", database="missing")
    line = told(*WITH_DATABASE, DATABASE_URL=url.render_as_string(hide_password=False))
    assert line.endswith(
        'database "missing" does not exist. Create it (createdb missing), or correct DATABASE_URL.'
    )


def test_user_that_does_not_exist(told, postgresql_server):
    url = make_url(postgresql_server).set(drivername="postgresql", username="missing")
    line = told(["db", "upgrade"], DATABASE_URL=url.render_as_string(hide_password=False))
    assert line.endswith("Create the user (createuser --pwprompt), or correct DATABASE_URL.")


@contextmanager
def refusing_server(message):
    """A server that refuses every client as PostgreSQL does."""

    def serve():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                while True:
                    (length,) = struct.unpack("!I", client.recv(4, socket.MSG_WAITALL))
                    (code,) = struct.unpack("!I", client.recv(length - 4, socket.MSG_WAITALL)[:4])
                    if code == 3 << 16:  # the protocol; what comes before it asks for encryption
                        break
                    client.sendall(b"N")
                fields = b"SFATAL\0VFATAL\0C28P01\0M" + message.encode() + b"\0\0"
                client.sendall(b"E" + struct.pack("!I", len(fields) + 4) + fields)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=serve)
        thread.start()
        yield f"postgresql://shop:geheim@127.0.0.1:{listener.getsockname()[1]}/shop"
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        (
            'password authentication failed for user "shop"',
            "Correct the user and the password in DATABASE_URL.",
        ),
        (
            'no pg_hba.conf entry for host "10.0.0.1", user "shop"',
            "Allow this user and address in pg_hba.conf.",
        ),
        (
            "sorry, too many clients already",
            "Lower WEB_CONCURRENCY or WEB_THREADS, or raise max_connections.",
        ),
        ("the database system is starting up", START),
    ],
)
def test_server_that_refuses_connections(told, message, remedy):
    with refusing_server(message) as url:
        line = told(["db", "upgrade"], ["serve"], ["keys", "list"], DATABASE_URL=url)
        assert line.endswith(f"FATAL:  {message}. {remedy}")
        assert "geheim" not in line


def test_user_who_may_not_create_tables(told, postgresql_server):
    server = make_url(postgresql_server).set(drivername="postgresql")
    name = f"shop_test_{uuid.uuid4().hex[:12]}"
    weak = server.set(username=name, password="geheim", database=name).render_as_string(
        hide_password=False
    )
    with psycopg.connect(server.render_as_string(hide_password=False), autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'geheim'")
        admin.execute(f"CREATE DATABASE {name}")
        try:
            owner = server.set(database=name).render_as_string(hide_password=False)
            with psycopg.connect(owner, autocommit=True) as connection:
                connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
            line = told(["db", "upgrade"], DATABASE_URL=weak)
        finally:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
            admin.execute(f"DROP ROLE {name}")
    assert "permission denied for schema public" in line
    assert line.endswith("or make it the database owner.")


def test_schema_that_is_missing(told, fresh_database_url):
    line = told(*WITH_SCHEMA, DATABASE_URL=fresh_database_url)
    assert line == f"The database schema is not current. Run: {UPGRADE}"


@pytest.mark.slow
@pytest.mark.parametrize("command", [["db", "upgrade"], ["serve"], ["keys", "list"]], ids=" ".join)
@pytest.mark.parametrize(
    "url", ["postgresql://shop@127.0.0.1:1/shop", "sqlite:////nowhere/shop.db"]
)
def test_command_of_an_operator_ends_in_one_line(command, url):
    done = in_a_shell(*command, url=url)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"Error: The database {url} cannot be used: ")


@pytest.mark.slow
def test_disk_that_is_full(tmp_path):
    def no_more_than_64_kib():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))

    done = in_a_shell(
        "db", "upgrade", url=f"sqlite:///{tmp_path}/shop.db", preexec_fn=no_more_than_64_kib
    )
    assert done.returncode == 1
    line = done.stderr.splitlines()[-1]
    assert line.startswith(f"Error: The database sqlite:///{tmp_path}/shop.db cannot be used: ")
    assert "Traceback" not in done.stderr


# --- what is not the database ---


@pytest.mark.slow
def test_file_to_write_that_cannot_be_written(told):
    assert told(["openapi", "write", "/dev/full"]) == (
        "No space left on device. Free up disk space."
    )


@pytest.mark.parametrize(
    "command",
    [
        ["coupons", "generate", "--count", "1", "--prefix", "a\udcff"],
        ["export", "coupons", "-", "--filter", "q=a\udcff"],
        ["keys", "create", "--login", "x", "--role", "customer", "--description", "a\udcff"],
    ],
)
def test_argument_that_is_not_utf8(app, command):
    result = app.test_cli_runner().invoke(args=command)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == r"Error: 'a\udcff' contains bytes that are not valid UTF-8." + "\n"


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("nohost.invalid", "The host 'nohost.invalid' cannot be resolved. Set HOST to an address"),
        ("192.0.2.1", "192.0.2.1 is not an address of this machine. Correct HOST: HOST=127.0.0.1"),
    ],
)
def test_host_of_the_service_that_does_not_exist(told, host, message):
    assert told(["serve"], HOST=host).startswith(message)


def test_port_that_is_taken(told):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert told(["serve"], PORT=port) == (
            f"127.0.0.1:{port} cannot be used: Address already in use. "
            "Choose another port: PORT=8001 make run"
        )


def test_bug_keeps_its_traceback(tmp_path):
    app = create_app({"SECRET_KEY": SECRET, "INSTANCE_PATH": str(tmp_path)})

    @app.cli.command("broken")
    def broken():
        raise KeyError("colour")

    result = app.test_cli_runner().invoke(args=["broken"])
    assert isinstance(result.exception, KeyError)


def sqlite_error(name):
    error = sqlite3.OperationalError("some reason")
    error.sqlite_errorname = name
    return error


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("error", "line"),
    [
        (sqlite_error("SQLITE_FULL"), "{0} some reason. Free up disk space."),
        (
            sqlite_error("SQLITE_READONLY_DIRECTORY"),
            "{0} some reason. Make the service user its owner, also of its folder.",
        ),
        (
            sqlite_error("SQLITE_BUSY"),
            "{0} some reason. Stop the other program that uses the database.",
        ),
        (sqlite_error("SQLITE_MISUSE"), None),
        (
            psycopg.errors.DiskFull("some reason\nCONTEXT: x"),
            "{0} some reason. Free up disk space on the database server.",
        ),
        (psycopg.errors.UndefinedFunction("some reason"), None),
        (
            PermissionError(13, "Permission denied", "/srv/instance/shop.db"),
            (
                "/srv/instance/shop.db: Permission denied. Make the service user its owner, "
                "or run the command as its owner."
            ),
        ),
        (
            OSError(28, "No space left on device", "/srv/x"),
            "/srv/x: No space left on device. Free up disk space.",
        ),
        (BrokenPipeError(32, "Broken pipe"), None),
    ],
    ids=repr,
)
def test_explanation_of_an_error(tmp_path, error, line):
    url = "postgresql://shop:geheim@db/shop"
    settings = {"SECRET_KEY": SECRET, "INSTANCE_PATH": str(tmp_path), "DATABASE_URL": url}
    with create_app(settings).app_context():
        found = explain(error)
    whole = "The database postgresql://shop:***@db/shop cannot be used:"
    assert found == (line and line.format(whole))


def test_start_with_a_configuration_file_that_is_broken(tmp_path):
    (tmp_path / "config.py").write_text("SHOP_PAGE_SIZE = nonsense\n")
    with pytest.raises(SettingsError) as raised:
        create_app({"INSTANCE_PATH": str(tmp_path)})
    reason = "NameError: name 'nonsense' is not defined"
    assert str(raised.value) == f"{tmp_path}/config.py: {reason}"
