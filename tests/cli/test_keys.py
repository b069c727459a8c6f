"""The commands for keys: limits, update, rotate, and the prompt for a role."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import select

from app.db.read_pool import fetch
from app.models import ApiKey, User
from app.services.api_keys.writes import NewKey
from tests.api_client import Client
from tests.databases import SECRET

pytestmark = pytest.mark.one_database

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run(app):
    """Return a function: run a command of the app and return its result."""
    return lambda *arguments: app.test_cli_runner().invoke(args=["keys", *map(str, arguments)])


@pytest.fixture
def create(run):
    """Return a function: create a key with ``--json`` and return what was printed."""

    def make(*options):
        result = run("create", "--login", "erp", "--role", "administrator", "--json", *options)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return make


def client_of(app, made):
    return Client(app, NewKey(**made))


def limits_of(app, key_id):
    columns = select(ApiKey.permission, ApiKey.resources, ApiKey.expires_at, ApiKey.description)
    with app.app_context():
        row = fetch(columns.where(ApiKey.id == key_id))[0]
    return row.permission, row.resources, str(row.expires_at), row.description


def test_create_with_limits(app, create):
    made = create("--resources", "orders, coupons", "--expires", "2099-01-02T03:04")
    expires = "2099-01-02 03:04:00+00:00"
    assert limits_of(app, made["key_id"]) == ("read", "coupons,orders", expires, "")
    client = client_of(app, made)
    assert client.get("/coupons").status_code == 200
    assert client.get("/customers").status_code == 401


def test_create_without_limits(app, create):
    assert limits_of(app, create()["key_id"]) == ("read", "all", "None", "")
    never = create("--expires", "never", "--resources", "all")
    assert limits_of(app, never["key_id"]) == ("read", "all", "None", "")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--resources", "cuopons"], "Error: resources: unknown resource 'cuopons' (did"),
        (["--resources", ","], "Error: resources: must name at least one resource, or 'all'."),
        (["--expires", "2020-01-01"], "Error: expires_at: must be in the future."),
        (["--expires", "soon"], "Error: Invalid value for --expires: must be a date-time"),
    ],
)
def test_wrong_limits_are_rejected(app, run, create, options, message):
    made = create()
    before = limits_of(app, made["key_id"])
    for command in (["create", "--login", "x", "--role", "customer"], ["update", made["key_id"]]):
        result = run(*command, *options)
        assert result.exit_code in {1, 2}
        assert result.stderr.splitlines()[-1].startswith(message)
    assert limits_of(app, made["key_id"]) == before
    with app.app_context():
        assert fetch(select(User.username)) == [("erp",)]


def test_update_takes_effect_immediately(app, run, create):
    made = create("--permission", "read_write", "--description", "ERP")
    client = client_of(app, made)
    assert client.get("/customers").status_code == 200
    result = run("update", made["key_id"], "--resources", "coupons")
    assert (result.exit_code, result.stdout) == (0, f"Key {made['key_id']} was updated.\n")
    assert client.get("/customers").status_code == 401
    assert limits_of(app, made["key_id"]) == ("read_write", "coupons", "None", "ERP")
    run("update", made["key_id"], "--permission", "read", "--expires", "2099-01-01")
    run("update", made["key_id"], "--description", "", "--resources", "all")
    expires = "2099-01-01 00:00:00+00:00"
    assert limits_of(app, made["key_id"]) == ("read", "all", expires, "")
    run("update", made["key_id"], "--expires", "never")
    assert limits_of(app, made["key_id"]) == ("read", "all", "None", "")


def test_update_without_options(run, create):
    result = run("update", create()["key_id"])
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == (
        "Error: Nothing to change. Add an option, for example --permission."
    )


@pytest.mark.parametrize("command", [["update", "--description", "x"], ["rotate"], ["revoke"]])
@pytest.mark.parametrize("key_id", [4711, 2**63, 0])
def test_missing_key(run, command, key_id):
    result = run(command[0], key_id, *command[1:])
    message = f"Error: Key {key_id} does not exist. List all keys with `keys list`.\n"
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", message)


def test_rotate(app, run, create):
    made = create("--resources", "coupons")
    old = client_of(app, made)
    assert old.get("/coupons").status_code == 200
    rotated = json.loads(run("rotate", made["key_id"], "--json").stdout)
    assert list(rotated) == ["key_id", "consumer_key", "consumer_secret"]
    assert old.get("/coupons").status_code == 401
    new = client_of(app, made | rotated)
    assert new.get("/coupons").status_code == 200
    assert new.get("/orders").status_code == 401
    shown = run("rotate", made["key_id"]).stdout
    assert shown.startswith(
        f"Key {made['key_id']} of erp was rotated. The old key no longer works:"
    )
    assert "  export KEY=ck_" in shown
    assert new.get("/coupons").status_code == 401


def test_list_shows_limits_and_last_use(app, run, create):
    made = create("--resources", "coupons", "--expires", "2099-01-02")
    (line,) = run("list").stdout.splitlines()[1:]
    assert line.split()[-3:] == ["2099-01-02", "00:00", "coupons"]
    assert "never" in line
    client_of(app, made).get("/coupons")
    (line,) = run("list").stdout.splitlines()[1:]
    assert "never" not in line


def on_a_terminal(app, typed, *arguments):
    """Run a command with a pseudo-terminal as standard input; return its status and output."""
    main, terminal = pty.openpty()
    environment = {**os.environ, "DATABASE_URL": app.config["DATABASE_URL"], "SECRET_KEY": SECRET}
    os.write(main, typed.encode())
    command = [sys.executable, "-m", "app.main", "keys", *arguments]
    try:
        done = subprocess.run(
            command, check=False, stdin=terminal, capture_output=True, env=environment, cwd=ROOT, timeout=600,
            text=True,
        )  # fmt: skip
    finally:
        os.close(main)
        os.close(terminal)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_role_of_a_new_user_is_asked_for_on_a_terminal(app):
    status, out, err = on_a_terminal(
        app, "boss\nshop_manager\n", "create", "--login", "erp", "--json"
    )
    assert status == 0, err
    assert json.loads(out)["role"] == "shop_manager"
    assert "User 'erp' does not exist and will be created." in err
    # No role is the default: a wrong answer is asked for again.
    assert err.count("Role (shop_manager manages the shop, ") == 2
    status, out, err = on_a_terminal(app, "", "create", "--login", "erp", "--json")
    assert (status, json.loads(out)["role"], err) == (0, "shop_manager", "")


def test_link_prints_the_address_alone(run, create):
    create("--permission", "read")
    for options, start in (
        ([], "http://127.0.0.1:8000/admin/sign-in?token="),
        (["--url", "https://shop.example/"], "https://shop.example/admin/sign-in?token="),
        (["--url", "http://[::1]:80/shop"], "http://[::1]:80/shop/admin/sign-in?token="),
    ):
        result = run("link", "--login", "erp", *options)
        assert result.exit_code == 0, result.stderr
        assert result.stdout.startswith(start)
        assert result.stdout.count("\n") == 1


@pytest.mark.parametrize(
    "url",
    [
        "", "javascript:x", "javascript://x/%0aalert(1)", "shop.example", "//shop.example",
        "ftp://shop.example", "https://", "https://a b", "https://[x", "https://a/?x", "https://a#x",
        "https://user@a",
    ],
)  # fmt: skip
def test_link_rejects_what_is_not_an_address_of_a_service(run, create, url):
    create("--permission", "read")
    result = run("link", "--url", url)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Invalid value for --url: must be the http or https address" in result.stderr
