"""The commands for operators (operations.md, Commands)."""

import http.client
import json
import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import make_url

from app.auth.api_keys import MAX_AGE_SECONDS
from app.catalog import current_catalog
from app.cli.keys import RESOURCES
from app.db.read_pool import fetch
from app.db.session import db
from app.models import ApiKey, User
from app.services.api_keys.writes import NewKey
from tests.api_client import Client
from tests.databases import SECRET
from tests.serving import PATIENCE, reserved_port

ROOT = Path(__file__).parents[2]
KEYS = [
    "key_id",
    "user_id",
    "login",
    "role",
    "permission",
    "consumer_key",
    "consumer_secret",
]


@pytest.fixture
def run(app):
    """Return a function: run a command of the app and return its result."""
    return lambda *arguments: app.test_cli_runner().invoke(args=[*map(str, arguments)])


@pytest.fixture
def create(run):
    """Return a function: create a key with ``--json`` and return what was printed."""

    def make(login="erp", *options, note=""):
        options = {"--role": "administrator", "--permission": "read_write"} | dict(
            zip(options[::2], options[1::2], strict=True)
        )
        given = [word for option in options.items() for word in option]
        result = run("keys", "create", "--login", login, "--json", *given)
        assert (result.exit_code, result.stderr) == (0, note)
        (line,) = result.stdout.splitlines()
        assert result.stdout == f"{line}\n"
        return json.loads(line)

    return make


def client_of(app, made):
    return Client(app, NewKey(**made))


# --- create ---


def test_create_with_json_prints_one_line_with_exactly_these_keys(create):
    made = create("erp", "--role", "shop_manager", "--permission", "read", "--description", "ERP")
    assert list(made) == KEYS
    assert {name: made[name] for name in ("login", "role", "permission")} == {
        "login": "erp",
        "role": "shop_manager",
        "permission": "read",
    }
    assert [type(made[name]) for name in ("key_id", "user_id")] == [int, int]
    for name, prefix in (("consumer_key", "ck_"), ("consumer_secret", "cs_")):
        assert made[name].startswith(prefix)
        assert len(made[name]) == 43
        assert set(made[name][3:]) <= set("0123456789abcdef")


def test_create_for_a_new_user_requires_a_role(app, run):
    result = run("keys", "create", "--login", "erp", "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1] == (
        "Error: User 'erp' does not exist. To create it, add --role: "
        "administrator, shop_manager, shop_assistant, customer, subscriber."
    )
    with app.app_context():
        assert fetch(db.select(ApiKey.id)) == []
        assert fetch(db.select(User.id)) == []


def test_create_without_a_permission_allows_to_read(app, run):
    for role in (["--role", "administrator"], []):  # the second time the user exists
        made = json.loads(run("keys", "create", "--login", "erp", "--json", *role).stdout)
        assert (made["role"], made["permission"]) == ("administrator", "read")
        client = client_of(app, made)
        assert client.get("/coupons").status_code == 200
        assert client.post("/coupons", {"coupon": {"code": "a"}}).status_code == 401


def test_create_for_an_existing_user_adds_a_key_and_keeps_the_role(app, create):
    first = create("Erp", "--role", "customer")
    note = "User Erp already exists and keeps the role 'customer'.\n"
    second = create("ERP", "--role", "administrator", "--permission", "read", note=note)
    kept = {"user_id": first["user_id"], "login": "Erp", "role": "customer", "permission": "read"}
    assert {name: second[name] for name in kept} == kept
    for name in ("key_id", "consumer_key", "consumer_secret"):
        assert first[name] != second[name]
    assert client_of(app, first).get("/coupons").status_code == 200
    assert client_of(app, second).get("/coupons").status_code == 200


@pytest.mark.parametrize(
    ("permission", "read", "write"),
    [("read", 200, 401), ("write", 401, 201), ("read_write", 200, 201)],
)
def test_create_with_a_permission(app, create, permission, read, write):
    client = client_of(app, create("erp", "--permission", permission))
    assert client.get("/coupons").status_code == read
    assert client.post("/coupons", {"coupon": {"code": "a"}}).status_code == write


def test_create_prints_the_key_as_text(app, run):
    result = run("keys", "create", "--login", "erp", "--role", "shop_manager")
    with app.app_context():
        (stored,) = fetch(db.select(ApiKey.id, ApiKey.truncated_key))
    words = result.stdout.split()
    key, secret = (next(w for w in words if w.startswith(p)) for p in ("ck_", "cs_"))
    assert key.endswith(stored.truncated_key)
    assert (result.exit_code, result.stdout) == (
        0,
        (
            f"Key {stored.id} of erp (shop_manager), permission read:\n"
            f"  consumer key     {key}\n"
            f"  consumer secret  {secret}\n"
            "The secret is not shown again. To use it with curl, run this command:\n"
            f"  export KEY={key}:{secret}\n"
        ),
    )


def test_create_stores_no_key_in_plaintext(app, create):
    made = create()
    with app.app_context():
        (row,) = fetch(db.select(ApiKey))
    halves = made["consumer_key"][3:], made["consumer_secret"][3:]
    assert [half for half in halves if half in repr(tuple(row))] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing option '--login'"),
        (["--login", ""], "Invalid value for --login: must be 1 to 60 letters"),
        (["--login", " erp"], "Invalid value for --login: must be 1 to 60 letters"),
        (["--login", "x" * 61], "Invalid value for --login: must be 1 to 60 letters"),
        (["--login", "<b>"], "Invalid value for --login: must be 1 to 60 letters"),
        (["--login", "erp", "--role", "king"], "Invalid value for '--role': 'king' is not one of"),
        (
            ["--login", "erp", "--permission", "all"],
            "Invalid value for '--permission': 'all' is not one of",
        ),
        (["--login", "erp", "--colour", "red"], "No such option"),
        (["erp"], "Missing option '--login'"),
    ],
)
def test_create_with_invalid_input_reports_the_reason_and_creates_nothing(
    app, run, arguments, message
):
    result = run("keys", "create", *arguments, "--json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    with app.app_context():
        assert fetch(db.select(ApiKey.id)) == []


def test_create_imports_an_existing_key(app):
    pair = "ck_" + "a1" * 20, "cs_" + "b2" * 20
    arguments = ["keys", "create", "--login", "erp", "--role", "customer", "--existing", "--json"]
    result = app.test_cli_runner().invoke(args=arguments, input="\n".join(pair) + "\n")
    made = json.loads(result.stdout)
    assert (made["consumer_key"], made["consumer_secret"]) == pair
    assert client_of(app, made).get("/coupons").status_code == 200
    again = app.test_cli_runner().invoke(args=arguments, input="\n".join(pair) + "\n")
    assert (again.exit_code, again.stdout) == (1, "")
    assert "This consumer key already exists." in again.stderr


@pytest.mark.parametrize("given", ["", "ck_" + "1" * 40 + "\n"])
def test_create_says_what_is_missing_from_standard_input(app, given):
    arguments = ["keys", "create", "--login", "erp", "--role", "customer", "--existing"]
    result = app.test_cli_runner().invoke(args=arguments, input=given)
    assert result.exit_code == 1
    assert result.stderr.endswith(
        "Error: Standard input must contain the consumer key and the consumer secret, one per "
        "line.\n"
    )


def test_help_of_create_lists_the_resources(app):
    with app.app_context():
        assert set(RESOURCES) == current_catalog().resources
    result = app.test_cli_runner().invoke(args=["keys", "create", "--help"])
    assert ", ".join(RESOURCES) in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    "pair", [("short", "cs_" + "b" * 40), ("ck_" + "a" * 40, "cs:" + "b" * 40)]
)
def test_create_rejects_keys_that_cannot_be_sent_or_can_be_guessed(app, pair):
    arguments = ["keys", "create", "--login", "erp", "--existing", "--json"]
    result = app.test_cli_runner().invoke(args=arguments, input="\n".join(pair) + "\n")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "must be 20 to 200 visible ASCII characters" in result.stderr
    with app.app_context():
        assert fetch(db.select(ApiKey.id)) == []


@pytest.mark.slow
def test_create_with_json_prints_no_warnings(session_app, tmp_path):
    # operations.md: one line on standard output and nothing else. A script reads it.
    with session_app.app_context():
        url = db.engine.url.render_as_string(hide_password=False)
    settings = {"DATABASE_URL": url, "SECRET_KEY": SECRET, "INSTANCE_PATH": str(tmp_path)}
    command = [sys.executable, "-c", MISSPELT, "keys", "create", "--login", "erp", "--json"]
    command += ["--role", "customer"]
    environment = os.environ | {"SETTINGS": json.dumps(settings)}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [list(json.loads(line)) for line in done.stdout.splitlines()] == [KEYS]


# As ``shop-api``, with a setting that somebody misspelt.
MISSPELT = """
import json
import os
from flask.cli import FlaskGroup
from app import create_app

settings = json.loads(os.environ["SETTINGS"]) | {"SHOP_PAGESIZE": 5}
FlaskGroup(create_app=lambda: create_app(settings)).main(prog_name="flask")
"""


# --- list ---


def test_list_shows_every_key_without_secrets(app, run, create):
    first = create("erp", "--permission", "read", "--description", "the ERP")
    second = create("Anna Maria")
    result = run("keys", "list")
    assert (result.exit_code, result.stderr) == (0, "")
    header, *lines = result.stdout.splitlines()
    assert header.split() == [
        "key_id", "login", "permission", "key", "created", "last", "used", "expires", "resources",
        "description",
    ]  # fmt: skip
    assert [line.split()[0] for line in lines] == [str(first["key_id"]), str(second["key_id"])]
    assert [word for word in ("erp", "read", "the ERP") if word in lines[0]] == [
        "erp",
        "read",
        "the ERP",
    ]
    assert "Anna Maria" in lines[1]
    for made in (first, second):
        for name in ("consumer_key", "consumer_secret"):
            assert made[name] not in result.stdout
            assert made[name][3:20] not in result.stdout
        assert made["consumer_secret"][-7:] not in result.stdout
        assert made["consumer_key"][-7:] in result.stdout


def test_list_without_keys_is_a_table_without_rows(run):
    result = run("keys", "list")
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 1)


# --- revoke ---


def test_revoke_takes_effect_immediately_in_a_running_app(app, run, create):
    ended, other = create(), create()
    running, still = client_of(app, ended), client_of(app, other)
    assert running.get("/coupons").status_code == 200
    result = run("keys", "revoke", ended["key_id"])
    assert (result.exit_code, result.stdout) == (0, f"Key {ended['key_id']} was revoked.\n")
    assert running.get("/coupons").status_code == 401
    assert still.get("/coupons").status_code == 200
    assert str(ended["key_id"]) not in [
        line.split()[0] for line in run("keys", "list").stdout.splitlines()
    ]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("DELETE FROM api_keys WHERE id = {key_id}", 401),
        ("DELETE FROM users WHERE id = {user_id}", 401),
        ("UPDATE api_keys SET permission = 'write' WHERE id = {key_id}", 401),
        ("UPDATE user_roles SET role = 'customer' WHERE user_id = {user_id}", 401),
        ("DELETE FROM user_roles WHERE user_id = {user_id}", 401),
    ],
)
def test_sql_changes_of_a_key_take_effect_within_a_second(app, create, statement, status):
    made = create()
    running = client_of(app, made)
    for _ in range(2):  # the second response is from the cache
        assert running.get("/coupons/count").status_code == 200
    url = make_url(app.config["DATABASE_URL"])
    script = "import sys, {0}; c = {0}.connect(sys.argv[1]); {1} c.execute(sys.argv[2]); c.commit()"
    sqlite = url.get_backend_name() == "sqlite"
    keys = "c.execute('PRAGMA foreign_keys = ON');" if sqlite else ""
    driver, place = (
        ("sqlite3", url.database)
        if sqlite
        else ("psycopg", url.set(drivername="postgresql").render_as_string(hide_password=False))
    )
    script = script.format(driver, keys)
    command = [sys.executable, "-c", script, place, statement.format(**made)]
    subprocess.run(command, check=True, timeout=PATIENCE)
    time.sleep(MAX_AGE_SECONDS)
    assert running.get("/coupons/count").status_code == status


def test_revoke_in_another_app_takes_effect_immediately(app, make_app, create):
    made = create()
    running = client_of(app, made)
    assert running.get("/coupons").status_code == 200
    make_app().test_cli_runner().invoke(args=["keys", "revoke", str(made["key_id"])])
    assert running.get("/coupons").status_code == 401


@pytest.mark.parametrize("key_id", ["0", "999999999", str(2**63 - 1), str(2**63), "9" * 30])
def test_revoke_of_an_unknown_key_reports_it(run, create, key_id):
    create()
    result = run("keys", "revoke", key_id)
    assert (result.exit_code, result.stdout, result.stderr) == (
        1,
        "",
        f"Error: Key {key_id} does not exist. List all keys with `keys list`.\n",
    )


def test_revoke_twice_reports_an_unknown_key(run, create):
    key_id = create()["key_id"]
    codes = [run("keys", "revoke", key_id).exit_code for _ in range(2)]
    assert codes == [0, 1]


@pytest.mark.parametrize("arguments", [[], ["erp"], ["1.5"], ["1", "2"]])
def test_revoke_with_invalid_input_reports_the_reason(run, arguments):
    result = run("keys", "revoke", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: " in result.stderr


def test_documented_commands_exist(app, run):
    for command in (["db", "upgrade"], ["keys", "create"], ["keys", "list"], ["openapi", "write"]):
        assert run(*command, "--help").exit_code == 0


# --- serve ---


@pytest.fixture
def port():
    """A free port, which no other program gets meanwhile."""
    with closing(reserved_port()) as reserved:
        yield reserved.getsockname()[1]


@pytest.mark.slow
def test_serve_prints_the_first_key_and_later_the_number_of_keys(
    fresh_database_url, tmp_path, port
):
    settings = {"DATABASE_URL": fresh_database_url, "SECRET_KEY": SECRET, "PORT": str(port)}
    environment = os.environ | settings | {"WEB_CONCURRENCY": "1"}
    said = []
    for _ in range(2):
        with subprocess.Popen(
            [sys.executable, "-m", "app.main", "serve"],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as serving:  # fmt: skip
            lines = []
            for line in serving.stdout:
                lines.append(line.rstrip())
                if line.startswith("Guides"):
                    break
            serving.terminate()
            serving.communicate(timeout=PATIENCE)
        said.append(lines)
    first, second = said
    link = f".venv/bin/shop-api keys link --url http://127.0.0.1:{port}"
    key, secret = (line.split()[-1] for line in first[1:3])
    assert first[3:] == [
        "The secret is not shown again. To use it with curl, run this command:",
        f"  export KEY={key}:{secret}",
        f"Example: curl -u $KEY http://127.0.0.1:{port}/coupons",
        f"Admin      http://127.0.0.1:{port}/admin (to sign in: {link})",
        f"API        http://127.0.0.1:{port}/",
        f"Swagger UI http://127.0.0.1:{port}/docs",
        f"Guides     http://127.0.0.1:{port}/docs/guides/",
    ]
    assert second == [
        "1 API key exists. Create another:",
        "  .venv/bin/shop-api keys create --login NAME --role ROLE --permission read_write",
        *first[-4:],
    ]


@pytest.mark.slow
def test_gunicorn_starts_without_a_database(tmp_path, port):
    settings = {"DATABASE_URL": "postgresql://shop@127.0.0.1:1/shop", "SECRET_KEY": SECRET}
    environment = os.environ | settings | {"PORT": str(port), "WEB_CONCURRENCY": "1"}
    log = (tmp_path / "log").open("w")
    with log, subprocess.Popen(
        [Path(sys.executable).with_name("gunicorn"), "wsgi:app"],
        cwd=ROOT, env=environment, stdout=log, stderr=log,
    ) as serving:  # fmt: skip
        try:
            assert status_of(port, "/healthz") == 200
            assert status_of(port, "/readyz") == 503
        finally:
            serving.terminate()


def status_of(port, path):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except ConnectionError:
            time.sleep(0.05)
        finally:
            connection.close()
    raise AssertionError("nobody listens")


def test_db_has_the_commands_of_operators_only(app):
    shown = app.test_cli_runner().invoke(args=["db", "--help"]).output
    lines = shown.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in lines] == ["copy", "current", "rebuild-sums", "upgrade"]
