"""Query plans of lists and writes, whose costs do not grow with the shop.

SQLite plans without statistics, so the plan is the same in a shop of any size. PostgreSQL would read
a small table completely. In these tests, it does so, and sorts, only if no index can be used.
"""

import re
from datetime import UTC, datetime
from functools import partial

import pytest
from sqlalchemy import event, insert, select, text, update

from app.db.session import db, run_in_transaction
from app.models import COUPONS, REDEMPTIONS, Coupon, User
from app.models.redemption import IS_RESERVED
from app.models.user import with_normalized
from app.services.coupons.terms import number_of_redemptions
from app.services.customers import totals, traces
from app.services.customers.columns import BLANK
from tests.factories import insert_order
from tests.redemptions.calls import post, reserve

BIG = "users|user_roles|coupons|orders|redemptions"
LIMIT = re.compile(r"\bLIMIT\b")


@pytest.fixture
def many(monkeypatch):
    """Let everything be too many to be found first and sorted then."""
    monkeypatch.setattr("app.services.common.plans.FEW", 0)


@pytest.fixture
def plans(app):
    """Return a function: send a request and return each of its statements, with its plan."""

    def explain(send):
        seen = []

        def note(connection, cursor, statement, parameters, context, executemany):
            if statement.startswith(("SELECT", "UPDATE")) and "api_keys" not in statement:
                seen.append((statement, parameters[0] if executemany else parameters))

        with app.app_context():
            engines = list(db.engines.values())
            for engine in engines:
                event.listen(engine, "before_cursor_execute", note)
            try:
                response = send()
            finally:
                for engine in engines:
                    event.remove(engine, "before_cursor_execute", note)
            assert response.status_code in {200, 201}, response.get_json()
            return [(statement, plan(*each)) for each in seen for statement in each[:1]]

    return explain


def plan(statement, parameters):
    """How the database runs a statement, a step a line."""
    with db.engines["read"].connect() as connection:
        if connection.dialect.name == "sqlite":
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            return "\n".join(row[3] for row in rows)
        for method in ("seqscan", "bitmapscan", "sort"):
            connection.execute(text(f"SET enable_{method} = off"))
        rows = connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)
        lines = "\n".join(row[0] for row in rows)
        connection.execute(text("RESET ALL"))
        return lines


def reads_everything(statement, steps):
    """Return the steps that look at every record, or sort them."""
    sorts = re.findall(r"USE TEMP B-TREE FOR ORDER BY|^ *(?:->  )?Sort  .*", steps, re.MULTILINE)
    if LIMIT.search(statement):
        return sorts  # a page is read from an index in its order
    # These indexes have no other entries.
    own = "ix_orders_guests|ix_redemptions_confirmed|ix_redemptions_order_confirmed"
    scan = rf"\bSCAN (?:{BIG})\b(?! USING COVERING INDEX (?:{own})).*"
    return re.findall(rf"{scan}|Seq Scan on (?:{BIG})\b.*", steps)


CUSTOMER_ORDERS = (
    "registered", "id", "email", "login", "modified", "name", "first_name", "last_name",
)  # fmt: skip
LISTS = [
    *(
        f"/customers?filter[orderby]={orderby}&filter[order]={order}"
        for orderby in CUSTOMER_ORDERS
        for order in ("asc", "desc")
    ),
    "/customers?filter[created_at_min]=2020-01-01&filter[created_at_max]=2100-01-01",
    "/customers?filter[role]=all&filter[orderby]=name",
    *(
        f"/customers?filter[total_spent_{bound}]=5&filter[orderby]={orderby}"
        for bound in ("min", "max")
        for orderby in ("registered", "id")
    ),
    "/customers/count?filter[total_spent_min]=5",
    "/customers/count?filter[created_at_min]=2020-01-01&filter[created_at_max]=2100-01-01",
    "/customers/count?filter[updated_at_min]=2020-01-01&filter[updated_at_max]=2100-01-01",
    *(
        f"/coupons?filter[orderby]={orderby}&filter[order]={order}"
        for orderby in ("date", "modified", "id", "code", "amount", "usage_count", "expiry_date")
        for order in ("asc", "desc")
    ),
    "/coupons?filter[type]=percent",
    "/coupons?filter[type]=percent&filter[orderby]=amount&filter[order]=asc",
    "/coupons?filter[type]=percent&filter[orderby]=code",
    "/coupons/code/summer",
    "/coupons/count?filter[type]=percent",
    *(
        f"/orders?filter[status]={statuses}&filter[orderby]={orderby}&filter[order]={order}"
        for statuses in ("completed", "completed,pending")
        for orderby in ("date", "modified", "id", "total")
        for order in ("asc", "desc")
    ),
    "/orders?filter[customer_id]=0",
    "/orders?filter[customer_id]=0&filter[orderby]=modified",
    "/orders/count?filter[customer_id]=0",
    *(
        f"/redemptions?filter[orderby]={orderby}&filter[order]={order}"
        for orderby in ("date", "id", "expires_at")
        for order in ("asc", "desc")
    ),
    "/redemptions?filter[status]=confirmed",
]  # fmt: skip


@pytest.mark.both_databases
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_list_is_read_from_an_index(app, admin, make_coupon, make_customer, many, plans):
    make_coupon(code="summer", type="percent")
    make_customer()
    insert_order(app)
    for path in LISTS:
        found = plans(partial(admin.get, path))
        assert found, path
        assert [steps for each in found for steps in reads_everything(*each)] == [], path


@pytest.mark.one_database
@pytest.mark.parametrize("noun", ["customers", "orders", "coupons"])
def test_search_reads_texts_from_an_index(admin, plans, noun):
    """SQLite would read complete records, which takes ten times as long."""
    steps = [steps for _, steps in plans(lambda: admin.get(f"/{noun}?filter[q]=ada"))]
    table = "users" if noun == "customers" else noun
    wanted = f"SCAN {table}_search USING COVERING INDEX ix_{table}_search_sqlite"
    assert any(wanted in each for each in steps)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "path",
    ["/customers?filter[role]=all&filter[q]=a", "/orders?filter[q]=a", "/coupons?filter[q]=a"],
)
def test_page_of_a_frequent_letter_is_read_in_the_order_of_the_list(
    app, monkeypatch, admin, make_customer, make_coupon, plans, path
):
    """All matches would be found and sorted, if their number were that up to which they count."""
    for number in range(3):
        make_customer(first_name="Ada")
        make_coupon(code=f"ada-{number}")
        insert_order(app, billing_first_name="Ada", search_text="ada")
    monkeypatch.setattr("app.db.search.MOST_OF_LETTERS", 1)
    seen = plans(lambda: admin.get(path))
    pages = [each for each in seen if "ORDER BY" in each[0] and "search_text" in each[0]]
    assert pages
    assert not [steps for each in pages if (steps := reads_everything(*each))]


@pytest.mark.both_databases
def test_active_coupons_are_counted(admin, make_coupon):
    make_coupon()
    make_coupon(expiry_date="2020-01-01")
    make_coupon(usage_limit=1, usage_count=1)
    make_coupon(usage_limit=1, usage_count=1, expiry_date="2020-01-01")
    make_coupon(expiry_date="2999-01-01", usage_limit=2)
    path = "/coupons/count?filter[state]=active"
    assert admin.get(path).get_json() == {"count": 2}
    trashed = admin.get("/coupons?filter[state]=active").get_json()["coupons"][0]["id"]
    admin.delete(f"/coupons/{trashed}")
    assert admin.get(path).get_json() == {"count": 1}


@pytest.mark.both_databases
def test_list_of_active_coupons_contains_no_others_if_most_are_active(admin, make_coupon, many):
    """The condition has an OR."""
    for number in range(9):
        make_coupon(code=f"active-{number}")
    make_coupon(code="used-up", usage_limit=1, usage_count=1)
    trashed = make_coupon(code="trashed")
    admin.delete(f"/coupons/{trashed['id']}")
    found = admin.get("/coupons?filter[state]=active&filter[orderby]=code&filter[order]=asc")
    codes = [coupon["code"] for coupon in found.get_json()["coupons"]]
    assert codes == [f"active-{number}" for number in range(9)]


@pytest.mark.both_databases
def test_customers_of_a_rare_role_are_sorted_by_their_sums(
    app, admin, make_customer, plans, monkeypatch
):
    """The index of sums would be read until all of them are found: 400 ms for a million."""
    insert_order(app, customer_id=make_customer(email="ada@example.com")["id"])
    with app.app_context():
        totals.refresh()
    monkeypatch.setattr("app.services.customers.queries._FEW_OTHERS", -1)
    path = "/customers?filter[role]=administrator&filter[orderby]=total_spent"
    assert not [each for each, _ in plans(lambda: admin.get(path)) if "customer_totals" in each]
    found = admin.get(path).get_json()["customers"]
    assert [each["role"] for each in found] == ["administrator"] * len(found)


@pytest.mark.both_databases
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("name", ["orders_count", "total_spent"])
def test_customers_by_a_sum_of_orders_are_read_from_its_index(
    app, admin, make_customer, many, plans, name, order
):
    make_customer()
    insert_order(app)
    with app.app_context():
        totals.refresh()
    path = f"/customers?filter[orderby]={name}&filter[order]={order}"
    (steps,) = [each[1] for each in plans(lambda: admin.get(path)) if "customer_totals" in each[0]]
    assert f"ix_customer_totals_{name}" in steps
    assert not re.findall(r"SCAN (?:users|user_roles|order_sums)\b", steps)
    assert not re.findall(r"Seq Scan on (?:users|user_roles|customer_totals|order_sums)\b", steps)


@pytest.mark.both_databases
def test_customers_who_spent_an_amount_are_counted_without_their_accounts(
    app, admin, make_customer, many, plans
):
    """The accounts of a million customers would be looked up one after the other: 4 s."""
    make_customer()
    with app.app_context():
        totals.refresh()
    found = plans(lambda: admin.get("/customers?filter[role]=all&filter[total_spent_max]=5"))
    numbers = [steps for statement, steps in found if "customer_totals" in statement]
    assert len(numbers) == 1  # the page compares each customer
    assert not re.findall(r"Scan.* on users|SEARCH users|users_pkey", numbers[0]), numbers[0]


@pytest.mark.both_databases
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("path", ["/customers?filter[role]=all&", "/orders?"])
def test_records_that_changed_are_found_without_reading_the_others(
    app, admin, make_customer, many, plans, path
):
    """The index of the order contains the time of the change."""
    make_customer()
    insert_order(app)
    for table in ("users", "orders"):
        analyze(app, table)
    found = plans(lambda: admin.get(f"{path}filter[updated_at_min]=2020-01-01"))
    (steps,) = [steps for statement, steps in found if "OFFSET" in statement]
    assert re.search(r"Index Only Scan.* using ix_(orders|users)_created", steps)


@pytest.mark.both_databases
@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_of_records_that_changed_since_a_time_are_complete(
    app, admin, make_coupon, many, limit
):
    """Some were created before, some after, and one changed before it was created, as imported."""
    days = [(9, 9), (1, 8), (8, 3), (2, 2), (7, 7), (3, 6), (5, 5)]  # created, updated
    ids = [make_coupon()["id"] for _ in days]

    def set_times(session):
        for coupon_id, (created, updated) in zip(ids, days, strict=True):
            times = {"created_at": datetime(2026, 1, created, tzinfo=UTC)}
            times["updated_at"] = datetime(2026, 1, updated, tzinfo=UTC)
            session.execute(update(COUPONS).where(COUPONS.c.id == coupon_id).values(times))

    with app.app_context():
        run_in_transaction(set_times)
    newest = sorted(zip(days, ids, strict=True), reverse=True)
    expected = [coupon_id for (_, updated), coupon_id in newest if updated >= 5]
    query = {"filter[updated_at_min]": "2026-01-05", "filter[limit]": limit}
    pages = [admin.get("/coupons", query | {"page": page + 1}) for page in range(7)]
    found = [coupon["id"] for page in pages for coupon in page.get_json()["coupons"]]
    assert found == expected


@pytest.mark.both_databases
def test_reservation_does_not_read_the_other_reservations(app, admin, make_coupon):
    """Also without statistics, as in a new shop. Each would otherwise cost more than the last."""
    coupon = make_coupon(code="summer", usage_limit=100)
    reserve(admin)
    uncounted = number_of_redemptions(IS_RESERVED, ~REDEMPTIONS.c.holds_slot)
    with app.app_context(), db.engines["read"].connect() as connection:
        number = select(uncounted).where(COUPONS.c.id == coupon["id"])
        statement = number.compile(connection, compile_kwargs={"literal_binds": True})
        on_sqlite = connection.dialect.name == "sqlite"
        rows = connection.exec_driver_sql(f"EXPLAIN {'QUERY PLAN ' * on_sqlite}{statement}")
        steps = "\n".join(str(row) for row in rows)
    assert re.search(
        r"coupon_id=\? AND (status=\? AND )?holds_slot=\?|holds_slot = false", steps
    ), steps


@pytest.mark.both_databases
def test_limit_per_customer_reads_only_the_uses_of_the_customer(admin, make_coupon, plans):
    """Those of deleted accounts are found by their IDs. No other uses of the coupon are read."""
    make_coupon(code="summer", usage_limit_per_user=5)
    found = plans(lambda: post(admin, email="ada@example.com"))
    steps = [plan for statement, plan in found if "erased_accounts" in statement]
    assert len(steps) > 1
    conditions = re.findall(r"Index Cond: .*|SEARCH redemptions.*", "\n".join(steps))
    every = r"\(coupon_id=\?\)$|\(email_normalized\)::text = ''"
    assert [each for each in conditions if re.search(every, each)] == []


@pytest.mark.both_databases
def test_deletion_of_a_customer_hashes_the_uses_of_one_address_at_once(
    app, admin, make_coupon, make_customer, plans
):
    ada = make_customer(email="ada@example.com")
    make_coupon(code="summer")
    for number in range(5):
        reserve(admin, reference=f"cart-{number}", customer_id=ada["id"])
    found = plans(lambda: admin.delete(f"/customers/{ada['id']}"))
    updates = [each for each, _ in found if each.startswith("UPDATE redemptions")]
    assert len(updates) == 1


@pytest.mark.both_databases
def test_deletion_of_a_customer_reads_no_whole_table(app, admin, make_coupon, make_customer, plans):
    """All events were read for each part of the orders."""
    ada = make_customer(email="ada@example.com")
    make_coupon(code="summer")
    insert_order(app, customer_id=ada["id"])
    reserve(admin, reference="cart", customer_id=ada["id"])
    found = plans(lambda: admin.delete(f"/customers/{ada['id']}"))
    assert [
        (statement, steps)
        for statement, steps in found
        if re.search(r"^SCAN (orders|events|redemptions)\b(?!.*_deleted_notes)", steps, re.M)
        or re.search(r"Seq Scan on (orders|events|redemptions)\b", steps)
    ] == []


@pytest.mark.both_databases
def test_erasure_sorts_nothing(app, admin, make_coupon, make_customer, plans, monkeypatch):
    """All orders, uses and events of the account that were left were sorted for each part."""
    ada = make_customer(email="ada@example.com")
    make_coupon(code="summer")
    for number in range(5):
        insert_order(app, customer_id=ada["id"])
        reserve(admin, reference=f"cart-{number}", customer_id=ada["id"])
    monkeypatch.setattr(traces, "BATCH", 1)
    admin.delete(f"/customers/{ada['id']}")
    monkeypatch.setattr(traces, "BATCH", 200)

    def clear():
        while traces.clear_next_batch():
            pass
        return admin.get("/orders/count")

    of_account = r"WHERE .*customer_id (=|IN).*LIMIT"
    found = [each for each in plans(clear) if re.search(of_account, each[0], re.DOTALL)]
    tables = {match[1] for each, _ in found if (match := re.search(r"FROM (\w+)", each))}
    assert tables >= {"orders", "redemptions", "events"}
    assert [(each, steps) for each, steps in found if reads_everything(each, steps)] == []


@pytest.mark.parametrize("path", ["/coupons?", "/customers?filter[role]=all&", "/orders?"])
def test_list_by_id_is_sorted_by_one_column(
    app, admin, make_coupon, make_customer, many, plans, path
):
    for _ in range(3):
        make_coupon()
        make_customer()
        insert_order(app)
    found = plans(lambda: admin.get(f"{path}filter[orderby]=id&filter[offset]=1"))
    orders = re.findall(r"ORDER BY (\w+)\.id\b(.*)", "\n".join(statement for statement, _ in found))
    assert orders
    assert [rest for table, rest in orders if f"{table}.id" in rest] == []


def analyze(app, table):
    """On PostgreSQL, all indexes of an empty table cost the same.

    FULL freezes the rows: others are visible to all only when their transaction is on the disk.
    """
    with app.app_context(), db.engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            connection.execution_options(isolation_level="AUTOCOMMIT")
            for options in ("FULL", "ANALYZE"):
                connection.execute(text(f"VACUUM ({options}) {table}"))


@pytest.mark.both_databases
@pytest.mark.parametrize("path", ["/coupons", "/coupons/count"])
def test_coupons_of_a_type_are_counted_in_their_own_index(app, admin, make_coupon, plans, path):
    make_coupon(type="percent")
    others = [{"code": f"other-{number}", "type": "fixed_cart"} for number in range(100)]
    assert admin.post("/coupons/bulk", {"coupons": others}).status_code == 200
    analyze(app, "coupons")
    found = plans(lambda: admin.get(path, {"filter[type]": "percent"}))
    (steps,) = [steps for statement, steps in found if "count(" in statement]
    assert re.search(r"(COVERING INDEX|Index Only Scan using) ix_coupons_type\b", steps)


@pytest.mark.both_databases
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("path", ["/orders", "/orders/count"])
def test_orders_of_guests_are_counted_in_their_own_index(app, admin, make_customer, plans, path):
    insert_order(app, customer_id=None)
    customer_id = make_customer()["id"]
    for _ in range(20):
        insert_order(app, customer_id=customer_id)
    analyze(app, "orders")
    found = plans(lambda: admin.get(path, {"filter[customer_id]": "0"}))
    (steps,) = [steps for statement, steps in found if "count(" in statement]
    assert re.search(r"(COVERING INDEX|Index Only Scan using) ix_orders_guest", steps)


@pytest.mark.both_databases
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_pages_are_read_from_memory_that_processes_share(app, admin):
    """To copy the pages of an index takes half of the time of a page in the middle of a list."""
    admin.get("/customers")
    with app.app_context():
        for name, is_mapped in (("read", True), ("stream", False), (None, False)):
            with db.engines[name].connect() as connection:
                found = connection.exec_driver_sql("PRAGMA mmap_size").scalar()
            assert (found > 0) == is_mapped, name


@pytest.mark.sample(2)
@pytest.mark.both_databases
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("orderby", CUSTOMER_ORDERS[1:])
def test_customers_that_a_page_skips_are_not_read(
    make_customer, admin, many, plans, orderby, order
):
    """Half a million of them would take seconds. SQLite reads only the columns that it needs."""
    for _ in range(3):
        make_customer()
    path = f"/customers?filter[orderby]={orderby}&filter[order]={order}"
    path += "&filter[offset]=1&filter[limit]=1"
    found = [steps for statement, steps in plans(lambda: admin.get(path)) if "OFFSET" in statement]
    (steps,) = found
    assert re.findall(r"(\w[\w ]+ Scan)(?: Backward)? using", steps) == ["Index Only Scan"]


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "body", [{"code": "new"}, {"description": "new"}, {"code": "new", "description": "new"}]
)
def test_coupon_is_written_without_reading_all(admin, make_coupon, plans, body):
    path = f"/coupons/{make_coupon()['id']}"
    found = plans(lambda: admin.put(path, {"coupon": body}))
    found += plans(lambda: admin.post("/coupons", {"coupon": {"code": "another"}}))
    assert len(found) >= 3
    assert [steps for each in found for steps in looks_at_status(*each)] == []


@pytest.mark.both_databases
@pytest.mark.parametrize("number", [1, 100])
def test_bulk_of_coupons_is_written_without_reading_all(admin, make_coupon, plans, number):
    ids = [make_coupon()["id"] for _ in range(3)]
    items = [{"code": f"new {item}"} for item in range(number - len(ids) if number > 3 else 1)]
    items += [{"id": coupon_id, "amount": "1"} for coupon_id in ids]
    found = plans(lambda: admin.post("/coupons/bulk", {"coupons": items}))
    assert [steps for each in found for steps in looks_at_status(*each)] == []


@pytest.mark.both_databases
def test_bulk_of_coupons_is_looked_up_by_the_same_statements_for_any_number(
    admin, make_coupon, statements
):
    """A statement with a placeholder for each code or ID is rendered again for each number."""
    found = []
    for number in (2, 30):
        ids = [make_coupon()["id"] for _ in range(number)]
        items = [{"code": f"{number} {item}"} for item in range(number)]
        statements.clear()
        admin.post("/coupons/bulk", {"coupons": items + [{"id": each} for each in ids]})
        found.append([each for each in statements if "FROM coupons" in each])
    assert len(found[0]) == 2
    assert found[0] == found[1]


@pytest.mark.both_databases
def test_bulk_of_customers_is_looked_up_in_indexes_by_the_same_statement(admin, plans):
    found = []
    for number in (2, 30):
        items = [{"email": f"{number}-{item}@example.com"} for item in range(number)]
        sent = plans(lambda items=items: admin.post("/customers/bulk", {"customers": items}))
        found.append(
            [each for each in sent if "username_normalized" in each[0].partition("WHERE")[2]]
        )
    ((statement, steps),) = found[0]
    assert reads_everything(statement, steps) == []
    assert [each for each, _ in found[1]] == [statement]


@pytest.mark.both_databases
@pytest.mark.parametrize("customer", [{}, {"email": "ada@example.com"}])
def test_cart_is_evaluated_without_reading_all_coupons(admin, make_coupon, plans, customer):
    codes = [make_coupon(usage_limit=9, usage_limit_per_user=1)["code"] for _ in range(2)]
    cart = {"items": [{"price": "1"}], "coupons": codes} | customer
    found = plans(lambda: admin.post("/coupons/evaluate", {"cart": cart}))
    assert any("coupons" in statement for statement, _ in found)
    assert [steps for each in found for steps in looks_at_status(*each)] == []


@pytest.mark.both_databases
def test_redemptions_of_an_order_are_found_in_an_index(admin, make_coupon, plans):
    line = {"code": make_coupon()["code"], "amount": "1"}
    order = admin.post("/orders", {"order": {"coupon_lines": [line]}}).get_json()["order"]
    path = f"/orders/{order['id']}"
    found = plans(lambda: admin.put(path, {"order": {"status": "completed"}}))
    found += plans(lambda: admin.get(f"/redemptions/count?filter[order_id]={order['id']}"))
    found += plans(lambda: admin.delete(path))
    found += plans(lambda: admin.post(f"{path}/restore"))
    assert sum("FROM redemptions" in statement for statement, _ in found) >= 4
    assert [steps for each in found for steps in reads_everything(*each)] == []


@pytest.mark.both_databases
def test_customer_is_written_without_reading_all(admin, make_customer, plans):
    path = f"/customers/{make_customer()['id']}"
    found = plans(lambda: admin.put(path, {"customer": {"first_name": "Ada"}}))
    found += plans(lambda: admin.post("/customers", {"customer": {"email": "ada@example.com"}}))
    assert [steps for each in found for steps in reads_everything(*each)] == []


def looks_at_status(statement, steps):
    """Return the steps that look at every coupon, or at every published one."""
    return reads_everything(statement, steps) + re.findall(
        rf"SEARCH {Coupon.__tablename__} .*\(status=\?\)", steps
    )


@pytest.mark.both_databases
@pytest.mark.parametrize("path", ["/coupons", "/coupons/count"])
def test_coupons_with_given_ids_are_looked_up(admin, make_coupon, plans, path):
    ids = [make_coupon()["id"] for _ in range(3)]
    found = plans(lambda: admin.get(path, {"filter[in]": ",".join(map(str, ids))}))
    read = [steps for statement, steps in found if "FROM coupons" in statement]
    assert read
    assert not any(re.search(r"SCAN coupons|Seq Scan|\(status=\?\)", steps) for steps in read)


def add_users(app, usernames):
    """Insert accounts with these usernames, without an address."""
    timestamp = datetime(2026, 1, 1, tzinfo=UTC)
    blank = {**BLANK, "email": "", "created_at": timestamp, "updated_at": timestamp}
    rows = [with_normalized(blank | {"username": username}) for username in usernames]
    with app.app_context():
        run_in_transaction(lambda session: session.execute(insert(User), rows))


@pytest.mark.sample(2)
@pytest.mark.both_databases
@pytest.mark.parametrize("taken", [10, 11, 50, 300, 3000])
def test_username_is_found_in_a_few_statements(app, admin, statements, taken):
    add_users(app, ["info", *(f"Info{number}" for number in range(2, taken + 1))])
    for expected in (taken + 1, taken + 2):
        statements.clear()
        body = {"customer": {"email": f"info@{expected}.example"}}
        created = admin.post("/customers", body).get_json()["customer"]
        assert created["username"] == f"info{expected}"
        assert len(statements) <= 12


@pytest.mark.sample(2)
@pytest.mark.both_databases
@pytest.mark.parametrize("freed", [5, 9, 10, 99, 500])
def test_username_takes_a_small_number_that_became_free(app, admin, freed):
    add_users(app, ["info", *(f"info{number}" for number in range(2, 600) if number != freed)])
    created = admin.post("/customers", {"customer": {"email": "info@x.example"}}).get_json()
    assert created["customer"]["username"] == f"info{freed}"


@pytest.mark.sample(2)
@pytest.mark.both_databases
@pytest.mark.parametrize("start", [9, 500])
@pytest.mark.parametrize("base", ["info", "x" * 64])
def test_username_is_found_whatever_numbers_are_taken(app, admin, start, base):
    """The numbers that a search by doubling would try are taken."""
    taken = [*range(2, start + 1), *(start << power for power in range(1, 31))]
    add_users(app, [base[:50], *(f"{base[:50]}{number}" for number in taken)])
    body = {"customer": {"email": f"{base}@new.example"}}
    created = admin.post("/customers", body).get_json()["customer"]
    number = int(created["username"].removeprefix(base[:50]))
    assert number not in taken
    assert number - 1 in taken


@pytest.mark.both_databases
def test_usernames_of_a_bulk_are_numbered_on(app, admin):
    add_users(app, ["info", *(f"info{number}" for number in range(2, 21))])
    items = [{"email": f"info@{number}.example"} for number in range(30)]
    created = admin.post("/customers/bulk", {"customers": items}).get_json()["customers"]
    assert [customer["username"] for customer in created] == [f"info{n}" for n in range(21, 51)]


@pytest.mark.both_databases
def test_new_coupon_is_looked_up_without_a_join(admin, statements):
    """Without statistics of the table, PostgreSQL joins every coupon with every coupon."""
    admin.post("/coupons", {"coupon": {"code": "first"}})
    statements.clear()
    admin.post("/coupons", {"coupon": {"code": "second"}})
    lookups = [each for each in statements if "FROM coupons" in each]
    assert lookups
    assert [each.count("FROM coupons") for each in lookups] == [1] * len(lookups)


@pytest.mark.both_databases
def test_columns_of_partial_indexes_are_not_compared_with_parameters(
    admin, make_coupon, make_customer, statements
):
    """Otherwise PostgreSQL cannot use the index, and SQLite compiles the statement every time."""
    compared = constants_of_partial_indexes()
    customer = make_customer()
    assert r"redemptions\.status" in compared
    make_coupon(code="limited", usage_limit=5, usage_limit_per_user=2)
    who = {"customer_id": customer["id"], "email": customer["email"]}
    admin.post("/coupons/evaluate", {"cart": {"coupons": ["limited"], **who}})
    for number in range(2):
        use = {"code": "limited", "reference": f"cart-{number}", **who}
        response = admin.post("/redemptions", {"redemption": use})
        assert response.status_code == 201
    this = response.get_json()["redemption"]["id"]
    for request in (
        lambda: admin.post(f"/redemptions/{this}/confirm"),
        lambda: admin.get("/redemptions?filter[status]=reserved,confirmed,released"),
        lambda: admin.get("/coupons?filter[type]=percent"),
        lambda: admin.get("/coupons/trash"),
        lambda: admin.get("/coupons/batches"),
    ):
        response = request()
        assert response.status_code == 200, response.get_json()
    wrong = re.compile(rf"\b({'|'.join(compared)}) (=|<>|!=) [?%]")
    assert [statement for statement in statements if wrong.search(statement)] == []


def constants_of_partial_indexes():
    """The columns that the conditions of partial indexes compare with a text, for a pattern."""
    return {
        rf"{table.name}\.{column}"
        for table in db.metadata.tables.values()
        for index in table.indexes
        for column in re.findall(
            r"(\w+) (?:=|<>) '\w", str(index.dialect_options["sqlite"]["where"])
        )
    }


@pytest.mark.both_databases
def test_paying_customers_are_counted_from_their_index(app, admin, make_customer, plans):
    customer_id = make_customer()["id"]
    for day in range(20):
        paid = {"completed_at": datetime(2026, 1, 1, tzinfo=UTC)} if day == 0 else {}
        insert_order(app, customer_id=customer_id, **paid)
    analyze(app, "orders")
    found = plans(lambda: admin.get("/wp-json/wc/v3/reports/customers/totals"))
    (steps,) = (steps for statement, steps in found if "DISTINCT orders" in statement)
    assert re.search("(COVERING INDEX|Index Only Scan using) ix_orders_paying", steps), steps


@pytest.mark.both_databases
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("path", ["/customers", "/customers/count", "/wp-json/wc/v3/customers"])
def test_few_letters_are_compared_with_the_search_table(admin, plans, path):
    """It is a fifth to a tenth of the table of records."""
    name = "search" if "wc/v3" in path else "q"
    found = plans(lambda: admin.get(path, {name: "zq"}))
    steps = [steps for statement, steps in found if "LIKE" in statement]
    assert steps
    assert all("users_search" in each for each in steps), "\n".join(steps)


@pytest.mark.both_databases
@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
@pytest.mark.parametrize(
    ("path", "index"),
    [
        ("/orders?updated_at_min=2020-01-01&orderby=id", "ix_orders_id"),
        ("/orders?created_at_max=2100-01-01&orderby=modified", "ix_orders_updated"),
        ("/coupons?updated_at_min=2020-01-01&orderby=date", "ix_coupons_status_created"),
        ("/coupons?created_at_min=2020-01-01&orderby=modified", "ix_coupons_status_updated"),
        ("/coupons?updated_at_min=2020-01-01&orderby=id", "ix_coupons_status_id"),
        ("/coupons?updated_at_min=2020-01-01&orderby=usage_count", "ix_coupons_status_usage_count"),
        ("/redemptions?updated_at_min=2020-01-01&orderby=date", "ix_redemptions_created"),
        ("/customers?updated_at_min=2020-01-01&orderby=id", "ix_users_changed"),
        ("/customers?total_spent_max=5000&orderby=orders_count", "ix_customer_totals_orders_count"),
        ("/wp-json/wc/v3/orders?created_via=rest-api", "ix_orders_created_via"),
    ],
)
def test_first_record_of_a_period_in_another_order_is_found_in_the_index_alone(
    app, admin, make_coupon, make_customer, many, plans, path, index
):
    """To look up each of a million records before it takes half a second."""
    for number in range(3):
        customer_id = make_customer()["id"]
        code = make_coupon()["code"]
        insert_order(app, customer_id=customer_id)
        use = {"code": code, "reference": f"cart-{number}"}
        assert admin.post("/redemptions", {"redemption": use}).status_code == 201
    with app.app_context():
        totals.refresh()
    analyze(app, re.match("ix_(customer_totals|[a-z]+)_", index)[1])
    seen = plans(lambda: admin.get(path))
    steps = [steps for statement, steps in seen if "ORDER BY" in statement and "LIMIT" in statement]
    alone = rf"(COVERING INDEX|Index Only Scan (Backward )?using) {index}\b"
    assert any(re.search(alone, each) for each in steps), "\n".join(steps)
