"""Requests and values for the tests of coupons."""

from urllib.parse import quote

from tests.api_client import refusal

DEFAULTS = {
    "type": "fixed_cart",
    "amount": "0.00",
    "individual_use": False,
    "product_ids": [],
    "exclude_product_ids": [],
    "usage_limit": None,
    "usage_limit_per_user": None,
    "limit_usage_to_x_items": 0,
    "usage_count": 0,
    "expiry_date": None,
    "enable_free_shipping": False,
    "product_category_ids": [],
    "exclude_product_category_ids": [],
    "exclude_sale_items": False,
    "minimum_amount": "0.00",
    "maximum_amount": "0.00",
    "customer_emails": [],
    "description": "",
}
# Fields that a response contains only on request, with their defaults.
BLANK = {
    "active": True,
    "starts_at": None,
    "campaign_id": None,
    "tags": [],
    "combines_with": [],
    "customer_tags": [],
    "first_order_only": False,
    "maximum_discount": "0.00",
    "buy_quantity": 0,
    "get_quantity": 0,
    "get_product_ids": [],
}
# A value of each of them but the campaign, as a request gives it and as a response shows it.
GIVEN = {
    "active": False,
    "starts_at": "2030-12-01 10:00+01:00",
    "tags": ["Newsletter", "loyalty", "newsletter"],
    "combines_with": ["loyalty", "-code:Summer15"],
    "customer_tags": ["-role:Wholesale", "VIP"],
    "first_order_only": True,
    "maximum_discount": "50",
    "buy_quantity": 2,
    "get_quantity": 1,
    "get_product_ids": [7, 9],
}
SHOWN = {
    "active": False,
    "starts_at": "2030-12-01T09:00:00Z",
    "tags": ["newsletter", "loyalty"],
    "combines_with": ["loyalty", "-code:summer15"],
    "customer_tags": ["-role:wholesale", "vip"],
    "first_order_only": True,
    "maximum_discount": "50.00",
    "buy_quantity": 2,
    "get_quantity": 1,
    "get_product_ids": [7, 9],
}
# Every input field, with a value that is not its default, and how it is read again.
EVERY_FIELD = {
    "code": ("Everything", "everything"),
    "type": ("percent", "percent"),
    "amount": ("12.5", "12.50"),
    "individual_use": (True, True),
    "product_ids": ([3, 1], [3, 1]),
    "exclude_product_ids": ([4], [4]),
    "usage_limit": (100, 100),
    "usage_limit_per_user": (1, 1),
    "limit_usage_to_x_items": (5, 5),
    "usage_count": (2, 2),
    "expiry_date": ("2030-12-31", "2030-12-31T00:00:00Z"),
    "enable_free_shipping": (True, True),
    "product_category_ids": ([7], [7]),
    "exclude_product_category_ids": ([8, 9], [8, 9]),
    "exclude_sale_items": (True, True),
    "minimum_amount": (10, "10.00"),
    "maximum_amount": ("99.99", "99.99"),
    "customer_emails": (["ann@example.com"], ["ann@example.com"]),
    "description": ("All of it", "All of it"),
}
INPUT = {name: given for name, (given, _) in EVERY_FIELD.items()}
OUTPUT = {name: read for name, (_, read) in EVERY_FIELD.items()}
TRASHED = (200, {"message": "Deleted coupon"})
NO_CODE = refusal("shop_api_invalid_coupon_code")
TAKEN = refusal("shop_api_coupon_code_already_exists")


def by_code(client, code):
    return client.get(f"/coupons/code/{quote(code)}")


def read(client, coupon_id):
    return client.get(f"/coupons/{coupon_id}").get_json()["coupon"]


def edit(client, coupon_id, **fields):
    return client.put(f"/coupons/{coupon_id}", {"coupon": fields})


def count(client):
    return client.get("/coupons/count").get_json()


UNSTORABLE = ["", "  ", "\t\n", "<b></b>", "<!-- x -->", "\u0007", "&nbsp;", "\ufdfa" * 30]
