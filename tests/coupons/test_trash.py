"""The trash of coupons: list, restore, empty (orders 4)."""

from datetime import UTC, datetime, timedelta

import pytest
from alembic.migration import MigrationContext
from flask_migrate import downgrade, upgrade
from sqlalchemy import text

from app.db.session import db
from tests.api_client import at_the_same_time, refusal, refused_params, reply

NOT_IN_TRASH = refusal("shop_api_invalid_coupon_id", words="No coupon in the trash has this ID.")


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


def test_list_shows_the_coupon_and_when_it_was_trashed(admin, make_coupon, trash):
    make_coupon(code="published")
    coupon = trash(code="gone", description="Summer")
    response = admin.get("/coupons/trash")
    (shown,) = response.get_json()["coupons"]
    age = datetime.now(UTC) - datetime.fromisoformat(shown["trashed_at"])
    assert timedelta(0) <= age < timedelta(minutes=5)
    changed = {"updated_at": shown["trashed_at"], "trashed_at": shown["trashed_at"]}
    assert reply(response) == (200, {"coupons": [coupon | changed]})
    assert (response.headers["X-Total"], response.headers["X-TotalPages"]) == ("1", "1")
    assert admin.get("/coupons").get_json()["coupons"][0]["code"] == "published"


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


def test_restore_publishes_the_coupon(admin, trash):
    coupon = trash(code="gone", amount="5", product_ids=[1])
    response = admin.post(f"/coupons/{coupon['id']}/restore")
    restored = coupon | {"updated_at": response.get_json()["coupon"]["updated_at"]}
    assert reply(response) == (200, {"coupon": restored})
    assert reply(admin.get(f"/coupons/{coupon['id']}")) == (200, {"coupon": restored})
    assert listed(admin) == []
    assert admin.get("/coupons/count").get_json() == {"count": 1}
    # The time changes if the coupon is moved to the trash again.
    admin.delete(f"/coupons/{coupon['id']}")
    assert listed(admin) == ["gone"]


@pytest.mark.both_databases
def test_restore_of_a_code_that_is_taken_changes_nothing(admin, make_coupon, trash):
    coupon = trash(code="taken")
    make_coupon(code="taken")
    response = admin.post(f"/coupons/{coupon['id']}/restore")
    assert reply(response) == refusal("shop_api_coupon_code_already_exists")
    assert listed(admin) == ["taken"]


def test_restore_of_what_is_not_in_the_trash(admin, make_coupon):
    published = make_coupon()["id"]
    for coupon_id in (published, 10**9, 10**30):
        response = admin.post(f"/coupons/{coupon_id}/restore")
        assert reply(response) == NOT_IN_TRASH


@pytest.mark.both_databases
def test_one_of_several_coupons_with_one_code_is_restored(admin, trash):
    ids = [trash(code="same")["id"] for _ in range(4)]
    responses = at_the_same_time(lambda one: admin.post(f"/coupons/{one}/restore"), ids)
    assert sorted(response.status_code for response in responses) == [200, 400, 400, 400]
    assert listed(admin) == ["same"] * 3


@pytest.mark.both_databases
def test_emptying_deletes_what_is_old_enough(admin, make_coupon, trash, store):
    published = make_coupon(code="published")
    now = datetime.now(UTC).replace(microsecond=0)
    for code, days in (("new", 0), ("young", 29), ("old", 31)):
        store(trash(code=code)["id"], trashed_at=now - timedelta(days=days))
    store(published["id"], created_at=now - timedelta(days=90))
    assert reply(admin.delete("/coupons/trash")) == (200, {"deleted": 1})
    assert sorted(listed(admin)) == ["new", "young"]
    assert reply(admin.delete("/coupons/trash", {"older_than_days": 10**40})) == (
        200,
        {"deleted": 0},
    )
    assert reply(admin.delete("/coupons/trash", {"older_than_days": 7})) == (200, {"deleted": 1})
    assert reply(admin.delete("/coupons/trash", {"older_than_days": 0})) == (200, {"deleted": 1})
    assert listed(admin) == []
    (left,) = admin.get("/coupons").get_json()["coupons"]
    assert left["id"] == published["id"]


@pytest.mark.parametrize("days", ["-1", "abc", "1.5"])
def test_age_that_is_not_a_number_of_days(admin, trash, days):
    trash()
    response = admin.delete("/coupons/trash", {"older_than_days": days})
    assert refused_params(response) == ["older_than_days"]
    assert len(listed(admin)) == 1


def test_capabilities(client_for, trash):
    coupon_id, customer = trash()["id"], client_for("customer")
    response = customer.get("/coupons/trash")
    assert reply(response) == (200, {"coupons": []})
    assert response.headers["X-Total"] == "0"
    response = customer.post(f"/coupons/{coupon_id}/restore")
    assert reply(response) == refusal("shop_api_user_cannot_edit_coupon")
    response = customer.delete("/coupons/trash", {"older_than_days": 0})
    assert reply(response) == refusal("shop_api_user_cannot_delete_coupon")
    assert reply(customer.post("/coupons/1000000/restore")) == NOT_IN_TRASH
    assert listed(client_for("shop_manager")) == ["code-1"]


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
