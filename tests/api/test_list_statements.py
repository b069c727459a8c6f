"""A list takes the same number of statements for one record as for three."""

import pytest

from tests.api_client import without_key

pytestmark = pytest.mark.both_databases

COUPON = {"type": "percent", "amount": "5"}


def refund(admin):
    line = {"name": "Mug", "price": "9", "quantity": 1}
    order = admin.post("/orders", {"order": {"line_items": [line]}}).get_json()["order"]
    return admin.post(f"/orders/{order['id']}/refunds", {"order_refund": {"amount": "4"}})


def redemption(admin):
    code = f"code-{admin.get('/coupons/count').get_json()['count']}"
    assert admin.post("/coupons", {"coupon": {**COUPON, "code": code}}).status_code == 201
    return admin.post("/redemptions", {"redemption": {"code": code, "reference": "cart"}})


def post(path, body):
    return lambda admin: admin.post(path, body)


# Each list and how a record of it is created, with the number of its statements: one for the records
# with their total if triggers count them, otherwise one each for the total, the IDs and the records.
LISTS = {
    "campaigns": (post("/campaigns", {"campaign": {"name": "Spring", "usage_limit": 5}}), 3),
    "coupons/batches": (post("/coupons/generate", {"generate": {"count": 1, "coupon": COUPON}}), 3),
    "refunds": (refund, 3),
    "redemptions": (redemption, 1),
    "webhooks": (
        post("/webhooks", {"webhook": {"topics": ["*"], "delivery_url": "https://erp.example/"}}),
        3,
    ),
}


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("path", LISTS)
def test_list_statements(admin, statements, path, rows):
    create, number = LISTS[path]
    for _ in range(rows):
        assert create(admin).status_code == 201
    statements.clear()
    assert admin.get(f"/{path}").headers["X-Total"] == str(rows)
    assert len(without_key(statements)) == number, statements
