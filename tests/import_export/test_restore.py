"""Export, restore, export: the same bytes and rows for any content of a shop (migration 2)."""

import json
import os
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import marshmallow as ma
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Boolean, Integer, String, insert, select

from app.auth.principals import Permission
from app.conversions.emails import comparable_email
from app.conversions.numbers import MAX_COUNT
from app.conversions.text import comparable, coupon_code
from app.db.read_pool import fetch
from app.db.search import email_key, search_text
from app.db.session import run_in_transaction
from app.db.sql.types import Money, UtcDateTime
from app.import_export import export_kinds
from app.models import (
    COUPONS,
    USERS,
    Campaign,
    Coupon,
    CouponBatch,
    DownloadPermission,
    MergedAccount,
    Order,
    OrderNote,
    OrderRefund,
    Redemption,
    RowCount,
    User,
    UserRole,
    UserTag,
)
from app.models.address import ADDRESS_COLUMNS
from app.models.coupon import ON_REQUEST, CouponOptions
from app.models.user import ON_REQUEST as OF_USERS
from app.models.user import with_normalized
from app.schemas.fields import output as fields
from app.schemas.orders.order import OrderSchema
from app.schemas.orders.refund import RefundItemSchema
from app.services.api_keys.writes import create_key
from app.services.campaigns.writes import with_search_text
from app.services.orders.columns import derived_columns
from app.services.orders.items import KINDS as ITEM_LISTS
from tests.api_client import Client
from tests.commands import succeed
from tests.databases import empty
from tests.factories import ORDER

MODELS = (
    User, UserRole, UserTag, MergedAccount, Campaign, CouponBatch, Coupon, Order, OrderNote, DownloadPermission, OrderRefund,
    Redemption,
)  # fmt: skip
KINDS = tuple(export_kinds.KINDS)

HOSTILE = (
    "", " ", "'", '"', "\\", "\\|", "|", "=1+1", "+1", "-1", "@x", "\t", "\r\n", "\n", "''", "null", "true",
    "\u2028\u2029", "\ufeff", "\uffff", "\U0001f600", "e\u0301", "\x7f\x85", "ς", "İ", "<b>", "&amp;", "%s", "0", "1e5",
)  # fmt: skip
TEXT = st.sampled_from(HOSTILE) | st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8
)
NAME = TEXT.filter(bool)
CODE = TEXT.map(coupon_code).filter(bool)
ID = st.integers(1, 30) | st.integers(1, 2**62)
SECONDS = st.integers(int(datetime.min.replace(tzinfo=UTC).timestamp()), 253402300799)
TIME = SECONDS.map(lambda seconds: datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds))
MONEY = st.integers(-(10**15), 10**15).map(lambda cents: Decimal(cents).scaleb(-2))
COUNT = st.integers(0, 10**15 - 1)
TAGS = st.lists(
    st.sampled_from(["newsletter", "loyalty", "\u00e9t\u00e9", "a|b", "=1"]), unique=True
)
IDS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXT
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)  # fmt: skip
VALUES = {
    fields.Identifier: ID, fields.OptionalIdentifier: st.none() | ID, fields.Number: st.integers(0, 9),
    fields.Amount: MONEY.map(str), fields.String: TEXT, fields.OptionalString: st.none() | TEXT,
    fields.Boolean: st.booleans(), ma.fields.List: st.just([]),
}  # fmt: skip


def lines(schema):
    """Up to two items of an order with the values that responses show, and one that they do not."""
    shown = schema._declared_fields.items()
    values = {name: VALUES[type(field)] for name, field in shown if type(field) in VALUES}
    return st.lists(st.fixed_dictionaries(values, optional={"x": JSON}), max_size=2)


def some(strategy):
    return st.none() | strategy


OF_TYPE = {
    String: TEXT, UtcDateTime: TIME, Money: MONEY, Boolean: st.booleans(), Integer: ID,
}  # fmt: skip


def later(table, names):
    """Values of columns by the types of the columns, so that a new field needs no line here."""
    found = {}
    for column in (table.c[name] for name in names):
        value = next((OF_TYPE[kind] for kind in OF_TYPE if isinstance(column.type, kind)), None)
        if value is not None:
            found[column.name] = some(value) if column.nullable else value
    return found


def records(columns, **unique):
    """Up to 3 records whose named values are unique."""
    by = [lambda record, name=name, way=way: way(record[name]) for name, way in unique.items()]
    return st.lists(st.fixed_dictionaries(columns), max_size=3, unique_by=tuple(by))


@st.composite
def shops(draw):
    """Rows of a shop, by model."""
    address = dict.fromkeys(ADDRESS_COLUMNS, TEXT)
    times = {"created_at": TIME, "updated_at": TIME}
    same = lambda value: value  # noqa: E731  # a function of one line, like those beside it
    users = draw(
        records(
            {**later(USERS, OF_USERS), "id": ID, "username": NAME, "email": NAME, "first_name": TEXT, "last_name": TEXT,
             "password_hash": some(TEXT), "tags": some(TAGS.filter(bool)), **times, **address},
            id=same, username=comparable, email=comparable,
        )
    )  # fmt: skip
    user_id = st.sampled_from([None, *(user["id"] for user in users)])
    roles = [
        {
            "user_id": user["id"],
            "role": role,
            "position": position,
            "registered_at": user["created_at"],
        }
        for user in users
        for position, role in enumerate(draw(st.lists(TEXT, max_size=3, unique=True)))
    ]
    tags = [{"user_id": user["id"], "tag": tag} for user in users for tag in user["tags"] or ()]
    merged = draw(
        records(
            {"id": ID, "customer_id": st.sampled_from([user["id"] for user in users]) if users else st.nothing(), "email": TEXT},
            id=same, email=lambda email: comparable_email(email) or object(),
        )
    ) if users else []  # fmt: skip
    campaigns = draw(
        records(
            {"id": ID, "name": NAME, **times, "active": st.booleans(), "starts_at": some(TIME),
             "ends_at": some(TIME), "usage_limit": st.just(0), "usage_limit_per_user": st.just(0),
             "budget": st.none(), "tags": TAGS, "combines_with": TAGS},
            id=same,
        )
    )  # fmt: skip
    batches = draw(
        records(
            {"campaign_id": some(ID), "id": ID, "author_id": user_id, "created_at": TIME, "count": st.integers(1, 2**62),
             "prefix": TEXT, "pattern": TEXT, "charset": TEXT},
            id=same,
        )
    )  # fmt: skip
    flag = st.booleans()
    coupons = draw(
        records(
            {**later(COUPONS, ON_REQUEST), "id": ID, "status": st.sampled_from(["published", "trash"]), "author_id": user_id, "code": CODE,
             "type": TEXT, **times, "amount": MONEY, "individual_use": flag, "product_ids": IDS,
             "exclude_product_ids": IDS, "usage_limit": COUNT, "usage_limit_per_user": COUNT,
             "limit_usage_to_x_items": COUNT, "usage_count": COUNT, "reserved_count": COUNT,
             "expiry_date": some(st.dates(date(1, 1, 1))), "enable_free_shipping": flag,
             "product_category_ids": IDS, "exclude_product_category_ids": IDS, "exclude_sale_items": flag,
             "minimum_amount": some(MONEY.filter(bool)), "maximum_amount": some(MONEY.filter(bool)),
             "customer_emails": st.lists(TEXT, max_size=3), "description": TEXT, "trashed_at": some(TIME),
             "batch_id": some(ID),
             "options": st.builds(
                 CouponOptions, tags=TAGS, combines_with=TAGS, customer_tags=TAGS,
                 first_order_only=flag, maximum_discount=st.sampled_from([None, "0.01", "50.00"]),
                 buy_quantity=COUNT, get_quantity=COUNT, get_product_ids=st.lists(ID, max_size=3, unique=True),
             )},
            id=same, code=same,
        )
    )  # fmt: skip
    orders = draw(
        records(
            {**{name: st.just(value) for name, value in ORDER.items()}, **address, **times, "id": ID,
             "customer_id": user_id, "order_key": TEXT, "order_number": TEXT, "completed_at": some(TIME),
             "status": st.sampled_from(["pending", "completed", "trash", "of-a-plugin"]), "currency": TEXT,
             "total": MONEY, "subtotal": MONEY, "cart_tax": MONEY, "note": TEXT,
             **{name: lines(OrderSchema._declared_fields[name].line) for name in ITEM_LISTS},
             "item_details": some(st.dictionaries(TEXT, st.dictionaries(TEXT, JSON, max_size=2), max_size=2)),
             "next_item_id": st.integers(1, 2**62), "trashed_at": some(TIME), "status_before_trash": some(TEXT),
             **dict.fromkeys(("transaction_id", "created_via", "cart_hash", "version"), TEXT),
             "paid_at": some(TIME), "parent_id": some(ID), "prices_include_tax": flag, "discount_tax": MONEY,
             "total_refunded": MONEY, "items": some(COUNT), "fees": some(MONEY), "erased_at": some(TIME)},
            id=same, order_key=same,
        )
    )  # fmt: skip
    order_ids = [order["id"] for order in orders]
    of_order = st.sampled_from(order_ids) if order_ids else st.nothing()
    notes = downloads = refunds = []
    if order_ids:
        note = {
            "id": ID,
            "order_id": of_order,
            "created_at": TIME,
            "note": TEXT,
            "customer_note": flag,
            "author": TEXT,
        }
        notes = draw(records(note, id=same))
        names = ("download_id", "download_name", "download_url", "file_name", "file_url")
        download = {"id": ID, "order_id": of_order, "product_id": ID, **dict.fromkeys(names, TEXT),
                    "downloads_remaining": some(COUNT), "access_expires": some(TIME)}  # fmt: skip
        downloads = draw(records(download, id=same))
        refund = {"id": ID, "order_id": of_order, **times, "amount": MONEY.filter(lambda amount: amount > 0), "reason": TEXT,
                  "refunded_by": user_id, "line_items": lines(RefundItemSchema)}  # fmt: skip
        refunds = draw(records(refund, id=same))
    redemptions = draw(
        records(
            {"id": ID, "coupon_id": st.sampled_from([None, *(coupon["id"] for coupon in coupons)]),
             "code": TEXT.map(coupon_code), "reference": TEXT, "order_id": some(ID), "customer_id": user_id, "email": TEXT,
             "amount": some(MONEY), "campaign_id": some(ID), "status": st.just("reserved"), "holds_slot": flag, **times,
             "expires_at": some(TIME), "confirmed_at": some(TIME)},
            id=same, reference=same, order_id=lambda value: value or object(),
        )
    )  # fmt: skip
    return {
        User: [with_normalized(user) for user in users],
        UserRole: roles,
        UserTag: tags,
        MergedAccount: [
            each | {"email_normalized": comparable_email(each["email"]) or None} for each in merged
        ],
        Campaign: [with_search_text(campaign) for campaign in campaigns],
        CouponBatch: batches,
        Coupon: [
            coupon | {"search_text": search_text(coupon["code"], coupon["description"])}
            for coupon in coupons
        ],
        Order: [order | derived_columns(order) for order in orders],
        OrderNote: notes,
        DownloadPermission: downloads,
        OrderRefund: refunds,
        Redemption: [use | {"email_normalized": email_key(use["email"])} for use in redemptions],
    }


@pytest.fixture
def second_app(make_app, migrated_database_url):
    """An app on an empty database of its own."""
    return make_app(DATABASE_URL=migrated_database_url)


def fill(app, shop):
    def work(session):
        empty(session.connection())
        for model, rows in shop.items():
            if rows:
                session.execute(insert(model), rows)

    with app.app_context():
        run_in_transaction(work)


def columns_of(model):
    """The columns without those that begin again after a restore."""
    restarted = {"revision", "edited_at"}
    return [column for column in model.__table__.c if column.name not in restarted]


def stored(app):
    with app.app_context():
        return {
            model.__tablename__: sorted(map(tuple, fetch(select(*columns_of(model)))), key=repr)
            for model in (*MODELS, RowCount)
        }


@pytest.mark.parametrize("examples", [3, pytest.param(25, marks=pytest.mark.slow)])
def test_every_kind_of_record_is_restored(app, second_app, tmp_path, examples):
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    @given(shop=shops())
    def is_restored(shop):
        fill(app, shop)
        fill(second_app, {})
        first, second = tmp_path / "first.ndjson", tmp_path / "second.ndjson"
        succeed(app, "export", "all", first, "--password-hashes")
        succeed(second_app, "import", "--restore", first)
        succeed(second_app, "export", "all", second, "--password-hashes")
        assert first.read_bytes() == second.read_bytes()
        before, after = stored(app), stored(second_app)
        counts = before.pop("row_counts"), after.pop("row_counts")
        assert before == after
        # The shards of the counts differ, their sums do not.
        sums = [{}, {}]
        for found, rows in zip(sums, counts, strict=True):
            for table, partition, week, _, number in rows:
                key = table, partition, week
                found[key] = found.get(key, 0) + number
        assert {k: v for k, v in sums[0].items() if v} == {k: v for k, v in sums[1].items() if v}

    is_restored()


@pytest.fixture
def exported(app, admin, make_coupon, make_customer, tmp_path):
    """A shop that was filled by the API, and one file for each of its kinds."""
    customer = make_customer(first_name="Ada", tags=["vip"])
    campaign = {"name": "Spring", "budget": "500", "usage_limit": 9, "tags": ["spring"]}
    campaign |= {"starts_at": "2020-01-01", "ends_at": "2999-01-01", "combines_with": ["-x"]}
    campaign = admin.post("/campaigns", {"campaign": campaign}).get_json()["campaign"]
    coupon = make_coupon(
        code="summer",
        usage_limit=5,
        customer_emails=["*@example.com"],
        campaign_id=campaign["id"],
        combines_with=["spring"],
        starts_at="2020-01-01T10:00:00Z",
    )
    admin.delete(f"/coupons/{make_coupon(code='gone')['id']}")
    admin.post(
        "/coupons/generate", {"generate": {"count": 3, "coupon": {"campaign_id": campaign["id"]}}}
    )
    line = {
        "product_id": 1,
        "name": "Mug",
        "price": "8.00",
        "quantity": 1,
        "meta": [{"key": "a", "value": 1.5}],
    }
    order = {
        "customer_id": customer["id"],
        "line_items": [line],
        "coupon_lines": [{"code": "summer"}],
    }
    for status in ("completed", "pending"):
        made = admin.post("/orders", {"order": {**order, "status": status}}).get_json()["order"]
        admin.post(f"/orders/{made['id']}/notes", {"order_note": {"note": "Packed."}})
        admin.post(f"/orders/{made['id']}/refunds", {"order_refund": {"amount": "1.00"}})
    admin.delete(f"/orders/{made['id']}")
    admin.post(
        "/redemptions",
        {
            "redemption": {
                "code": coupon["code"],
                "reference": "cart-1",
                "amount": "2.00",
                "email": "a@example.com",
            }
        },
    )
    files = [tmp_path / f"{kind}.ndjson" for kind in KINDS]
    for kind, file in zip(KINDS, files, strict=True):
        succeed(app, "export", kind, file)
    return files


def test_files_of_all_kinds_in_any_order(app, second_app, exported, tmp_path):
    result = succeed(second_app, "import", "--restore", *reversed(exported))
    numbers = {
        kind: len(file.read_text().splitlines()) for kind, file in zip(KINDS, exported, strict=True)
    }
    assert numbers == {"customers": 2, "campaigns": 1, "batches": 1, "coupons": 5, "orders": 2, "refunds": 2,
        "redemptions": 3}  # fmt: skip
    assert result.stdout == "".join(
        f"{kind}: {number} restored.\n" for kind, number in numbers.items()
    )
    for kind, file in zip(KINDS, exported, strict=True):
        again = tmp_path / "again.ndjson"
        succeed(second_app, "export", kind, again)
        assert again.read_bytes() == file.read_bytes()
    before, after = stored(app), stored(second_app)
    for table in (
        "campaigns",
        "coupons",
        "orders",
        "order_notes",
        "redemptions",
        "user_roles",
        "coupon_batches",
    ):
        assert before[table] == after[table]


@pytest.mark.slow
@pytest.mark.both_databases
def test_new_records_have_ids_that_were_never_used(app, second_app, exported, admin, client_for):
    succeed(second_app, "import", "--restore", *exported)
    with second_app.app_context():
        ids = {model: fetch(select(model.id)) for model in (Coupon, Order, User, CouponBatch)}
    with second_app.app_context():
        key = create_key("new", "administrator", Permission.READ_WRITE, "")
    client = Client(second_app, key)
    coupon = client.post("/coupons", {"coupon": {"code": "new"}}).get_json()["coupon"]
    order = client.post("/orders", {"order": {}}).get_json()["order"]
    batch = client.post("/coupons/generate", {"generate": {"count": 1}}).get_json()["batch"]
    for model, new in ((Coupon, coupon["id"]), (Order, order["id"]), (CouponBatch, batch["id"])):
        assert new > max(row[0] for row in ids[model])
    use = client.post(
        "/redemptions",
        {
            "redemption": {
                "code": "summer",
                "reference": "new",
                "amount": "1.00",
                "email": "a@example.com",
            }
        },
    )
    assert use.status_code == 201
    note = client.post(f"/orders/{order['id']}/notes", {"order_note": {"note": "x"}})
    assert note.status_code == 201


def test_the_id_of_a_deleted_order_with_redemptions_is_not_reused(second_app, tmp_path):
    line = {"kind": "redemption", "id": 1, "coupon_id": None, "code": "x", "reference": "order-70",
            "order_id": 70, "customer_id": 0, "email": "", "amount": None, "status": "released",
            "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z",
            "expires_at": None, "holds_slot": False}  # fmt: skip
    file = tmp_path / "redemptions.ndjson"
    file.write_text(json.dumps(line))
    succeed(second_app, "import", "--restore", file)

    def work(session):
        values = {**ORDER, "order_key": "k", "search_text": ""}
        return session.scalar(insert(Order).values(values).returning(Order.id))

    with second_app.app_context():
        assert run_in_transaction(work) == 71


def changed(file, **over):
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[-1] |= over
    if lines[-1]["id"] == "first":
        lines[-1]["id"] = lines[0]["id"]
    file.write_text("\n".join(map(json.dumps, lines)))
    return len(lines)


ITEM = {"id": 1, "subtotal": "8.00", "subtotal_tax": "0.00", "total": "8.00", "total_tax": "0.00",
        "price": "8.00", "quantity": 1, "tax_class": None, "name": "Mug", "product_id": None,
        "sku": None, "meta": []}  # fmt: skip
INVALID = [
        ("coupons", {"amount": 10}, 'amount: must be an amount such as "10.00".'),
        ("coupons", {"amount": "10"}, 'amount: must be an amount such as "10.00".'),
        ("coupons", {"amount": "NaN"}, 'amount: must be an amount such as "10.00".'),
        ("coupons", {"created_at": "yesterday"}, 'created_at: must be a time such as "2026-11-20T09:38:00Z".'),
        ("coupons", {"created_at": "2026-13-20T09:38:00Z"}, "created_at: "),
        ("coupons", {"code": 5}, "code: must be a string without NUL."),
        ("coupons", {"code": "a\0"}, "code: must be a string without NUL."),
        ("coupons", {"code": None}, "code: must not be null."),
        ("coupons", {"individual_use": "true"}, "individual_use: must be true or false."),
        ("coupons", {"usage_count": 2**63}, "usage_count: must be a 64-bit integer."),
        ("coupons", {"usage_count": True}, "usage_count: must be a 64-bit integer."),
        ("coupons", {"product_ids": [True]}, "product_ids: must be an array of integers."),
        ("coupons", {"product_ids": [2**64]}, "product_ids: must be an array of integers."),
        ("coupons", {"customer_emails": "a"}, "customer_emails: must be an array of strings."),
        ("coupons", {"status": "draft"}, "the database rejects the record: "),
        ("coupons", {"author_id": 999}, "It refers to a record that does not come before it in the files."),
        ("coupons", {"kind": "cupon"}, "kind: must be one of customer, campaign, batch, coupon, order, order_refund, redemption."),
        ("coupons", {"kind": "order"}, "payment_details: must be an object."),
        ("customers", {"billing_address": []}, "billing_address: must be an object."),
        ("customers", {"billing_address": {}}, "billing_first_name: is missing."),
        ("customers", {"roles": "customer"}, "roles: must be an array of strings."),
        ("customers", {"roles": ["a", "a"]}, "the database rejects the record: "),
        ("customers", {"id": "first"}, "the database rejects the record: "),
        ("orders", {"line_items": [1]}, "line_items: must be an array of objects."),
        ("orders", {"notes": {}}, "notes: must be an array of objects."),
        ("orders", {"notes": [{}]}, "id: is missing."),
        ("orders", {"item_details": []}, "item_details: must be an object."),
        ("orders", {"item_details": {"1": 5}}, "item_details: must be an object of objects."),
        ("orders", {"line_items": [{**ITEM, "quantity": "x"}]}, "line_items[0].quantity: must be a 64-bit integer."),
        ("orders", {"line_items": [{**ITEM, "quantity": -1}]}, "line_items[0].quantity: must be at least 0."),
        ("orders", {"line_items": [ITEM, {**ITEM, "name": 5}]}, "line_items[1].name: must be a string without NUL."),
        ("orders", {"line_items": [{**ITEM, "id": -1}]}, "line_items[0].id: must be at least 1."),
        ("orders", {"line_items": [{**ITEM, "total": 5}]}, 'line_items[0].total: must be an amount such as "10.00".'),
        ("orders", {"line_items": [{"id": 1}]}, "line_items[0].subtotal: is missing."),
        ("orders", {"line_items": [{**ITEM, "meta": 5}]}, "line_items[0].meta: must be an array of objects."),
        ("orders", {"line_items": [{**ITEM, "meta": [{"key": []}]}]}, "line_items[0].meta.key: must be a string"),
        ("orders", {"coupon_lines": [{"id": 1, "code": [], "amount": "1.00"}]}, "coupon_lines[0].code: must be"),
        ("orders", {"fee_lines": None}, "fee_lines: must be an array of objects."),
        ("orders", {"id": 0}, "id: must be at least 1."),
        ("orders", {"next_item_id": -1}, "next_item_id: must be at least 0."),
        ("refunds", {"line_items": [{"id": 1, "quantity": [], "total": "1.00", "total_tax": "0.00"}]},
         "line_items[0].quantity: must be a 64-bit integer."),
        ("coupons", {"id": -1}, "id: must be at least 1."),
        ("coupons", {"usage_count": -1}, "usage_count: must be at least 0."),
        ("coupons", {"customer_emails": ["\0"]}, "customer_emails: must be a string without NUL."),
        ("coupons", {"kind": []}, "kind: must be one of customer, campaign, batch, "),
    ]  # fmt: skip


@pytest.mark.parametrize("invalid", [INVALID[::5], pytest.param(INVALID, marks=pytest.mark.slow)])
def test_a_line_that_is_not_valid_restores_nothing(second_app, exported, invalid):
    """All cases on one database, which stays empty."""
    empty = stored(second_app)
    contents = {file: file.read_bytes() for file in exported}
    seen, wanted = [], []
    for kind, over, message in invalid:
        for file, content in contents.items():
            file.write_bytes(content)
        number = changed(exported[KINDS.index(kind)], **over)
        files = map(str, exported)
        result = second_app.test_cli_runner().invoke(args=["import", "--restore", *files])
        place = f"{kind}.ndjson, line {number}: "
        found = [text in result.stderr for text in (place, message)]
        seen.append((kind, over, message, result.exit_code, result.stdout, found))
        wanted.append((kind, over, message, 1, "", [True, True]))
    assert seen == wanted
    assert stored(second_app) == empty


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{\n", "line 1: is not valid JSON: "),
        (b"\n\n[]\n", "line 3: must be a JSON object."),
        (b'{"kind": "\xff"}\n', "line 1: is not valid UTF-8: byte 0xff"),
        (b'{"kind": "\\ud800"}\n', "line 1: is not valid JSON: "),
        (b'{"kind": NaN}\n', "line 1: is not valid JSON: "),
        (b"id,code\n1,x\n", "line 1: is not valid JSON: "),
    ],
)
def test_a_file_that_is_not_ndjson(second_app, tmp_path, data, message):
    file = tmp_path / "broken.ndjson"
    file.write_bytes(data)
    result = second_app.test_cli_runner().invoke(args=["import", "--restore", str(file)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


def test_a_pipe_is_read_once(second_app):
    """As the shell passes the output of a command: ``<(zcat shop.ndjson.gz)``."""
    reading, writing = os.pipe()
    os.write(writing, b"[]\n")
    os.close(writing)
    arguments = ["import", "--restore", f"/dev/fd/{reading}"]
    result = second_app.test_cli_runner().invoke(args=arguments)
    os.close(reading)
    assert "line 1: must be a JSON object." in result.stderr


def test_only_into_an_empty_database(app, exported, everything_stored):
    before = everything_stored()
    for file in exported:
        result = app.test_cli_runner().invoke(args=["import", "--restore", str(file)])
        kind = file.stem
        assert f"The database already contains {kind}." in result.stderr
        assert result.exit_code == 1
    assert everything_stored() == before


@pytest.fixture
def everything_stored(app):
    return lambda: stored(app)


@pytest.mark.slow
def test_from_standard_input(app, second_app, exported):
    data = b"".join(file.read_bytes() for file in exported)
    succeed(second_app, "import", "--restore", "-", input=data)
    assert stored(second_app)["orders"] == stored(app)["orders"]


def test_coupons_of_an_earlier_version(app, second_app, make_coupon, tmp_path):
    """Their codes are normalized, and their counts reduced to 15 digits. No later field is needed."""
    older, newer = make_coupon(code="summer"), make_coupon(code="x")
    file = tmp_path / "coupons.ndjson"
    succeed(app, "export", "all", file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    (found,) = (line for line in lines if line.get("code") == "x")
    found |= {"code": "Sum\u200bmer", "usage_limit": 10**15, "usage_count": 2**63 - 1}
    added = {*ON_REQUEST, *OF_USERS, "campaign_id"}
    earlier = [{name: each[name] for name in each if name not in added} for each in lines]
    file.write_text("".join(json.dumps(line) + "\n" for line in earlier))
    result = succeed(second_app, "import", "restore", file)
    for message in ("has the code 'summer~", "usage_limit is 999", "usage_count is 999"):
        assert message in result.output
    with second_app.app_context():
        columns = COUPONS.c.code, COUPONS.c.usage_limit, COUPONS.c.usage_count
        rows = fetch(select(*columns).order_by(COUPONS.c.id))
    assert [tuple(row) for row in rows] == [
        ("summer", older["usage_limit"] or 0, 0),
        (f"summer~{newer['id']}", MAX_COUNT, MAX_COUNT),
    ]


def test_empty_files(second_app, tmp_path):
    file = tmp_path / "empty.ndjson"
    file.write_bytes(b"")
    printed = succeed(second_app, "import", "--restore", file).stdout
    assert printed == "The files contain no records.\n"
    missing = second_app.test_cli_runner().invoke(args=["import", "--restore", "/no/such/file"])
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert "/no/such/file: No such file or directory." in missing.stderr
    usage = second_app.test_cli_runner().invoke(args=["import", "--restore"])
    assert usage.exit_code == 2


@pytest.mark.slow
def test_without_password_hashes_accounts_have_no_password(
    app, second_app, exported, admin, make_customer
):
    make_customer(password="secret")
    file = exported[0]
    succeed(app, "export", "customers", file)
    assert "password" not in file.read_text()
    succeed(second_app, "import", "--restore", file)
    with second_app.app_context():
        assert {row[0] for row in fetch(select(User.password_hash))} == {None}
