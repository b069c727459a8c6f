"""``import woocommerce`` again, after an interruption, and into a shop with other records (migration 1)."""

import os
import signal
from contextlib import contextmanager

import pytest
from sqlalchemy import func, select

from app.conversions.numbers import MAX_COUNT
from app.db.read_pool import fetch
from app.db.session import db
from app.models import Coupon, ImportedRecord, Order, OrderNote, Redemption, User
from app.plugins.woocommerce.importer import context, importer
from app.plugins.woocommerce.importer.source.staging import staging
from app.plugins.woocommerce.importer.steps import orders as order_steps
from app.plugins.woocommerce.importer.target import record_map
from tests.dumps.shop import FIRST_COUPON, FIRST_CUSTOMER, FIRST_ORDER, Shop
from tests.plugins.woocommerce.importer.imports import everything, rows_of

pytestmark = pytest.mark.usefixtures("in_app")  # they look into the tables


# --- the same import again ---


@pytest.mark.slow
def test_second_import_changes_nothing(shop_file, import_dump):
    file = shop_file(Shop())
    import_dump(file)
    before = [rows_of(model) for model in (User, Coupon, Order, Redemption, OrderNote)]
    printed = import_dump(file)
    assert all(row[1:3] == [0, 0] and row[0] == row[3] + row[5] for row in printed.table.values())
    assert [rows_of(model) for model in (User, Coupon, Order, Redemption, OrderNote)] == before


class Changed(Shop):
    """The same shop, a week later: one order completed, one new one, one coupon used."""

    def order(self, number):
        order = super().order(number)
        if order["id"] == FIRST_ORDER + 5:
            order |= {"status": "completed", "paid": True}
        return order

    def coupon_meta(self, number):
        meta = dict(super().coupon_meta(number))
        return [*(meta | {"usage_count": "50"} if number == 0 else meta).items()]


def test_import_again_adds_and_updates(shop_file, import_dump, erp):
    import_dump(shop_file(Shop()))
    printed = import_dump(shop_file(Changed(orders=61)))
    assert printed.row("orders") == [61, 1, 1, 59, 0, 0]
    assert printed.row("coupons")[:4] == [8, 0, 1, 7]
    assert erp.get(f"/orders/{FIRST_ORDER + 5}").get_json()["order"]["status"] == "completed"
    assert erp.get(f"/coupons/{FIRST_COUPON}").get_json()["coupon"]["usage_count"] == 50
    missing = import_dump(shop_file(Shop(orders=59)))
    assert [line["what"] for line in missing.lines if line["table"] == "posts"] == ["missing"] * 2
    assert erp.get(f"/orders/{FIRST_ORDER + 60}").status_code == 200


class WithoutCoupon(Shop):
    """The same shop without a coupon, whose metadata remains."""

    def rows(self, name):
        return (
            row for row in super().rows(name) if not (name == "posts" and row[0] == FIRST_COUPON)
        )


def test_metadata_of_a_coupon_that_no_longer_exists_at_the_source(shop_file, import_dump):
    import_dump(shop_file(Shop()))
    before = rows_of(Redemption)
    printed = import_dump(shop_file(WithoutCoupon()))
    missing = [line for line in printed.lines if line["what"] == "missing"]
    assert [line["id"] for line in missing] == [FIRST_COUPON]
    assert rows_of(Redemption) == before


@pytest.mark.slow
def test_uses_here_are_added_to_those_at_the_source(shop_file, import_dump, erp):
    import_dump(shop_file(Shop()))
    made = erp.post("/redemptions", {"redemption": {"code": "code-0", "reference": "cart"}})
    erp.post(f"/redemptions/{made.get_json()['redemption']['id']}/confirm")
    import_dump(shop_file(Changed()))
    assert erp.get(f"/coupons/{FIRST_COUPON}").get_json()["coupon"]["usage_count"] == 51
    import_dump(shop_file(Shop()))
    before = next(v for k, v in Shop().coupon_meta(0) if k == "usage_count")
    assert erp.get(f"/coupons/{FIRST_COUPON}").get_json()["coupon"]["usage_count"] == (
        int(before) + 1
    )


@pytest.mark.slow
@pytest.mark.parametrize("use_first", [True, False])
def test_coupon_that_was_edited_and_used_here_keeps_its_edit(
    shop_file, import_dump, erp, use_first
):
    import_dump(shop_file(Shop()))
    path = f"/coupons/{FIRST_COUPON}"

    def use():
        made = erp.post("/redemptions", {"redemption": {"code": "code-0", "reference": "cart"}})
        erp.post(f"/redemptions/{made.get_json()['redemption']['id']}/confirm")

    def edit():
        assert erp.put(path, {"coupon": {"description": "edited here"}}).status_code == 200

    for step in (use, edit) if use_first else (edit, use):
        step()
    printed = import_dump(shop_file(Changed()))
    assert [line["id"] for line in printed.lines if line["what"] == "kept"] == [FIRST_COUPON]
    assert erp.get(path).get_json()["coupon"]["description"] == "edited here"
    import_dump(shop_file(Changed()), "--overwrite")
    assert erp.get(path).get_json()["coupon"]["description"] != "edited here"
    # It counts as not edited again.
    use()
    printed = import_dump(shop_file(Shop()))
    assert [line for line in printed.lines if line["what"] == "kept"] == []


@pytest.mark.slow
def test_count_that_was_set_to_the_largest_one_here_stays(shop_file, import_dump, erp):
    import_dump(shop_file(Shop()))
    path = f"/coupons/{FIRST_COUPON}"
    assert erp.put(path, {"coupon": {"usage_count": MAX_COUNT}}).status_code == 200
    import_dump(shop_file(Changed()), "--overwrite")
    assert erp.get(path).get_json()["coupon"]["usage_count"] == MAX_COUNT


@pytest.mark.slow
def test_records_edited_in_this_shop_keep_their_edits(shop_file, import_dump, erp):
    import_dump(shop_file(Shop()))
    path = f"/orders/{FIRST_ORDER + 5}"
    assert erp.put(path, {"order": {"note": "edited here"}}).status_code == 200
    printed = import_dump(shop_file(Changed()))
    assert printed.row("orders")[1:4] == [0, 0, 59]
    kept = [line["id"] for line in printed.lines if line["what"] == "kept"]
    assert kept == [FIRST_ORDER + 5]
    assert erp.get(path).get_json()["order"]["note"] == "edited here"
    printed = import_dump(shop_file(Changed()), "--overwrite")
    assert printed.row("orders")[1:4] == [0, 1, 59]
    order = erp.get(path).get_json()["order"]
    assert (order["note"], order["status"]) == ("Ring twice", "completed")


def test_an_import_that_replaces_uses_counts_their_campaign_again(shop_file, import_dump, erp):
    shop = Shop()
    numbers = [n for n in range(60) if shop.order(n)["coupon"] and shop.order(n)["paid"]]
    path, code = f"/orders/{FIRST_ORDER + numbers[0]}", shop.order(numbers[0])["coupon"]
    import_dump(shop_file(shop))
    given = {"campaign": {"name": "Mailing", "usage_limit": 5}}
    campaign = erp.post("/campaigns", given).get_json()["campaign"]["id"]
    (coupon,) = erp.get("/coupons", {"filter[code]": code}).get_json()["coupons"]
    erp.put(f"/coupons/{coupon['id']}", {"coupon": {"campaign_id": campaign}})
    for status in ("cancelled", "completed"):
        assert erp.put(path, {"order": {"status": status}}).status_code == 200
    assert erp.get(f"/campaigns/{campaign}").get_json()["campaign"]["uses"] == 1
    original = shop.order
    shop.order = lambda number: (
        original(number) | ({"status": "cancelled", "paid": False} if number == numbers[0] else {})
    )
    import_dump(shop_file(shop), "--overwrite")
    assert erp.get(path).get_json()["order"]["status"] == "cancelled"
    assert erp.get(f"/campaigns/{campaign}").get_json()["campaign"]["uses"] == 0


@pytest.mark.slow
def test_records_deleted_here_stay_deleted(shop_file, import_dump, erp):
    import_dump(shop_file(Shop()))
    assert erp.delete("/customers/3").status_code == 200
    printed = import_dump(shop_file(Shop()))
    assert printed.row("customers")[:4] == [21, 0, 0, 21]
    assert erp.get("/customers/3").status_code == 404


@pytest.mark.slow
def test_interrupted_import_is_completed_by_the_next_one(shop_file, import_dump, app, monkeypatch):
    file = shop_file(Shop())
    monkeypatch.setattr(context, "PAGE", 25)
    with monkeypatch.context() as patch:
        original, calls = order_steps._uses, []

        def interrupted(*arguments):
            calls.append(1)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return original(*arguments)

        patch.setattr(order_steps, "_uses", interrupted)
        result = app.test_cli_runner().invoke(args=["import", "woocommerce", str(file)])
        assert result.exit_code == 1
    assert len(rows_of(Order)) == 50
    printed = import_dump(file)
    assert "Resuming the interrupted import." in printed.output
    assert printed.row("orders") == [60, 10, 0, 50, 0, 0]
    assert len(rows_of(Order)) == 60
    confirmed = sum(row["status"] == "confirmed" for row in rows_of(Redemption))
    entries = [
        key for number in range(8) for key, _ in Shop().coupon_meta(number) if key == "_used_by"
    ]
    assert confirmed == len(entries)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("at", ["loading", "writing"])
def test_signal_ends_an_import_after_its_batch(
    shop_file, import_dump, app, monkeypatch, number, code, at
):
    file = shop_file(Shop())
    monkeypatch.setattr(context, "PAGE", 25)
    module, name = (importer, "load") if at == "loading" else (order_steps, "_uses")
    original = getattr(module, name)
    handlers = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]

    def signalled(*arguments):
        os.kill(os.getpid(), number)
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, signalled)
        result = app.test_cli_runner().invoke(args=["import", "woocommerce", str(file)])
    assert result.exit_code == code, result.output
    assert "Run the same command again to continue." in result.output
    assert len(rows_of(Order)) == (25 if at == "writing" else 0)
    assert [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)] == handlers
    printed = import_dump(file)
    assert ("Resuming the interrupted import." in printed.output) == (at == "writing")
    assert len(rows_of(Order)) == 60


@pytest.mark.slow
def test_second_signal_ends_an_import_at_once(shop_file, app, monkeypatch):
    def signalled(*_):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(order_steps, "_uses", signalled)
    file = str(shop_file(Shop()))
    result = app.test_cli_runner().invoke(args=["import", "woocommerce", file])
    assert result.exit_code == 143
    assert "Run the same command again" not in result.output


def test_dry_run_writes_nothing(shop_file, import_dump, app):
    def stored():
        return {
            table.name: fetch(select(func.count()).select_from(table))[0][0]
            for table in db.metadata.sorted_tables
        }

    before = stored()
    printed = import_dump(shop_file(Shop()), "--dry-run")
    assert "Nothing was written" in printed.output
    assert stored() == before
    real = import_dump(shop_file(Shop()))
    assert printed.table == real.table


# --- IDs ---


@pytest.mark.slow
def test_import_into_a_shop_with_other_records(shop_file, import_dump, erp, admin):
    for number in range(3):
        admin.post("/customers", {"customer": {"email": f"here{number}@example.com"}})
    mine = admin.get("/customers?filter[limit]=-1").get_json()["customers"]
    printed = import_dump(shop_file(Shop()), "--new-ids")
    assert printed.row("orders") == [60, 60, 0, 0, 0, 0]
    shop = Shop()
    orders = everything(erp)[0]["orders"]
    assert {order["order_number"] for order in orders} == {
        str(order["id"]) for order in shop.each_order()
    }
    by_number = {order["order_number"]: order for order in orders}
    for order in shop.each_order():
        found = by_number[str(order["id"])]
        email = f"user{order['customer'] - 2}@example.com" if order["customer"] else None
        assert (found["customer"].get("username") is not None) == bool(email)
        if email:
            assert found["customer"]["email"] == email
    after = admin.get("/customers?filter[limit]=-1").get_json()["customers"]
    assert [each for each in after if each in mine] == mine
    again = import_dump(shop_file(Shop()), "--new-ids")
    assert again.row("orders") == [60, 0, 0, 60, 0, 0]


@pytest.mark.slow
def test_id_username_and_email_that_are_in_use(shop_file, import_dump, erp, admin):
    admin.post("/customers", {"customer": {"email": "USER1@example.com", "username": "User2"}})
    here = {row["id"]: row["username"] for row in rows_of(User)}
    printed = import_dump(shop_file(Shop()))
    altered = {line["id"]: line["why"] for line in printed.lines if line["table"] == "users"}
    assert "has the e-mail 'user1@example.com', which was emptied" in altered[3]
    assert "the new username is 'user2-2'" in altered[4]
    assert {row["id"]: row["username"] for row in rows_of(User) if row["id"] in here} == here
    assert len(rows_of(User)) == len(here) + 21
    for taken in here.keys() & set(range(1, 22)):
        assert f"the ID {taken} is in use in this shop" in altered[taken]


class Renamed(Shop):
    """The same shop under another address."""

    def _options(self):
        for number, name, value, autoload in super()._options():
            yield number, name, value.replace("old.example", "new.example"), autoload


@pytest.mark.slow
def test_address_of_the_shop_has_changed(shop_file, import_dump):
    import_dump(shop_file(Shop()))
    refused = import_dump(shop_file(Renamed()), fails=True)
    assert "contains the shop old.example/shop, and this is new.example/shop" in refused.output
    dry = import_dump(shop_file(Renamed()), "--same-shop", "--dry-run")
    assert dry.row("orders") == [60, 0, 0, 60, 0, 0]
    printed = import_dump(shop_file(Renamed()), "--same-shop")
    assert printed.row("orders") == [60, 0, 0, 60, 0, 0]
    again = import_dump(shop_file(Renamed()))
    assert again.row("orders") == [60, 0, 0, 60, 0, 0]
    beside = import_dump(shop_file(Shop()), "--new-ids")
    assert beside.row("orders")[:2] == [60, 60]


@pytest.mark.slow
def test_imports_write_one_event(shop_file, import_dump, erp):
    import_dump(shop_file(Shop()))
    events = erp.get("/events").get_json()["events"]
    assert [event["type"] for event in events] == ["import.completed"]
    data = events[0]["data"]["import"]
    assert data["source"] == "old.example/shop wp_"
    assert data["records"]["orders"]["created"] == 60
    assert len(fetch(select(ImportedRecord.kind).distinct())) == 10


@pytest.mark.both_databases
def test_overwrite_replaces_uses_and_notes_whose_changes_no_time_tells(shop_file, import_dump, erp):
    import_dump(shop_file(Shop(customers=3, coupons=2, orders=12)))
    use = next(
        each
        for each in erp.get("/redemptions", {"limit": -1}).get_json()["redemptions"]
        if each["order_id"] and each["customer_id"]
    )
    paths = [f"/redemptions/{use['id']}", f"/orders/{use['order_id']}/notes"]
    before = [erp.get(path).get_json() for path in paths]
    note = before[1]["order_notes"][0]
    given = {"customer_id": 0, "billing_address": {"email": "other@shop.example"}}
    erp.put(f"/orders/{use['order_id']}", {"order": given})
    erp.put(f"{paths[1]}/{note['id']}", {"order_note": {"note": "changed here"}})
    assert erp.get(paths[0]).get_json()["redemption"]["email"] == "other@shop.example"
    import_dump(shop_file(Shop(customers=3, coupons=2, orders=12)))
    assert erp.get(paths[0]).get_json()["redemption"]["customer_id"] == 0
    import_dump(shop_file(Shop(customers=3, coupons=2, orders=12)), "--overwrite")
    assert [erp.get(path).get_json() for path in paths] == before
    printed = import_dump(shop_file(Shop(customers=3, coupons=2, orders=12)), "--overwrite")
    assert all(row[1:3] == [0, 0] for row in printed.table.values())


@pytest.mark.both_databases
def test_the_use_of_an_order_that_keeps_its_edits_follows_the_order(shop_file, import_dump, erp):
    shop = Shop()
    numbers = [n for n in range(60) if shop.order(n)["coupon"] and shop.order(n)["paid"]]
    order_id = FIRST_ORDER + numbers[0]
    import_dump(shop_file(shop))
    erp.put(f"/orders/{order_id}", {"order": {"note": "edited here"}})
    uses = {"filter[order_id]": order_id}
    before = erp.get("/redemptions", uses).get_json()["redemptions"]
    assert [each["status"] for each in before] == ["confirmed"]
    original = shop.order
    shop.order = lambda number: (
        original(number) | ({"status": "cancelled", "paid": False} if number == numbers[0] else {})
    )
    import_dump(shop_file(shop))
    assert erp.get(f"/orders/{order_id}").get_json()["order"]["status"] != "cancelled"
    assert erp.get("/redemptions", uses).get_json()["redemptions"] == before
    import_dump(shop_file(shop), "--overwrite")
    (use,) = erp.get("/redemptions", uses).get_json()["redemptions"]
    assert use["status"] == "released"


# --- records that were merged or deleted here ---


def customers_of_orders(client):
    orders = client.get("/orders", {"limit": -1}).get_json()["orders"]
    assert all(order["customer_id"] == order["customer"]["id"] for order in orders)
    return {order["id"] - FIRST_ORDER: order["customer_id"] for order in orders}


@pytest.mark.both_databases
@pytest.mark.parametrize("options", [[], ["--overwrite"]])
def test_merged_account_stays_merged(shop_file, import_dump, erp, options):
    kept, removed = FIRST_CUSTOMER, FIRST_CUSTOMER + 1
    import_dump(shop_file(Shop(customers=3, orders=5)))
    body = {"merge": {"customer_id": removed}}
    assert erp.post(f"/customers/{kept}/merge", body).status_code == 200
    printed = import_dump(shop_file(Shop(customers=3, orders=14)), *options)
    assert [line["why"] for line in printed.lines if line["table"] == "users"] == [
        "it was merged into another account of this shop"
    ]
    assert erp.get(f"/customers/{removed}").status_code == 404
    # Its orders, also the new ones, are those of the kept account.
    expected = {
        number: kept if order["customer"] == removed else order["customer"]
        for number, order in enumerate(Shop(customers=3).order(each) for each in range(14))
    }
    assert customers_of_orders(erp) == expected
    assert removed in {Shop(customers=3).order(each)["customer"] for each in range(5, 14)}


@pytest.mark.parametrize("options", [[], ["--overwrite"]])
def test_records_that_were_deleted_here(shop_file, import_dump, erp, options):
    """New records at the source, which refer to them, are imported without them."""
    import_dump(shop_file(Shop(customers=3, coupons=1, orders=5)))
    for path in (
        f"/customers/{FIRST_CUSTOMER}",
        f"/coupons/{FIRST_COUPON}",
        f"/orders/{FIRST_ORDER}",
    ):
        assert erp.delete(f"{path}?force=true").status_code == 200
    printed = import_dump(shop_file(Shop(customers=3, coupons=1, orders=14, notes=2)), *options)
    of_deleted = {Shop(customers=3).order(each)["customer"] for each in range(5, 14)} - {0}
    customers = {each for number, each in customers_of_orders(erp).items() if number > 4} - {0}
    assert FIRST_CUSTOMER in of_deleted
    if options:  # they are imported again
        assert customers == of_deleted
        return
    assert customers == of_deleted - {FIRST_CUSTOMER}
    assert rows_of(Coupon) == []
    assert printed.row("orders")[1:3] == [9, 0]
    left_out = [line["why"] for line in printed.lines if line["table"] == "comments"]
    assert left_out == ["its order was not imported"] * 2


class Without(Shop):
    """A shop of which some rows have changed or, as None, no longer exist, by table and ID."""

    def __init__(self, changed):
        super().__init__()
        self.changed = changed

    def rows(self, name):
        found = ((row, self.changed.get((name, row[0]), dict)) for row in super().rows(name))
        for row, change in found:
            if change is not None:
                values = dict(zip(self.tables[name], row, strict=True)) | change()
                yield tuple(values.values())


def uses_of(coupon_id):
    """The reference and the status of the redemptions of a coupon, without those of no order."""
    return {
        (each["order_id"], each["customer_id"] or each["email"]): each["status"]
        for each in rows_of(Redemption)
        if each["coupon_id"] == coupon_id
    }


def live_lines(order_id):
    """The IDs of the coupon lines at the source whose uses of an order are live."""
    lines = {
        each["target_id"]: each["source_id"]
        for each in rows_of(ImportedRecord)
        if each["kind"] == "order_coupon"
    }
    of_order = (each for each in rows_of(Redemption) if each["order_id"] == order_id)
    return [lines[each["id"]] for each in of_order if each["status"] == "confirmed"]


USED, BUYER = FIRST_COUPON + 1, (FIRST_ORDER + 1, FIRST_CUSTOMER + 1)
"""A coupon, and the first order that uses it, with its customer."""
LINE = ("woocommerce_order_items", 8)
PHONE_ORDER = (None, "phone-order@example.com")


def entry_of(value, key="_used_by"):
    """The row of ``_used_by``, or of another key, of the coupon with a value."""
    rows = Shop().rows("postmeta")
    found = [row[0] for row in rows if row[1:3] == (USED, key) and row[3] == value]
    return "postmeta", found[0]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({LINE: None, entry_of("3"): None}, {BUYER: "released"}),
        # The source counts the use, although the order has no line any more.
        ({LINE: None}, {BUYER: "released", (None, BUYER[1]): "confirmed"}),
        ({entry_of(PHONE_ORDER[1]): None}, {PHONE_ORDER: "released"}),
        # The use of an order that only this shop has is the one that the source counts.
        ({("posts", BUYER[0]): None}, {}),
        ({("posts", BUYER[0]): lambda: {"post_status": "wc-unknown"}}, {}),
        ({("posts", USED): lambda: {"post_title": "renamed"}}, {}),
        ({("posts", FIRST_COUPON + 2): lambda: {"post_title": "code-1"}}, {}),
        ({("posts", USED): None}, {}),
    ],
)
def test_uses_follow_the_source_and_count_once(shop_file, import_dump, app, changed, expected):
    import_dump(shop_file(Shop()))
    before = uses_of(USED)
    assert before[BUYER] == before[PHONE_ORDER] == "confirmed"
    file = shop_file(Without(changed))
    for _ in range(2):
        import_dump(file)
        assert uses_of(USED) == before | expected
    verified = app.test_cli_runner().invoke(args=["import", "verify", str(file)])
    assert verified.exit_code == 0, verified.output


def test_uses_of_no_order_are_found_once(shop_file, import_dump, monkeypatch):
    """With hundreds of thousands of uses, it takes seconds. Each page of uses did it again."""
    statements = []

    @contextmanager
    def traced():
        with staging() as staged:
            staged.connection.set_trace_callback(statements.append)
            yield staged

    import_dump(shop_file(Shop(orders=5)))
    monkeypatch.setattr(importer, "staging", traced)
    monkeypatch.setattr(record_map, "PAGE", 2)
    import_dump(shop_file(Shop(orders=5)))
    assert sum("PARTITION BY" in each for each in statements) == 1


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("changed", "status"),
    [({}, "confirmed"), ({LINE: None, entry_of("3"): None}, "released")],
)
def test_overwrite_frees_the_slot_of_a_use_that_was_reserved_here(
    shop_file, import_dump, erp, changed, status
):
    limited = {entry_of("0", "usage_limit"): lambda: {"meta_value": "100"}}
    import_dump(shop_file(Without(limited)))
    pending = erp.put(f"/orders/{BUYER[0]}", {"order": {"status": "pending"}})
    assert (pending.status_code, uses_of(USED)[BUYER]) == (200, "reserved")
    assert reserved_counts() == {USED: 1}
    import_dump(shop_file(Without(limited | changed)))
    assert (uses_of(USED)[BUYER], reserved_counts()) == ("reserved", {USED: 1})
    import_dump(shop_file(Without(limited | changed)), "--overwrite")
    assert (uses_of(USED)[BUYER], reserved_counts()) == (status, {})


def test_a_use_that_was_reserved_here_counts_once_without_its_order(shop_file, import_dump, erp):
    """The order was removed at the source, which still counts its use."""
    import_dump(shop_file(Shop()))
    assert erp.put(f"/orders/{BUYER[0]}", {"order": {"status": "pending"}}).status_code == 200
    before = uses_of(USED)
    assert before[BUYER] == "reserved"
    import_dump(shop_file(Without({("posts", BUYER[0]): None})))
    assert uses_of(USED) == before


def reserved_counts():
    """The number of reservations of each coupon that has some."""
    return {row["id"]: row["reserved_count"] for row in rows_of(Coupon) if row["reserved_count"]}


def test_a_use_goes_to_another_line_while_other_uses_change(shop_file, import_dump):
    """As if the coupon was removed from the order and added again, and back (from a backup)."""
    import_dump(shop_file(Shop()))
    trashed = {("posts", BUYER[0]): lambda: {"post_status": "trash"}}
    without = {("woocommerce_order_items", 20): None}
    again = {LINE: lambda: {"order_item_id": 9999}}
    changes = [trashed | without, again, {}, again | without]
    for changed, expected in zip(changes, [[], [9999], [8], [9999]], strict=True):
        import_dump(shop_file(Without(changed)))
        assert live_lines(BUYER[0]) == expected
