"""The trash of coupons, beside what is the same for orders (tests/api/test_trash.py)."""

import pytest
from alembic.migration import MigrationContext
from flask_migrate import downgrade, upgrade
from sqlalchemy import text

from app.db.session import db
from tests.api_client import at_the_same_time, refusal, refused_params, reply


@pytest.fixture
def trash(admin, make_coupon):
    """Return a function: create a coupon and move it to the trash."""

    def make(**over):
        coupon = make_coupon(**over)
        assert admin.delete(f"/coupons/{coupon['id']}").status_code == 200
        return coupon

    return make


def listed(client, query=None):
    response = client.get("/coupons/trash", query)
    assert response.status_code == 200, response.get_json()
    return [coupon["code"] for coupon in response.get_json()["coupons"]]


@pytest.mark.both_databases
def test_list_is_paginated_and_filtered_like_the_list(admin, make_coupon, trash):
    for number in range(12):
        trash(code=f"old-{number:02}", type="percent" if number % 2 else "fixed_cart")
    make_coupon(code="old-published", type="percent")
    codes = [f"old-{number:02}" for number in range(12)]
    first = admin.get("/coupons/trash", {"filter[orderby]": "code", "filter[order]": "asc"})
    assert [coupon["code"] for coupon in first.get_json()["coupons"]] == codes[:10]
    assert (first.headers["X-Total"], first.headers["X-TotalPages"]) == ("12", "2")
    assert 'rel="next"' in first.headers["Link"]
    second = {"filter[orderby]": "code", "filter[order]": "asc", "page": 2}
    assert listed(admin, second) == codes[10:]
    assert sorted(listed(admin, {"filter[type]": "percent"})) == codes[1::2]
    assert listed(admin, {"filter[q]": "D-07"}) == ["old-07"]
    assert admin.get("/coupons/trash", {"filter[q]": "old"}).headers["X-Total"] == "12"
    assert admin.get("/coupons", {"filter[q]": "old"}).headers["X-Total"] == "1"
    assert admin.get("/coupons/trash", {"fields": "code", "filter[q]": "-07"}).get_json() == {
        "coupons": [{"code": "old-07"}]
    }
    assert refused_params(admin.get("/coupons/trash", {"filter[type]": "x"})) == ["filter[type]"]


@pytest.mark.both_databases
def test_restore_of_a_code_that_is_taken_changes_nothing(admin, make_coupon, trash):
    coupon = trash(code="taken")
    make_coupon(code="taken")
    response = admin.post(f"/coupons/{coupon['id']}/restore")
    assert reply(response) == refusal("shop_api_coupon_code_already_exists")
    assert listed(admin) == ["taken"]


@pytest.mark.both_databases
def test_one_of_several_coupons_with_one_code_is_restored(admin, trash):
    ids = [trash(code="same")["id"] for _ in range(4)]
    responses = at_the_same_time(lambda one: admin.post(f"/coupons/{one}/restore"), ids)
    assert sorted(response.status_code for response in responses) == [200, 400, 400, 400]
    assert listed(admin) == ["same"] * 3


def test_migration_takes_the_time_of_the_last_update(make_app, fresh_database_url):
    with make_app(DATABASE_URL=fresh_database_url).app_context():
        upgrade(revision="0014")
        downgrade(revision="0013")
        with db.engine.begin() as connection:
            for number, status in enumerate(("published", "trash")):
                connection.execute(text(INSERT), {"id": number + 1, "status": status})
        upgrade(revision="0014")
        with db.engine.connect() as connection:
            assert MigrationContext.configure(connection).get_current_heads() == ("0014",)
            rows = connection.execute(
                text("SELECT status, trashed_at = updated_at FROM coupons ORDER BY id")
            )
            assert [tuple(row) for row in rows] == [("published", None), ("trash", True)]


INSERT = """
INSERT INTO coupons (
    id, status, code, type, created_at, updated_at, individual_use, product_ids,
    exclude_product_ids, usage_limit, usage_limit_per_user, limit_usage_to_x_items, usage_count,
    enable_free_shipping, product_category_ids, exclude_product_category_ids, exclude_sale_items,
    customer_emails, description, search_text
) VALUES (
    :id, :status, 'c', 'percent', '2026-01-02 03:04:05', '2026-02-03 04:05:06', false, '[]',
    '[]', 0, 0, 0, 0, false, '[]', '[]', false, '[]', '', ''
)
"""
