"""Totals and middle pages from row counts, and searches from an index.

After any write, both equal the results of counting and reading all records.
"""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import combinations, product

import pytest
from sqlalchemy import delete, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError

from app.conversions.text import searchable
from app.db.read_pool import fetch
from app.db.search import search_text
from app.db.session import db, run_in_transaction
from app.db.sql.types import Json
from app.models import Coupon, Order, Redemption, RowCount, User, UserRole
from app.models.user import with_normalized
from app.services.customers.columns import BLANK
from tests.api_client import Client, at_the_same_time
from tests.customers.test_statistics import new_order
from tests.factories import insert_order

pytestmark = pytest.mark.both_databases

START = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = (
    "Ada",
    "Łukasz",
    "O'Neil",
    "ΟΔΟΣ",
    "50%",
    'a"b',
    "x_y",
    "日本語の本",
    "\ufffe\ufffd",
    "*",
    "ab",
)
ROLES = ("customer", "subscriber", "shop_manager")
STATUSES = ("pending", "completed", "draft")


class Writer:
    """Writes anything, past the services, as imports and other programs do."""

    def __init__(self, session, chance):
        self.session = session
        self.chance = chance

    def timestamp(self):
        return START + timedelta(seconds=self.chance.randrange(200 * 86400))

    def words(self):
        return " ".join(self.chance.choices(WORDS, k=3))

    def some(self, model):
        """The condition for a few records."""
        key = model.user_id if model is UserRole else model.id
        ids = self.session.scalars(select(key)).all()
        return key.in_(self.chance.sample(ids, min(len(ids), self.chance.randrange(4))))

    def user(self):
        name, timestamp = self.words(), self.timestamp()
        number = self.chance.getrandbits(60)
        account = BLANK | {"username": f"u{number}", "email": f"{number}@example.com"}
        account |= {"first_name": name, "created_at": timestamp, "updated_at": timestamp}
        return with_normalized(account)

    def coupon(self):
        code = f"c{self.chance.getrandbits(60)}"
        columns = Coupon.__table__.c
        empty = {str: "", bool: False, int: 0}
        values = {
            name: empty.get(column.type.python_type)
            for name, column in columns.items()
            if name not in {"id", "author_id", "expiry_date"}
        }
        lists = [name for name, column in columns.items() if isinstance(column.type, Json)]
        values |= {name: [] for name in lists}
        timestamp = self.timestamp()
        return values | {
            "code": code,
            "status": self.chance.choice(("published", "trash")),
            "created_at": timestamp,
            "updated_at": timestamp,
            "search_text": search_text(code, self.words()),
        }

    def step(self):
        act = self.chance.choice(
            [self.add_users, self.add_coupons, self.add_orders, self.add_redemptions] * 4
            + [self.move_users, self.rename, self.change_roles, self.trash, self.change_orders]
            + [self.remove]
        )
        act()

    def add_users(self):
        rows = [self.user() for _ in range(self.chance.randrange(2, 9))]
        found = self.session.execute(insert(User).returning(User.id, User.created_at), rows).all()
        for role in self.chance.sample(ROLES, self.chance.choice((0, 1, 2, 2))):
            values = [
                {"user_id": row.id, "role": role, "position": 0, "registered_at": row.created_at}
                for row in found
            ]
            self.session.execute(insert(UserRole), values)

    def add_coupons(self):
        rows = [self.coupon() for _ in range(self.chance.randrange(1, 5))]
        self.session.execute(insert(Coupon), rows)

    def add_orders(self):
        buyers = [None, *self.session.scalars(select(User.id)).all()]
        for _ in range(self.chance.randrange(1, 4)):
            order = new_order(
                self.chance.choice(buyers),
                status=self.chance.choice(STATUSES),
                created_at=self.timestamp(),
                total=Decimal(self.chance.randrange(100)),
            )
            order.search_text = searchable(self.words())
            self.session.add(order)
        self.session.flush()

    def add_redemptions(self):
        """Also change those of before; only their time is counted."""
        self._update(Redemption, {"created_at": self.timestamp()})
        self._update(Redemption, {"status": "confirmed", "holds_slot": False})
        rows = [
            {
                "code": "any",
                "reference": f"r{self.chance.getrandbits(60)}",
                "email": "",
                "email_normalized": "",
                "status": self.chance.choice(("reserved", "released")),
                "holds_slot": False,
                "created_at": self.timestamp(),
                "updated_at": START,
            }
            for _ in range(self.chance.randrange(1, 5))
        ]
        self.session.execute(insert(Redemption), rows)

    def move_users(self):
        """The roles follow by their foreign key."""
        self.session.execute(
            update(User).where(self.some(User)).values(created_at=self.timestamp()),
            execution_options={"synchronize_session": False},
        )

    def rename(self):
        for model in (Coupon, Order):
            self._update(model, {"search_text": searchable(self.words())})
        table = User.__table__
        for row in self.session.execute(select(table).where(self.some(User))).mappings().all():
            before = {name: row[name] for name in row if table.c[name].computed is None}
            after = with_normalized(before | {"first_name": self.words()})
            self.session.execute(update(table).where(table.c.id == row["id"]).values(after))

    def change_roles(self):
        try:
            with self.session.begin_nested():
                self._update(UserRole, {"role": self.chance.choice(ROLES)})
        except IntegrityError:  # one of them had the role already
            pass

    def trash(self):
        status = self.chance.choice(("published", "trash"))
        self._update(Coupon, {"status": status, "created_at": self.timestamp()})

    def change_orders(self):
        self._update(Order, {"status": self.chance.choice(STATUSES)})

    def remove(self):
        """The roles of a user go with it."""
        for model in (User, UserRole, Coupon, Order, Redemption):
            statement = delete(model).where(self.some(model))
            self.session.execute(statement, execution_options={"synchronize_session": False})

    def _update(self, model, values):
        statement = update(model).where(self.some(model)).values(values)
        self.session.execute(statement, execution_options={"synchronize_session": False})


def counted():
    """What the row counts must say, counted."""
    wanted = Counter()
    for kind, label, timestamp in (
        ("users", None, User.created_at),
        ("user_roles", UserRole.role, UserRole.registered_at),
        ("coupons", Coupon.status, Coupon.created_at),
        ("orders", Order.status, Order.created_at),
        ("redemptions", None, Redemption.created_at),
    ):
        rows = fetch(select(timestamp, *([label] if label is not None else [])))
        for row in rows:
            day = row[0].date()
            monday = day - timedelta(days=day.weekday())
            wanted[kind, row[1] if row[1:] else "", monday] += 1
    return wanted


def row_count():
    """What the row counts say."""
    columns = (RowCount.table_name, RowCount.partition, RowCount.week)
    rows = fetch(select(*columns, func.sum(RowCount.count)).group_by(*columns))
    return Counter({tuple(row[:3]): int(row[3]) for row in rows if row[3]})


def write_anything(seed, steps=25):
    chance = random.Random(seed)
    for _ in range(steps):
        run_in_transaction(lambda session: Writer(session, chance).step())


@pytest.fixture
def written_shop(app, app_with, client_for):
    """Return a function: write anything, and return an administrator with long pages."""

    def write(seed):
        with app.app_context():
            write_anything(seed, steps=100)
        return Client(app_with(SHOP_PAGE_SIZE=1000), client_for().key)

    return write


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(6))
def test_row_counts_equal_the_counted_rows(app, seed):
    with app.app_context():
        write_anything(seed)
        assert row_count() == counted()
        assert sum(row_count().values()) > 0


def test_rollback_restores_the_row_counts(app):
    def work(session):
        Writer(session, random.Random(1)).add_users()
        raise KeyError

    with app.app_context():
        with pytest.raises(KeyError):
            run_in_transaction(work)
        assert row_count() == Counter()


COUNTED = (
    ("/customers", {}),
    ("/customers", {"role": "subscriber"}),
    ("/customers", {"role": "all"}),
    ("/coupons", {}),
    ("/orders", {}),
    ("/orders", {"status": "pending"}),
    ("/orders", {"status": "pending,completed"}),
    ("/redemptions", {}),
)


@pytest.mark.slow
def test_pages_of_a_counted_list_are_the_list(written_shop):
    """Weeks that are left out leave nothing out, wherever the page begins."""
    admin = written_shop(3)
    for (path, keys), order in product(COUNTED, ("asc", "desc")):
        assert_pages_are_the_list(admin, path, keys, order)


def assert_pages_are_the_list(admin, path, keys, order):
    query = {f"filter[{name}]": value for name, value in keys.items()}
    query |= {"filter[order]": order, "fields": "id"}
    response = admin.get(path, query)
    (every,) = response.get_json().values()
    assert len(every) > 2
    assert response.headers["X-Total"] == str(len(every))
    for offset in {*range(1, len(every), 5), len(every) - 1, len(every), len(every) + 1}:
        page = admin.get(path, query | {"filter[offset]": offset})
        assert list(page.get_json().values()) == [every[offset:]]
        assert page.headers["X-Total"] == str(len(every))


MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
BOUNDS = (
    None, START - timedelta(1), START + timedelta(days=400), MONDAY, MONDAY + timedelta(21),
    *(MONDAY + timedelta(21, seconds) for seconds in (-1, 1)), MONDAY + timedelta(3, 3600),
    datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
)  # fmt: skip


@pytest.mark.slow
def test_totals_of_a_period_add_whole_weeks_and_the_records_around_them(written_shop):
    admin = written_shop(5)
    for path, keys in COUNTED:
        query = {f"filter[{name}]": value for name, value in keys.items()}
        (every,) = admin.get(path, query | {"fields": "created_at"}).get_json().values()
        times = [each["created_at"] for each in every]
        assert len(set(times)) > 5
        for bounds in [*product(BOUNDS, BOUNDS), (MONDAY, times[0]), (times[-1], times[0])]:
            since, until = (
                f"{each:%Y-%m-%dT%H:%M:%SZ}".zfill(20) if isinstance(each, datetime) else each
                for each in bounds
            )
            period = {"filter[created_at_min]": since, "filter[created_at_max]": until}
            period = {name: value for name, value in period.items() if value}
            wanted = [each for each in times if (since or "") <= each <= (until or "9999Z")]
            counted_there = admin.get(f"{path}/count", query | period).get_json()
            assert counted_there == {"count": len(wanted)}, (path, bounds)


@pytest.mark.parametrize(("prefix", "name"), [("", "created_at"), ("modified_", "updated_at")])
def test_totals_of_a_period_without_its_bounds(app, admin, prefix, name):
    times = [MONDAY + timedelta(days, seconds) for days in (0, 7, 21) for seconds in (-1, 0, 1)]
    for each in times:
        insert_order(app, **{"created_at": each - timedelta(9), name: each})
    for since, until in combinations(times[::2], 2):
        after = {f"{prefix}after": f"{since:%Y-%m-%dT%H:%M:%S}"}
        before = {f"{prefix}before": f"{until:%Y-%m-%dT%H:%M:%S}"}
        for query in (after, before, after | before):
            found = admin.get("/wp-json/wc/v3/orders", query | {"per_page": 100})
            begin = since if query != before else times[0] - timedelta(1)
            end = until if query != after else times[-1] + timedelta(1)
            wanted = [each for each in times if begin < each < end]
            assert found.headers["X-WP-Total"] == str(len(found.get_json())) == str(len(wanted))


def test_a_total_without_some_ids_does_not_count_the_others(app, admin, statements):
    ids = [insert_order(app, status="completed") for _ in range(4)]
    trashed = insert_order(app, status="trash")
    for left_out, total in (([ids[0]], 3), ([*ids[1:3], trashed, 10**6], 2), ([trashed], 4)):
        statements.clear()
        excluded = ",".join(map(str, left_out))
        found = admin.get("/wp-json/wc/v3/orders", {"exclude": excluded})
        assert found.headers["X-WP-Total"] == str(len(found.get_json())) == str(total)
        (counting,) = [each for each in statements if "count(*)" in each]
        assert "row_counts" in counting


def test_totals_are_exact_after_concurrent_writes(app, admin):
    """Each writer meets the others in the same week; in the end nothing is lost or counted twice."""

    def write(number):
        with app.app_context():
            chance = random.Random(number)
            for _ in range(12):
                run_in_transaction(lambda session: Writer(session, chance).add_users())
                run_in_transaction(lambda session: Writer(session, chance).add_coupons())
                run_in_transaction(lambda session: Writer(session, chance).trash())

    at_the_same_time(write, range(6))
    with app.app_context():
        assert row_count() == counted()
    listed = admin.get("/coupons")
    assert admin.get("/coupons/count").get_json() == {"count": int(listed.headers["X-Total"])}


def test_writers_on_postgresql_do_not_wait_for_each_other(app):
    """One has counted and not committed yet; another counts in the same week."""
    with app.app_context():
        if db.engine.dialect.name != "postgresql":
            return  # SQLite has one writer at a time
        moments = {"created_at": START, "updated_at": START}
        rows = [Writer(None, random.Random(n)).user() | moments for n in range(3)]
        with db.engine.begin() as one, db.engine.begin() as two:
            one.execute(insert(User), rows[:1])
            two.execute(text("SET LOCAL lock_timeout = '2s'"))
            two.execute(insert(User), rows[1:])
        assert sum(n for (kind, *_), n in row_count().items() if kind == "users") == 3
        assert row_count() == counted()


# --- searches ---

PATTERNS = ["ada", "łuk", "neil", "οδοσ", "0%", 'a"b', '"', "x_y", "日本語", "語の本 ada", "\ufffe\ufffd",
            "ab", "a", "da ł", "zzz", "a*neil", "ada*ab*a", "***", "*ada*",
            "AND", "ada OR neil", "NEAR(ada)", "search_text:ada", "-ada", "50%*日本語", "\uffff"]  # fmt: skip


def fits(searched, pattern, *, stars):
    """What a search means, without a database: a part of one of the texts."""
    parts = searchable(pattern).split("*") if stars else [searchable(pattern)]
    return any(has(text, parts) for text in searched.split("\uffff"))


def has(text, parts):
    """Tell whether a text has these parts, one after the other."""
    for part in parts:
        _, found, text = text.partition(part) if part else ("", True, text)
        if not found:
            return False
    return True


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", [1, 2])
def test_searches_find_the_same_as_a_scan(app, written_shop, seed):
    admin = written_shop(seed)
    with app.app_context():
        users = fetch(select(User.id, User.search_text))
        customers = fetch(
            select(User.id, User.search_text).join(UserRole).where(UserRole.role == "customer")
        )
        coupons = fetch(select(Coupon.id, Coupon.search_text).where(Coupon.status == "published"))
        orders = fetch(select(Order.id, Order.search_text))
        # With the text of the account, which a search of orders reads from three letters.
        texts = Order.search_text + func.coalesce("\uffff" + User.search_text, "")
        of_account = User.id == Order.customer_id
        owned = fetch(select(Order.id, texts.label("search_text")).outerjoin(User, of_account))
    assert min(map(len, (customers, coupons, orders))) > 2
    for path, rows, keys in (
        ("/customers", customers, {}),
        ("/customers", users, {"filter[role]": "all"}),
        ("/coupons", coupons, {}),
        ("/orders", orders, {}),
        ("/orders", owned, {}),
    ):
        by_id = {"filter[order]": "asc", "filter[orderby]": "id", "fields": "id"}
        for pattern in PATTERNS:
            if path == "/orders" and (rows is owned) != (len(pattern) > 2):
                continue
            stars = path == "/customers"
            wanted = sorted(row.id for row in rows if fits(row.search_text, pattern, stars=stars))
            response = admin.get(path, {"filter[q]": pattern} | keys | by_id)
            (listed,) = response.get_json().values()
            assert response.headers["X-Total"] == str(len(wanted)), (path, pattern)
            assert [row["id"] for row in listed] == wanted[:1000], (path, pattern)
