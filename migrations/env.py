"""How Alembic runs the migrations: on the write engine of the app, in one transaction."""

from alembic import context
from flask import current_app

from app import models
from app.db.search import is_of_models
from app.db.session import db
from app.db.timeouts import without_limit
from app.db.types import Money, UtcDateTime


def render_item(kind: str, item: object, _: object) -> str | bool:
    """Write our own types into a new migration as what they are in the database.

    A migration must mean the same for ever, also when the class in the app has changed.
    """
    if kind == "type" and isinstance(item, Money):
        return "sa.BigInteger()"
    if kind == "type" and isinstance(item, UtcDateTime):
        return 'sa.DateTime().with_variant(sa.DateTime(timezone=True), "postgresql")'
    return False


assert models.__all__  # noqa: S101  # nosec B101  # imported so that every table is known

if context.is_offline_mode():
    raise SystemExit("Migrations run against the database itself; set DATABASE_URL.")

with db.engine.connect() as connection:
    without_limit(connection)
    context.configure(
        connection=connection,
        target_metadata=db.metadatas[None],
        render_item=render_item,
        include_name=is_of_models,
        transactional_ddl=True,  # SQLite can, too: a migration happens whole or not at all
        **current_app.extensions["migrate"].configure_args,
    )
    with context.begin_transaction():
        context.run_migrations()
