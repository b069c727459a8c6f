"""``import woocommerce`` of coupons whose conditions plugins store as metadata (campaigns 8)."""

from datetime import UTC, date, datetime, timedelta

import pytest

from app.models import Coupon
from app.models.coupon import CouponOptions
from tests.dumps.schemas import INTEGER, TEXT
from tests.dumps.shop import Shop, php
from tests.plugins.woocommerce.importer.imports import rows_of

WT, ACFW, SC = "_wt_coupon_start_date", "_acfw_schedule_start", "_wc_sc_start_date"
ENABLED = {"_acfw_enable_date_range_schedule": "yes"}
ZERO = "0000-00-00 00:00:00"

pytestmark = pytest.mark.usefixtures("in_app")  # they look into the tables


class PluginShop(Shop):
    """A shop one hour ahead of UTC, with one coupon for each dict of metadata.

    Args:
        coupons: the metadata of each coupon. The key ``status`` is the status of its post, and
            ``title`` its code.
    """

    def __init__(self, *coupons, zone="", rules=()):
        posts, metas, number = [], [], 500_000
        for post_id, given in enumerate(coupons, 60):
            meta = dict(given)
            status, title = meta.pop("status", "publish"), meta.pop("title", f"c{post_id}")
            posts.append(self._coupon(post_id, status, title))
            for key, value in meta.items():
                number += 1
                metas.append((number, post_id, key, value))
        extra = {"posts": posts, "postmeta": metas, "wdr_rules": rules}
        super().__init__(customers=2, coupons=0, orders=0, extra=extra)
        self.tables = {**self.tables, "wdr_rules": {"id": INTEGER, "title": TEXT}}
        self.zone = zone

    def _coupon(self, post_id, status, title):
        created = datetime(2027, 5, 1, 8, tzinfo=UTC) + timedelta(days=post_id - 60)
        local = f"{created + timedelta(hours=1):%F %T}"
        utc = ZERO if status in {"draft", "pending"} else f"{created:%F %T}"
        start = (post_id, 1, local, utc, "", title, "", status, "open", "closed", "", "slug")
        return (*start, "", "", local, utc, "", 0, "", 0, "shop_coupon", "", 0)

    def _options(self):
        for number, name, value, autoload in super()._options():
            yield number, name, self.zone if name == "timezone_string" else value, autoload


@pytest.fixture
def imported(shop_file, import_dump, app):
    """Return a function: import coupons, verify them, and return their rows and their lines."""

    def run(*coupons, verify=True, **options):
        file = shop_file(PluginShop(*coupons, **options))
        printed = import_dump(file)
        if verify:
            result = app.test_cli_runner().invoke(args=["import", "verify", str(file)])
            assert "No differences found." in result.stdout, result.output
        lines = [line["why"] for line in printed.lines if line["table"] == "posts"]
        return [row for row in rows_of(Coupon) if row["id"] >= 60], lines

    return run


def utc(*parts):
    return datetime(*parts, tzinfo=UTC)


STARTS = [
    ({WT: "2026-12-01"}, "", utc(2026, 11, 30, 23)),
    ({WT: "2026-12-01", "_wt_coupon_start_time": "18:30"}, "", utc(2026, 12, 1, 17, 30)),
    ({WT: "2026-12-01", "_wt_coupon_start_time": "9:05"}, "", utc(2026, 12, 1, 8, 5)),
    ({WT: "1796083200", "_wt_coupon_start_time": "01:00"}, "", utc(2026, 12, 1, 0)),
    ({WT: "2026-07-01"}, "America/New_York", utc(2026, 7, 1, 4)),
    ({WT: "2026-12-01"}, "America/New_York", utc(2026, 12, 1, 5)),
    ({WT: "1796083200"}, "America/New_York", utc(2026, 12, 1)),
    ({SC: "2026-12-01 10:00:00"}, "Europe/Berlin", utc(2026, 12, 1, 9)),
    ({SC: "2026-12-01T10:00"}, "", utc(2026, 12, 1, 9)),
    ({SC: "2026-12-01T10:00:00-05:00"}, "", utc(2026, 12, 1, 15)),
    ({SC: " 2026-12-01 "}, "", utc(2026, 11, 30, 23)),
    ({**ENABLED, ACFW: "2026-12-01 00:00:00"}, "", utc(2026, 11, 30, 23)),
    ({ACFW: "2026-12-01 00:00:00"}, "", None),
    ({"_acfw_enable_date_range_schedule": "no", ACFW: "2026-12-01"}, "", None),
    ({WT: "", SC: "2026-12-01"}, "", utc(2026, 11, 30, 23)),
    ({WT: "0", SC: "2026-12-01"}, "", utc(2026, 11, 30, 23)),
    ({WT: None, SC: "2026-12-01"}, "", utc(2026, 11, 30, 23)),
    ({WT: "2026-12-02", SC: "2026-12-01"}, "", utc(2026, 12, 1, 23)),
    ({WT: ZERO}, "", None),
    ({WT: "", SC: "0", "_wt_coupon_start_time": "10:00"}, "", None),
]


@pytest.mark.parametrize("zone", ["", "America/New_York", "Europe/Berlin"])
def test_start(imported, zone):
    rows = [(meta, expected) for meta, of, expected in STARTS if of == zone]
    coupons, lines = imported(*(meta for meta, _ in rows), zone=zone)
    found = [(coupon["starts_at"], coupon["active"]) for coupon in coupons]
    assert found == [(expected, True) for _, expected in rows]
    named = [line for line in lines if "was imported as starts_at" in line]
    assert len(named) == sum(expected is not None for _, expected in rows)


FIRST = "_wjecf_first_purchase_only"
UNFIT = [
    # the metadata, the value that does not fit, and why
    ({WT: "soon"}, f"{WT} 'soon'", "is not a date"),
    ({WT: "2026-13-45"}, f"{WT} '2026-13-45'", "is not a date"),
    ({WT: "1796083200000"}, f"{WT} '1796083200000'", "is not a date"),
    ({WT: php(["x"])}, f"{WT} {php(['x'])!r}", "is not a date"),
    *[
        (
            {WT: "2026-12-01", "_wt_coupon_start_time": time},
            f"{WT} '2026-12-01' has the time '{time}',",
            "which is not a time",
        )
        for time in ("25:00", "noon")
    ],
    ({**ENABLED, "_acfw_schedule_end": "later"}, "_acfw_schedule_end 'later'", "is not a date"),
    ({"wc_sc_max_discount": "a lot"}, "wc_sc_max_discount 'a lot'", "is not an amount"),
    ({"maximum_discount": "-5"}, "maximum_discount '-5'", "is negative"),
    ({"maximum_discount": "0.001"}, "maximum_discount '0.001'", "is less than a cent"),
    ({FIRST: "maybe"}, f"{FIRST} 'maybe'", "is neither 'yes' nor 'no'"),
]


def test_value_that_does_not_fit_pauses_the_coupon(imported):
    coupons, lines = imported(*(meta for meta, *_ in UNFIT))
    assert lines == [f"{value} {why}, so the coupon was paused" for _, value, why in UNFIT]
    for coupon in coupons:
        assert (coupon["status"], coupon["active"]) == ("published", False)
        assert (coupon["starts_at"], coupon["options"]) == (None, CouponOptions())


ENDS = [
    ({**ENABLED, "_acfw_schedule_end": "2026-12-31 00:00:00"}, date(2026, 12, 31)),
    ({**ENABLED, "_acfw_schedule_end": "2026-12-31 23:59:59"}, date(2026, 12, 31)),
    ({**ENABLED, "_acfw_schedule_end": "1798675200"}, date(2026, 12, 31)),
    ({**ENABLED, "_acfw_schedule_end": ""}, None),
    ({**ENABLED, "_acfw_schedule_end": "0"}, None),
    ({"_acfw_schedule_end": "2026-12-31"}, None),
    (
        {**ENABLED, "_acfw_schedule_end": "2026-12-31", "expiry_date": "2026-12-24"},
        date(2026, 12, 24),
    ),
]


def test_end(imported):
    coupons, _ = imported(*(meta for meta, _ in ENDS))
    found = [(coupon["expiry_date"], coupon["active"]) for coupon in coupons]
    assert found == [(expected, True) for _, expected in ENDS]


MAXIMA = [
    ({"wc_sc_max_discount": "50"}, "50.00"),
    ({"_wt_max_discount": "12.345"}, "12.35"),
    ({"maximum_discount": "20.5"}, "20.50"),
    ({"_acfw_percentage_discount_cap": "9", "discount_type": "percent"}, "9.00"),
    ({"_acfw_percentage_discount_cap": "9", "discount_type": "fixed_cart"}, None),
    ({"wc_sc_max_discount": "", "_wt_max_discount": "0", "maximum_discount": "7"}, "7.00"),
    ({"wc_sc_max_discount": "0.00"}, None),
    ({"_wt_max_discount": "5", "maximum_discount": "7"}, "5.00"),
]


def test_maximum_discount(imported):
    coupons, _ = imported(*(meta for meta, _ in MAXIMA))
    found = [(coupon["options"].maximum_discount, coupon["active"]) for coupon in coupons]
    assert found == [(expected, True) for _, expected in MAXIMA]


FIRST_ORDER_ONLY = [
    ({"sc_restrict_to_new_user": "yes"}, True),
    ({"_wjecf_first_purchase_only": "yes"}, True),
    ({"sc_restrict_to_new_user": "no", "_wjecf_first_purchase_only": "yes"}, True),
    ({"sc_restrict_to_new_user": "no"}, False),
    ({"sc_restrict_to_new_user": "", "_wjecf_first_purchase_only": "0"}, False),
]


def test_first_order_only(imported):
    coupons, lines = imported(*(meta for meta, _ in FIRST_ORDER_ONLY))
    found = [(coupon["options"].first_order_only, coupon["active"]) for coupon in coupons]
    assert found == [(expected, True) for _, expected in FIRST_ORDER_ONLY]
    assert len(lines) == sum(expected for _, expected in FIRST_ORDER_ONLY)


CONDITIONS = (
    "wc_sc_user_role_ids",
    "wc_sc_exclude_user_role_ids",
    "_wt_sc_user_roles",
    "_wt_sc_exclude_user_roles",
    "_wjecf_customer_roles",
    "_wjecf_excluded_customer_roles",
    "_acfw_role_restrictions",
    "_acfw_excluded_coupons",
)
SET = (php(["wholesale"]), php({"a": {"b": "c"}}), "wholesale,customer", "a:1:{broken", "7")
UNSET = ("", None, "0", php([]), php([""]), "[]", "no")


def test_condition_that_is_not_mapped_pauses_the_coupon(imported):
    coupons, lines = imported(*({key: value} for key in CONDITIONS for value in SET))
    assert {coupon["active"] for coupon in coupons} == {False}
    assert len(lines) == len(coupons)
    assert all("so the coupon was paused" in line for line in lines)
    assert [line.split()[0] for line in lines[:: len(SET)]] == list(CONDITIONS)


def test_condition_without_a_value(imported):
    coupons, lines = imported(*({key: value} for key in CONDITIONS for value in UNSET))
    assert {coupon["active"] for coupon in coupons} == {True}
    assert lines == []


def test_gifts_are_reported(imported):
    keys = (
        "_acfw_bogo_deals",
        "_wt_sc_bogo_customer_gets",
        "_wjecf_free_product_ids",
        "_wc_free_gift_coupon_data",
    )
    coupons, lines = imported(
        *({key: php([7])} for key in keys), {"discount_type": "smart_coupon"}, {keys[0]: php([])}
    )
    assert {coupon["active"] for coupon in coupons} == {True}
    assert lines[:-1] == [f"{key} is not mapped and has no effect here" for key in keys]
    assert lines[-1] == "the type 'smart_coupon' is unknown, so the coupon was moved to the trash"


def test_rules_without_codes_are_reported(shop_file, import_dump):
    printed = import_dump(shop_file(PluginShop(rules=[(1, "10 % off"), (2, "3 for 2")])))
    (line,) = [line for line in printed.lines if line["table"] == "wdr_rules"]
    assert line["what"] == "left_out"
    assert line["why"] == "2 discount rules without codes are not mapped"


@pytest.mark.both_databases
def test_each_key_has_a_line_and_stays_metadata(shop_file, import_dump, erp):
    meta = {
        WT: "2026-12-01",
        "_wt_coupon_start_time": "10:00",
        SC: "2026-11-01",
        "wc_sc_max_discount": "50",
        "sc_restrict_to_new_user": "yes",
        "_wjecf_customer_roles": php(["vip"]),
    }
    printed = import_dump(shop_file(PluginShop(meta)))
    assert {line["why"].split()[0] for line in printed.lines if line["id"] == 60} == {*meta}
    assert printed.row("coupons") == [1, 1, 0, 0, 1, 0]
    path = "/coupons/60?fields=active,starts_at,maximum_discount,first_order_only"
    assert erp.get(path).get_json()["coupon"] == {
        "active": False,
        "starts_at": "2026-12-01T09:00:00Z",
        "first_order_only": True,
        "maximum_discount": "50.00",
    }
    here = erp.get("/coupons/60?fields=metadata").get_json()["coupon"]["metadata"]
    assert here.keys() == meta.keys()


def test_unpublished_coupons(imported):
    statuses = ("draft", "pending", "future", "private", "trash")
    coupons, lines = imported(*({"status": status} for status in statuses))
    found = [(each["status"], each["active"], each["starts_at"]) for each in coupons]
    assert found == [
        ("published", False, None),
        ("published", False, None),
        ("published", True, utc(2027, 5, 3, 8)),
        ("published", True, None),
        ("trash", True, None),
    ]
    assert lines == [
        "the coupon has the status 'draft' and is published and paused",
        "the coupon has the status 'pending' and is published and paused",
        "the coupon has the status 'future' and is published with its date as start",
        "the coupon has the status 'private' and is published",
    ]


def test_scheduled_coupon_with_a_start_waits_for_both(imported):
    coupons, _ = imported(
        {"status": "future", WT: "2027-06-01"}, {"status": "future", WT: "2026-12-01"}
    )
    assert [each["starts_at"] for each in coupons] == [utc(2027, 5, 31, 23), utc(2027, 5, 2, 8)]


def test_unpublished_coupon_whose_code_is_taken(imported):
    coupons, lines = imported(
        {"title": "same"},
        {"title": "same", "status": "draft"},
        {"title": "same", "status": "future"},
        {"title": "twice", "status": "pending"},
        {"title": "twice", "status": "draft"},
    )
    assert [each["status"] for each in coupons] == [
        "published",
        "trash",
        "trash",
        "trash",
        "published",
    ]
    taken = [line for line in lines if "coupon 60 has the same code" in line]
    assert len(taken) == 2


def test_draft_whose_code_a_coupon_of_this_shop_has(imported, make_coupon):
    make_coupon(code="c60")
    coupons, lines = imported({"status": "draft"}, verify=False)
    assert coupons[0]["status"] == "trash"
    assert "has the code, so the coupon was moved to the trash" in lines[0]


def test_second_import_follows_the_source_and_keeps_what_is_unchanged(shop_file, import_dump):
    import_dump(shop_file(PluginShop({"status": "draft"}, {WT: "2026-12-01"}, {})))
    printed = import_dump(shop_file(PluginShop({"status": "draft"}, {WT: "2026-12-01"}, {})))
    assert printed.row("coupons") == [3, 0, 0, 3, 0, 0]
    printed = import_dump(shop_file(PluginShop({}, {WT: ""}, {WT: "2026-12-02"})))
    assert printed.row("coupons")[1:4] == [0, 3, 0]
    found = [(row["active"], row["starts_at"]) for row in rows_of(Coupon)]
    assert found == [(True, None), (True, None), (True, utc(2026, 12, 1, 23))]
