"""Imports from a MariaDB server, and from dumps of its own program."""

import json
from urllib.parse import quote

import pytest
from sqlalchemy import select

from app import create_app
from app.db.read_pool import fetch
from app.db.session import db
from app.models import User
from app.plugins.woocommerce.importer.source.loading import Location, load
from app.plugins.woocommerce.importer.source.staging import staging
from tests.commands import succeed
from tests.databases import SECRET, close
from tests.dumps.schemas import LAYOUTS
from tests.dumps.shop import Shop, php
from tests.plugins.woocommerce.importer.mariadb import READER, mariadb, needs_mariadb
from tests.plugins.woocommerce.importer.test_coupon_plugins import PluginShop
from tests.plugins.woocommerce.importer.test_hostile import HostileShop
from tests.schemas import create_tables

pytestmark = [pytest.mark.slow, needs_mariadb]

MADE_HERE = {
    "import_sources": {"started_at", "finished_at"},
    "import_runs": {"started_at", "progress_at", "finished_at", "created_at"},
    "api_keys": {"created_at", "consumer_secret_encrypted"},
    "webhooks": {"secret_encrypted"},
    "events": {"created_at"},
    "orders": {"order_key"},
}
"""Columns that differ between two imports of the same shop."""

PLUGINS = (
    {"_wt_coupon_start_date": "2026-12-01", "_wt_coupon_start_time": "10:00", "status": "draft"},
    {"_wc_sc_start_date": "1796083200", "_wt_max_discount": "50.5"},
    {"_wjecf_customer_roles": php(["vip"]), "sc_restrict_to_new_user": "yes", "status": "future"},
)
FORMS = {
    "plain": [],
    "lines": ["--skip-extended-insert"],
    "complete": ["--complete-insert", "--hex-blob"],
    "databases": ["--databases"],
    "latin1": ["--default-character-set=latin1"],
    "no-create": ["--no-create-info", "--complete-insert"],
}


@pytest.fixture(scope="module")
def server():
    with mariadb() as running:
        for layout in LAYOUTS:
            running.load(f"shop_{layout.replace('.', '_')}", Shop(layout=layout))
        running.load("hostile", HostileShop())
        running.load("plugins", PluginShop(*PLUGINS, rules=[(1, "10 % off")], zone="Europe/Berlin"))
        running.load("old", Shop(orders=20), charset="latin1", engine="MyISAM")
        yield running


@pytest.fixture
def import_into(tmp_path):
    """Return a function: import into an empty shop; return its tables, the lines and the output."""
    numbers = iter(range(10))

    def run(source, *options):
        database = f"sqlite:///{tmp_path}/{next(numbers)}.db"
        settings = {"SECRET_KEY": SECRET, "INSTANCE_PATH": str(tmp_path)}
        create_tables(database)
        app = create_app(settings | {"DATABASE_URL": database})
        report = tmp_path / "report"
        with app.app_context():
            result = succeed(app, "import", "woocommerce", source, "--report", report, *options)
            # Counts of keys that were left out have no ID.
            ids = [json.loads(line)["id"] for line in report.read_text().splitlines()]
            lines = sorted(each or 0 for each in ids)
            found = tables(), lines, result.output
        close(app)
        return found

    return run


def tables():
    found = {}
    for table in db.metadata.sorted_tables:
        rows = fetch(select(table).order_by(*table.primary_key.columns))
        left_out = MADE_HERE.get(table.name, ())
        found[table.name] = [
            {name: value for name, value in row._mapping.items() if name not in left_out}
            for row in rows
        ]
    found.pop("events")
    return found


def url(server, database):
    user, password = READER
    return f"mysql+pymysql://{user}:{quote(password, safe='')}@127.0.0.1:{server.port}/{database}"


@pytest.mark.parametrize("database", ["shop_2_6", "shop_3_5", "shop_8", "hostile", "plugins"])
def test_server_and_its_dump_are_the_same_shop(server, import_into, tmp_path, database):
    server.dump(database, tmp_path / "dump.sql")
    from_server, lines, output = import_into(url(server, database))
    assert "Warning" not in output
    assert len(from_server["orders"]) >= 7 or database in {"hostile", "plugins"}
    assert len(from_server["coupons"]) >= len(PLUGINS)
    from_dump, dump_lines, _ = import_into(tmp_path / "dump.sql")
    assert from_dump == from_server
    assert dump_lines == lines


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_real_dump(server, import_into, tmp_path, form):
    server.dump("hostile", tmp_path / "dump.sql", *FORMS[form])
    from_server, _, _ = import_into(url(server, "hostile"))
    from_dump, _, _ = import_into(tmp_path / "dump.sql")
    if form == "latin1":  # what latin1 has no character for is lost in the dump itself
        users, others = from_dump["users"], from_server["users"]
        assert [user["username"] for user in users] == [user["username"] for user in others]
        assert [user["billing_city"] for user in users[:3]] == [
            user["billing_city"] for user in others[:3]
        ]
        return
    assert from_dump == from_server


def test_gap_between_ids_is_skipped(server):
    """Each 20,000 IDs of a gap took a statement."""
    far = Shop(customers=1, orders=1, extra={"usermeta": [(10_000_000, 2, "far", "away")]})
    server.load("far", far)
    calls = []
    with staging() as staged:
        load(Location(url(server, "far")), staged, calls.append, pytest.fail)
        assert staged.meta_of("usermeta", [2])[2]["far"] == "away"
    assert len(calls) < 2 * len(far.tables)


def test_tables_without_a_snapshot(server, import_into):
    found, _, output = import_into(url(server, "old"))
    assert "wp_comments, wp_options" in output
    assert "these tables have no consistent snapshot" in output
    assert len(found["orders"]) == 20


def test_source_is_only_read(server, app):
    """The user has no other privilege, and the transaction is read-only."""
    with app.app_context():
        succeed(app, "import", "woocommerce", url(server, "shop_3_5"))
        again = succeed(app, "import", "verify", url(server, "shop_3_5"))
    assert "No differences found." in again.output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("read%20only", "wrong"), "Access denied for user 'reader'"),
        (lambda text: text.replace("/shop_3_5", "/none"), "Access denied for user 'reader'"),
        (lambda text: text.replace("/shop_3_5", ""), "has no database"),
        (lambda text: text.replace(":3306", ":1").replace("127.0.0.1", "127.0.0.2"), "onnect"),
    ],
)
def test_server_that_cannot_be_read(server, app, change, message):
    with app.app_context():
        result = app.test_cli_runner().invoke(
            args=["import", "woocommerce", change(url(server, "shop_3_5"))]
        )
        assert result.exit_code == 1
        assert message in result.output
        assert "Traceback" not in result.output
        assert READER[1] not in result.output
        assert fetch(select(User.id)) == []
