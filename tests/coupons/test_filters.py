"""Filters of coupon lists (spec 4.1; decisions 4, 13)."""

from itertools import product

import pytest

from tests.api_client import refused_params, reply
from tests.coupons.lists import letters, shop, totals

__all__ = ["shop"]  # a fixture

MAX = 2**63 - 1


# --- filters ---

FILTERS = [
    # q: code and description, part of a word, case ignored
    ({"q": "delta"}, "A"),
    ({"q": "ELT"}, "A"),
    ({"q": "sale"}, "AE"),
    ({"q": "winter sale"}, "A"),
    ({"q": "été"}, "D"),
    ({"q": "ÉTÉ"}, "D"),
    ({"q": "αθηνα"}, "D"),
    ({"q": "a"}, "ABCDE"),
    ({"q": "%"}, "B"),
    ({"q": "_"}, "B"),
    ({"q": "100% off_"}, "B"),
    ({"q": "\\"}, ""),
    ({"q": "'"}, ""),
    ({"q": "*"}, ""),
    ({"q": "trash"}, ""),
    ({"q": "alpha100"}, ""),
    ({"q": ""}, "ABCDE"),
    # the whole code, in any letter case
    ({"code": "delta"}, "A"),
    ({"code": " DELTA"}, "A"),
    ({"code": "delt"}, ""),
    ({"code": "d%"}, ""),
    ({"code": "sale in the trash"}, ""),
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
    ({"created_at_min": "2026-01-03T00:00:00Z"}, "AC"),
    ({"created_at_min": "2026-01-03T00:00:01Z"}, ""),
    ({"created_at_min": "2026-01-02T12:00:00.5Z"}, "AC"),
    ({"created_at_min": "2026-01-03"}, "AC"),
    ({"created_at_min": "2026-01-03T02:00:00+02:00"}, "AC"),
    ({"created_at_min": "2026-01-02T19:00:01-05:00"}, ""),
    ({"created_at_min": "2026-01-03T00:00:00"}, "AC"),
    ({"created_at_min": "1767398400"}, "AC"),
    ({"created_at_min": "1767398401"}, ""),
    ({"created_at_min": "0"}, "ABCDE"),
    ({"created_at_min": "0001-01-01"}, "ABCDE"),
    ({"created_at_max": "2026-01-01T00:00:00Z"}, "BE"),
    ({"created_at_max": "2025-12-31T23:59:59Z"}, ""),
    ({"created_at_max": "2026-01-02"}, "BE"),
    ({"created_at_max": "2026-01-02T12:00:00Z"}, "BDE"),
    ({"created_at_max": "9999-12-31T23:59:59Z"}, "ABCDE"),
    ({"created_at_min": ""}, "ABCDE"),
    ({"created_at_min": "2026-01-02", "created_at_max": "2026-01-02T23:59:59Z"}, "D"),
    ({"created_at_min": "2026-01-03", "created_at_max": "2026-01-01"}, ""),
    ({"updated_at_min": "2026-01-13"}, "BE"),
    ({"updated_at_max": "2026-01-12"}, "ACD"),
    ({"updated_at_min": "2026-01-12", "updated_at_max": "2026-01-13"}, "CDE"),
    # ids
    ({"in": "{A},{C}"}, "AC"),
    ({"in": " {A} , {C} "}, "AC"),
    ({"in": "{A},{A}"}, "A"),
    ({"in": "{C},999999"}, "C"),
    ({"in": "0"}, ""),
    ({"in": str(MAX)}, ""),
    ({"in": f"{MAX + 1},{10**30}"}, ""),
    ({"in": "{B},1" + "0" * 40}, "B"),
    ({"in": ""}, "ABCDE"),
    ({"not_in": "{A},{C}"}, "BDE"),
    ({"not_in": "999999"}, "ABCDE"),
    ({"not_in": str(10**30)}, "ABCDE"),
    ({"not_in": ""}, "ABCDE"),
    # empty entries are skipped (decisions 14)
    ({"in": "{B},"}, "B"),
    ({"in": ",{B}, ,{C},,"}, "BC"),
    ({"in": " , "}, "ABCDE"),
    ({"not_in": "{A},,{C},"}, "BDE"),
    ({"not_in": ","}, "ABCDE"),
    ({"in": "{A},{B}", "not_in": "{B}"}, "A"),
    # all together
    ({"q": "sale", "type": "percent", "created_at_min": "2026-01-02"}, "A"),
    ({"q": "sale", "type": "fixed_cart"}, ""),
    # what is no key of a coupon list
    ({"limit": "1"}, "ABCDE"),
    ({"limit": "abc"}, "ABCDE"),
    ({"unknown": "x"}, "ABCDE"),
    ({"role": "customer"}, "ABCDE"),
]


@pytest.mark.both_databases
def test_filter(admin, shop):
    for keys, expected in FILTERS:
        query = {f"filter[{key}]": value.format_map(shop) for key, value in keys.items()}
        response = admin.get("/coupons", query | {"filter[orderby]": "id", "filter[order]": "asc"})
        assert letters(response, shop) == expected, (keys, expected)
        assert totals(response) == (str(len(expected)), "1" if expected else "0"), (keys, expected)
        assert reply(admin.get("/coupons/count", query)) == (200, {"count": len(expected)}), (
            keys,
            expected,
        )


def test_filter_rejected(admin, shop):
    for key, value in [
        ("type", "unknown"),
        ("type", "percent,fixed_cart"),
        ("in", "x"),
        ("in", "1,x"),
        ("in", "1;2"),
        ("in", "-1"),
        ("in", "1.5"),
        ("in", "1,x,2"),
        ("not_in", "x"),
        ("not_in", "1 2"),
        *(
            (key, value)
            for key in ("created_at_min", "created_at_max", "updated_at_min", "updated_at_max")
            for value in ("abc", "2026-13-01", "2026-02-30", "2026-01-01T25:00:00Z", "2026-01-01Tx")
        ),
        ("created_at_min", "9" * 5000),
        ("created_at_min", "9999-12-31T23:59:59-05:00"),
        ("q", "a\0b"),
        ("type", "\0"),
    ]:
        query = {f"filter[{key}]": value}
        assert refused_params(admin.get("/coupons", query)) == [f"filter[{key}]"], (key, value)
        assert refused_params(admin.get("/coupons/count", query)) == [f"filter[{key}]"], (
            key,
            value,
        )


def test_query_rejected(admin, shop):
    for parameter, value in [
        ("page", "0"),
        ("page", "-1"),
        ("page", "abc"),
        ("page", "1.5"),
        ("page", "1e3"),
        ("page", "9" * 5000),
        ("page", "٣"),
        ("filter[offset]", "-1"),
        ("filter[offset]", "abc"),
        ("filter[offset]", "1.5"),
        ("filter[order]", "up"),
        ("filter[order]", "asc,desc"),
        ("filter[orderby]", "unknown"),
        ("filter[orderby]", "registered"),
        ("filter[orderby]", "description"),
        ("filter[orderby]", "date; DROP TABLE coupons"),
        ("fields", "a\0b"),
    ]:
        assert refused_params(admin.get("/coupons", {parameter: value})) == [parameter], (
            parameter,
            value,
        )


def test_several_wrong_parameters_are_reported_together(admin):
    query = {"page": "x", "filter[orderby]": "x", "filter[offset]": "x", "filter[in]": "x"}
    assert sorted(refused_params(admin.get("/coupons", query))) == sorted(query)


def test_empty_parameter_is_the_default(admin, shop):
    for parameter in [
        "filter[order]",
        "filter[orderby]",
        "filter[offset]",
        "filter[limit]",
        "page",
    ]:
        assert letters(admin.get("/coupons", {parameter: ""}), shop) == "CADEB", parameter


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


SIGNS = (
    "50%",
    "5$",
    "5€",
    "a.b",
    "a+b",
    "a/b",
    "a!",
    "#a",
    "a?b=c&d",
    "mom's10",
    "a@b",
    "\U0001f381",
)


@pytest.mark.parametrize("prefix", ["", "/wc-api/v3"])
def test_every_code_is_found_exactly(admin, make_coupon, prefix):
    """The path of a code takes letters, digits, blanks, underscores and hyphens only."""
    name = "filter[code]" if prefix else "code"
    for code in SIGNS:
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
