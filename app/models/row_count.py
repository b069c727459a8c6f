"""Row counts per week, kept by triggers."""

from datetime import date

from sqlalchemy.orm import Mapped, mapped_column

from app.db.session import Model
from app.db.sql.types import Id, Key


class RowCount(Model):
    """Number of rows of a table and partition whose timestamp is in a week (from Monday, UTC).

    Lists read their totals here, and the number of whole weeks to skip before a page, instead of
    counting a million index entries. With weeks, a list of several years adds some hundred numbers
    and skips at most some thousand entries.

    Database triggers keep the counts (migration 0011) in the transaction of every write, including
    bulk requests, cascades and imports. A count is spread over shards: concurrent writers on
    PostgreSQL use different shards, so they never wait for each other. Only the sum of the shards
    is meaningful, and a single shard can be negative.
    """

    __tablename__ = "row_counts"

    # users, user_roles (partitioned by role), coupons and orders (both partitioned by status), and
    # redemptions
    table_name: Mapped[str] = mapped_column(Key, primary_key=True)
    partition: Mapped[str] = mapped_column(Key, primary_key=True)
    week: Mapped[date] = mapped_column(primary_key=True)
    shard: Mapped[int] = mapped_column(Id, primary_key=True, autoincrement=False)
    count: Mapped[int] = mapped_column(Id)

    __table_args__ = {"sqlite_with_rowid": False}


ROW_COUNTS = RowCount.__table__
