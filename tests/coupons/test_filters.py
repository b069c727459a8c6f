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


WRONG = {
    "filter[type]": ("unknown", "percent,fixed_cart", "\0"),
    "filter[in]": ("x", "1,x", "1;2", "-1", "1.5", "1,x,2"),
    "filter[not_in]": ("x", "1 2"),
}


def test_wrong_parameter_is_rejected(admin, shop):
    for name, values in WRONG.items():
        for value in values:
            for path in ("/coupons", "/coupons/count"):
                assert refused_params(admin.get(path, {name: value})) == [name], value


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
