"""The code that the service shows finds, changes and writes back its coupon (decisions 4)."""

import pytest

from tests.api_client import codes
from tests.coupons.test_evaluate import reasons
from tests.redemptions.calls import reserve

V3 = {"base_url": "https://shop.example"}
LINE = {"name": "Mug", "quantity": 2, "total": "20.00"}


def v3(admin, method, path, body=None, **query):
    options = V3 | ({} if body is None else {"json": body})
    response = admin.request(method, f"/wp-json/wc/v3{path}", query_string=query, **options)
    assert response.status_code < 300, response.get_json()
    return response.get_json()


CODES = [
    # as it is created, as it is shown, as it is typed
    ("Cut&Copy", "cut&copy", "CUT&COPY"),
    ("x&amp;amp;y", "x&y", "X&amp;Y"),
    ("x&amp;lt;y", "x<y", "X&lt;Y"),
    ("&amp;copy;z", "\u00a9z", "&COPY;z"),
    ("n&Eacute;t", "nét", "N&EACUTE;T"),
    ("s&sect5", "s&sect5", "S&SECT5"),
    ("\u200bsum\u00admer\ufe0f", "summer", "SUMMER\u200f"),
    ("\u0130ND\u0130R\u0130M10", "indirim10", "I\u0307ndirim10"),
    ("indirim", "indirim", "\u0130ND\u0130R\u0130M"),
    ("\uff53\uff41\uff4c\uff45", "sale", "SA\u2060LE"),
]


@pytest.mark.parametrize(("given", "shown", "typed"), CODES)
def test_a_shown_code_is_the_same_code(admin, make_coupon, given, shown, typed):
    coupon = make_coupon(code=given)
    assert coupon["code"] == shown
    for code in (given, shown, typed):
        assert reasons(admin, code) == []
        body = {"coupon": {"code": code}}
        again = admin.post("/coupons", body)
        assert codes(again) == (400, "shop_api_coupon_code_already_exists")
        kept = admin.put(f"/coupons/{coupon['id']}", body, headers={"Prefer": "handling=lenient"})
        assert kept.get_json()["coupon"]["code"] == shown
        listed = v3(admin, "GET", "/coupons", code=code)
        assert [each["id"] for each in listed] == [coupon["id"]]
        redemption = reserve(admin, code, code)
        assert redemption["code"] == shown
        body = {"line_items": [LINE], "coupon_lines": [{"code": code}]}
        order = v3(admin, "POST", "/orders", body)
        assert [line["code"] for line in order["coupon_lines"]] == [shown]
    strict = {"Prefer": "handling=strict"}
    kept = admin.put(f"/coupons/{coupon['id']}", {"coupon": {"code": shown}}, headers=strict)
    assert kept.status_code == 200
    (line,) = order["coupon_lines"]
    body = {"coupon_lines": [{"code": shown}]}
    again = v3(admin, "PUT", f"/orders/{order['id']}", body)
    assert again["coupon_lines"] == [line]
