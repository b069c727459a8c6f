"""The shop of the recording, as the import writes it."""

import tempfile
from pathlib import Path

from sqlalchemy import delete, text, update

from app.db.session import db
from app.models import COUPONS, REDEMPTIONS, WEBHOOKS, Event
from tests.commands import succeed
from tests.dumps.dialects import write_dump
from tests.plugins.woocommerce.rest.recorded_shop import SEED, RecordedShop

_inserted = {}
"""The SQL that inserts the shop, by database and options, as soon as it was imported once."""


def reset(app, *, with_downloads=False):
    """Empty the shop of an app and insert the recorded one."""
    from tests.databases import empty, insertions  # noqa: PLC0415  # needs the plugins of pytest

    with app.app_context():
        key = db.engine.dialect.name, with_downloads
        with db.engine.begin() as connection:
            empty(connection)
        if key not in _inserted:
            import_recorded_shop(app, "8", with_downloads=with_downloads)
            with db.engine.begin() as connection:
                # The recorded server knew no uses of the orders, which were written into its tables.
                connection.execute(delete(REDEMPTIONS).where(REDEMPTIONS.c.order_id.is_not(None)))
                _inserted[key] = insertions(connection, without={Event.__tablename__})
                empty(connection)
        with db.engine.begin() as connection:
            for statement in _inserted[key]:
                connection.exec_driver_sql(statement)
            _set_sequences(connection)
    app.extensions.pop("shop_api_principals", None)


def import_recorded_shop(app, layout, *, verify=False, **options):
    """Import a dump of the recorded shop, and compare both with ``verify``."""
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "shop.sql"
        write_dump(dump, RecordedShop(layout, **options))
        for command in ("woocommerce", "verify") if verify else ("woocommerce",):
            args = ["import", command, str(dump), "--keep-key", "_secret_ref"]
            succeed(app, *args)
    # Drafts and webhooks arrive paused. The lists of the source do not show drafts.
    with app.app_context(), db.engine.begin() as connection:
        drafts = update(COUPONS).where(~COUPONS.c.active)
        trash = {"status": "trash", "trashed_at": COUPONS.c.updated_at}
        connection.execute(drafts.values(active=True, **trash))
        for hook in SEED["webhooks"]:
            reason = "user" if hook["status"] == "disabled" else None
            status = {"status": hook["status"], "disabled_reason": reason}
            connection.execute(update(WEBHOOKS).values(status).filter_by(id=hook["id"]))


def _set_sequences(connection):
    """Let new records have the IDs that they had at the recorded server."""
    ids = SEED["about"]["next_ids"]
    following = {
        **dict.fromkeys(("coupons", "orders", "order_refunds"), 76),
        "users": ids["customer"],
        "order_notes": ids["note"],
        "webhooks": ids["webhook"],
        "item_ids": ids["order line"],
    }
    for table, number in following.items():
        if connection.dialect.name == "sqlite":
            connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :n"), {"n": table})
            row = {"n": table, "s": number - 1}
            connection.execute(text("INSERT INTO sqlite_sequence VALUES (:n, :s)"), row)
        else:
            connection.execute(
                text(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {number}, false)")
            )
