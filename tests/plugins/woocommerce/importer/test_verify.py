"""``import verify``, and sources that cannot be imported (migration 1)."""

from decimal import Decimal

import pytest
from sqlalchemy import delete, select, update

from app.db.read_pool import fetch
from app.db.session import run_in_transaction
from app.models import Order, Redemption, User
from tests.dumps.shop import FIRST_ORDER, Shop
from tests.plugins.woocommerce.importer.imports import rows_of

pytestmark = pytest.mark.usefixtures("in_app")  # they look into the tables


# --- verification ---


def verify(app, file, *options):
    return app.test_cli_runner().invoke(args=["import", "verify", str(file), *options])


@pytest.mark.slow
def test_verification_finds_no_differences(shop_file, import_dump, app):
    file = shop_file(Shop())
    import_dump(file)
    result = verify(app, file)
    assert result.exit_code == 0, result.output
    assert "orders: 60 at the source, 60 here, 0 left out, 0 edited here, 60 compared" in (
        result.stdout
    )
    assert "No differences found." in result.stdout


def test_verification_finds_differences(shop_file, import_dump, app, erp):
    file = shop_file(Shop())
    import_dump(file)

    def damage(session):
        session.execute(
            update(Order).where(Order.id == FIRST_ORDER + 2).values(total=Decimal("1.00"))
        )
        session.execute(update(User).where(User.id == 4).values(first_name="Eve"))

    run_in_transaction(damage)
    erp.delete("/customers/5")
    erp.put("/customers/6", {"customer": {"first_name": "Edited"}})
    result = verify(app, file)
    assert result.exit_code == 1
    assert "The temporary file takes" in result.stderr
    found = [line for line in result.stdout.splitlines() if line.startswith("DIFFERENT")]
    assert any(f"orders: posts {FIRST_ORDER + 2}, total:" in line for line in found)
    assert any("customers: users 4, first_name: " in line for line in found)
    assert "DIFFERENT customers: users 5 is not in this shop" in found
    assert any(line.startswith("DIFFERENT orders, completed") for line in found)
    assert "1 edited here" in result.stdout
    sampled = verify(app, file, "--sample", "0")
    assert "users 4" not in sampled.stdout


@pytest.mark.slow
def test_coupon_that_was_used_here_does_not_differ(shop_file, import_dump, app, erp):
    file = shop_file(Shop())
    import_dump(file)
    made = erp.post("/redemptions", {"redemption": {"code": "code-0", "reference": "cart"}})
    erp.post(f"/redemptions/{made.get_json()['redemption']['id']}/confirm")
    result = verify(app, file)
    assert "No differences found." in result.stdout
    assert "1 edited here" not in result.stdout


@pytest.mark.slow
def test_verification_counts_the_redemptions_of_the_import(shop_file, import_dump, app):
    file = shop_file(Shop())
    imported = import_dump(file).row("redemptions")[0]
    number = f"redemptions: {imported:,} at the source, {imported:,} here"
    assert number in verify(app, file).stdout
    stored = select(Redemption.id).where(Redemption.order_id.is_(None)).limit(1)
    (row,) = fetch(stored)
    run_in_transaction(
        lambda session: session.execute(delete(Redemption).where(Redemption.id == row.id))
    )
    result = verify(app, file)
    assert f"redemptions: {imported:,} at the source, {imported - 1:,} here" in result.stdout
    assert "DIFFERENT redemptions: postmeta" in result.stdout


def test_verification_of_a_shop_that_was_not_imported(shop_file, app):
    result = verify(app, shop_file(Shop()))
    assert result.exit_code == 1
    assert "old.example/shop was never imported into this database." in result.output


# --- sources that cannot be imported ---


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda data: b"hello", [], "contains no tables. It is not a database dump."),
        (lambda data: data[: len(data) // 2], [], "The dump ends within a statement"),
        (lambda data: data, ["--prefix", "shop_"], "add --prefix wp_"),
        (lambda data: data.replace(b"wp_usermeta", b"wp_other"), [], "Missing: wp_usermeta."),
        (lambda data: data.replace(b"`wp_user", b"`net_user"), [], "add --users-prefix net_"),
        (lambda data: data, ["--database", "x"], "There is no shop in the database 'x'."),
        (
            lambda data: b"USE `a`;" + data + b";\nUSE `b`;\n" + data,
            [],
            "several shops, in the databases a, b. Choose one with --database.",
        ),
        (lambda data: b"\x1f\x8b" + data, [], "is not a complete gzip file."),
    ],
)
def test_source_that_cannot_be_imported(shop_file, import_dump, tmp_path, change, options, message):
    file = shop_file(Shop(orders=3))
    file.write_bytes(change(file.read_bytes()))
    printed = import_dump(file, *options, fails=True)
    assert message in printed.output
    assert "Traceback" not in printed.output
    assert rows_of(User) == []


def test_file_that_does_not_exist(import_dump, tmp_path):
    printed = import_dump(tmp_path / "none.sql", fails=True)
    assert "none.sql: No such file or directory" in printed.output


def test_one_of_several_databases(shop_file, import_dump, erp):
    file = shop_file(Shop(orders=3))
    other = shop_file(Shop(orders=5), name="other.sql")
    data = b"USE `a`;" + other.read_bytes() + b";\nUSE `b`;\n" + file.read_bytes()
    file.write_bytes(data)
    import_dump(file, "--database", "b")
    assert len(rows_of(Order)) == 3
