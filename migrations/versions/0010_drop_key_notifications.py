"""Drop the notifications about changes of keys, which are no longer used."""

from alembic import op

revision = "0010"
down_revision = "0009"

# As revision 0006 created them.
FUNCTION = """
CREATE FUNCTION tell_{table}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM changed {condition}) THEN
        PERFORM pg_notify('shop_keys', '');
    END IF;
    RETURN NULL;
END $$
"""
WITH_A_KEY = "JOIN api_keys ON api_keys.user_id = changed.user_id"
TRIGGER = """
CREATE TRIGGER tell_{table}_{event} AFTER {event} ON {table} REFERENCING {rows} TABLE AS changed
FOR EACH STATEMENT EXECUTE FUNCTION tell_{table}()
"""
TOLD = {
    "api_keys": ("", {"update": "OLD", "delete": "OLD"}),
    "user_roles": (WITH_A_KEY, {"insert": "NEW", "update": "NEW", "delete": "OLD"}),
}


def upgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    for table, (_, events) in TOLD.items():
        for event in events:
            op.execute(f"DROP TRIGGER tell_{table}_{event} ON {table}")
        op.execute(f"DROP FUNCTION tell_{table}()")


def downgrade() -> None:
    if op.get_bind().dialect.name != "postgresql":
        return
    for table, (condition, events) in TOLD.items():
        op.execute(FUNCTION.format(table=table, condition=condition))
        for event, rows in events.items():
            op.execute(TRIGGER.format(table=table, event=event, rows=rows))
