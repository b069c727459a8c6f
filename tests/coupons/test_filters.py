"""Filters of coupon lists (spec 4.1; decisions 4, 13)."""

from itertools import product

import pytest

from tests.api_client import refused_params, reply
from tests.coupons.lists import letters, totals

MAX = 2**63 - 1


# --- filters ---

# Each row has the keys of a query, and the coupons that it finds.
FILTERS = [
    # q: code and description, part of a word, case ignored
    *[({"q": q}, "A") for q in ("delta", "ELT", "winter sale")],
    ({"q": "sale"}, "AE"),
    *[({"q": q}, "D") for q in ("été", "ÉTÉ", "αθηνα")],
    *[({"q": q}, "B") for q in ("%", "_", "100% off_")],
    *[({"q": q}, "") for q in ("\\", "'", "*", "trash", "alpha100")],
    *[({"q": q}, "ABCDE") for q in ("", "a")],
    # the whole code, in any letter case
    *[({"code": code}, "A") for code in ("delta", " DELTA")],
    *[({"code": code}, "") for code in ("delt", "d%", "sale in the trash")],
    ({"code": "delta", "type": "fixed_cart"}, ""),
    ({"code": "delta", "q": "winter"}, "A"),
    ({"code": "delta", "orderby": "amount"}, "A"),
    ({"code": "", "type": "percent"}, "AC"),
    # type
    ({"type": "percent"}, "AC"),
    ({"type": "fixed_cart"}, "B"),
    ({"type": "percent_product"}, "E"),
    ({"type": ""}, "ABCDE"),
    # moments: at or after, at or before; a date is its midnight
    *[
        ({"created_at_min": f"2026-01-0{moment}"}, "AC")
        for moment in ("3", "3T00:00:00", "3T00:00:00Z", "3T02:00:00+02:00", "2T12:00:00.5Z")
    ],
    *[
        ({"created_at_min": f"2026-01-0{moment}"}, "")
        for moment in ("3T00:00:01Z", "2T19:00:01-05:00")
    ],
    ({"created_at_min": "1767398400"}, "AC"),
    ({"created_at_min": "1767398401"}, ""),
    *[({"created_at_min": moment}, "ABCDE") for moment in ("", "0", "0001-01-01")],
    ({"created_at_max": "2026-01-01T00:00:00Z"}, "BE"),
    ({"created_at_max": "2025-12-31T23:59:59Z"}, ""),
    ({"created_at_max": "2026-01-02"}, "BE"),
    ({"created_at_max": "2026-01-02T12:00:00Z"}, "BDE"),
    ({"created_at_max": "9999-12-31T23:59:59Z"}, "ABCDE"),
    ({"created_at_min": "2026-01-02", "created_at_max": "2026-01-02T23:59:59Z"}, "D"),
    ({"created_at_min": "2026-01-03", "created_at_max": "2026-01-01"}, ""),
    ({"updated_at_min": "2026-01-13"}, "BE"),
    ({"updated_at_max": "2026-01-12"}, "ACD"),
    ({"updated_at_min": "2026-01-12", "updated_at_max": "2026-01-13"}, "CDE"),
    # ids; empty entries are skipped (decisions 14)
    *[({"in": ids}, "AC") for ids in ("{A},{C}", " {A} , {C} ")],
    *[({"in": ids}, "B") for ids in ("{B},", "{B},1" + "0" * 40)],
    *[({"in": ids}, "") for ids in ("0", str(MAX), f"{MAX + 1},{10**30}")],
    *[({"in": ids}, "ABCDE") for ids in ("", " , ")],
    ({"in": "{A},{A}"}, "A"),
    ({"in": "{C},999999"}, "C"),
    ({"in": ",{B}, ,{C},,"}, "BC"),
    *[({"not_in": ids}, "BDE") for ids in ("{A},{C}", "{A},,{C},")],
    *[({"not_in": ids}, "ABCDE") for ids in ("999999", str(10**30), "", ",")],
    ({"in": "{A},{B}", "not_in": "{B}"}, "A"),
    # all together
    ({"q": "sale", "type": "percent", "created_at_min": "2026-01-02"}, "A"),
    ({"q": "sale", "type": "fixed_cart"}, ""),
    # what is no key of a coupon list
    *[({key: "1"}, "ABCDE") for key in ("limit", "unknown", "role")],
    ({"limit": "abc"}, "ABCDE"),
]


@pytest.mark.both_databases
def test_filter(admin, shop):
    for keys, expected in FILTERS:
        query = {f"filter[{key}]": value.format_map(shop) for key, value in keys.items()}
        response = admin.get("/coupons", query | {"filter[orderby]": "id", "filter[order]": "asc"})
        assert letters(response, shop) == expected, keys
        assert totals(response) == (str(len(expected)), "1" if expected else "0"), keys
        counted = reply(admin.get("/coupons/count", query))
        assert counted == (200, {"count": len(expected)}), keys


MOMENTS = ("abc", "2026-13-01", "2026-02-30", "2026-01-01T25:00:00Z", "2026-01-01Tx")


WRONG = {
    "filter[type]": ("unknown", "percent,fixed_cart", "\0"),
    "filter[in]": ("x", "1,x", "1;2", "-1", "1.5", "1,x,2"),
    "filter[not_in]": ("x", "1 2"),
    "filter[created_at_min]": (*MOMENTS, "9" * 5000, "9999-12-31T23:59:59-05:00"),
    "filter[created_at_max]": MOMENTS,
    "filter[updated_at_min]": MOMENTS,
    "filter[updated_at_max]": MOMENTS,
    "filter[q]": ("a\0b",),
}


# A count ignores these.
WRONG_PAGES = {
    "page": ("0", "-1", "abc", "1.5", "1e3", "9" * 5000, "٣"),
    "filter[offset]": ("-1", "abc", "1.5"),
    "filter[order]": ("up", "asc,desc"),
    "filter[orderby]": ("unknown", "registered", "description", "date; DROP TABLE coupons"),
    "fields": ("a\0b",),
}


def test_wrong_parameter_is_rejected(admin, shop):
    for name, values in (WRONG | WRONG_PAGES).items():
        for value in values:
            assert refused_params(admin.get("/coupons", {name: value})) == [name], value
            if name in WRONG:
                assert refused_params(admin.get("/coupons/count", {name: value})) == [name], value


def test_several_wrong_parameters_are_reported_together(admin):
    query = {"page": "x", "filter[orderby]": "x", "filter[offset]": "x", "filter[in]": "x"}
    assert sorted(refused_params(admin.get("/coupons", query))) == sorted(query)


def test_empty_parameter_is_the_default(admin, shop):
    for key in ("filter[order]", "filter[orderby]", "filter[offset]", "filter[limit]", "page"):
        assert letters(admin.get("/coupons", {key: ""}), shop) == "CADEB", key


def test_count_ignores_page_offset_and_limit(admin, shop):
    query = {"page": "3", "filter[offset]": "4", "filter[limit]": "1"}
    assert reply(admin.get("/coupons/count", query)) == (200, {"count": 5})


# --- searches that find many ---


@pytest.mark.both_databases
def test_search_finds_the_same_in_every_way(admin, make_coupon, monkeypatch):
    codes = ["summer-1", "summer sale", "winter sale", "summer-2", "s*"]
    made = [make_coupon(code=code) for code in codes]
    for gone in make_coupon(code="summer gone"), make_coupon(code="winter gone"):
        admin.delete(f"/coupons/{gone['id']}")
    for q, few in product(["summer", "MME", "su", "sale", "nothing", "*"], [0, 1, 1000]):
        monkeypatch.setattr("app.services.common.plans.FEW", few)
        expected = [coupon for coupon in reversed(made) if q.lower() in coupon["code"]]
        response = admin.get("/coupons", {"filter[q]": q})
        count = admin.get("/coupons/count", {"filter[q]": q}).get_json()
        assert (response.get_json(), response.headers["X-Total"], count) == (
            {"coupons": expected},
            str(len(expected)),
            {"count": len(expected)},
        ), (q, few)


@pytest.mark.parametrize("prefix", ["", "/wc-api/v3"])
def test_every_code_is_found_exactly(admin, make_coupon, prefix):
    """The path of a code takes letters, digits, blanks, underscores and hyphens only."""
    name = "filter[code]" if prefix else "code"
    for code in ("50% 5$ 5€", "a.b a+b a/b", "a! #a", "a?b=c&d", "mom's10", "a@b", "\U0001f381"):
        coupon = make_coupon(code=code)
        make_coupon(code=f"{code}x")
        for given in (code, code.upper()):
            found = admin.get(f"{prefix}/coupons", {name: given}).get_json()["coupons"]
            assert [each["id"] for each in found] == [coupon["id"]]
            assert admin.get(f"{prefix}/coupons/count", {name: given}).get_json() == {"count": 1}
        admin.delete(f"/coupons/{coupon['id']}")
        if not prefix:
            (trashed,) = admin.get("/coupons/trash", {name: code}).get_json()["coupons"]
            assert trashed["code"] == code
