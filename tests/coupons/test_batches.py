"""Batches of generated coupons: list, counts, delete (migration 3)."""

from datetime import timedelta

import pytest
from sqlalchemy import func, select, text, update

from app.db.read_pool import fetch
from app.db.session import now, run_in_transaction
from app.models import Coupon, Redemption
from app.services.coupons import batches as coupon_batches
from tests.api_client import Client, at_the_same_time, refusal, refused_params, reply
from tests.coupons.batches import listed


@pytest.mark.both_databases
def test_filter_of_batches(admin, make_batch, make_coupon):
    make_coupon(code="single")
    first, second = make_batch(12), make_batch(3, coupon={"type": "percent"})
    assert len(listed(admin, first)) == 12
    assert len(listed(admin, second)) == 3
    assert len(listed(admin, second, **{"filter[type]": "percent"})) == 3
    assert listed(admin, second, **{"filter[type]": "fixed_cart"}) == []
    for orderby in ("date", "id", "code", "amount", "modified", "usage_count", "expiry_date"):
        assert len(listed(admin, first, **{"filter[orderby]": orderby})) == 12
    for value in ("0", "999", str(2**63), str(10**50)):
        assert admin.get("/coupons", {"filter[batch]": value}).get_json() == {"coupons": []}
    assert admin.get("/coupons", {"filter[batch]": ""}).headers["X-Total"] == "16"
    for value in ("x", "-1", "1.5"):
        assert refused_params(admin.get("/coupons", {"filter[batch]": value})) == ["filter[batch]"]


@pytest.mark.both_databases
def test_counts_follow_the_uses(app, admin, feed, make_batch):
    batch = make_batch(6, coupon={"usage_limit": 5})
    path = f"/coupons/batches/{batch['id']}"
    (a, b, c, d, e, f) = (coupon["code"] for coupon in listed(admin, batch))

    def reserve(code, reference="cart"):
        body = {"redemption": {"code": code, "reference": reference}}
        return admin.post("/redemptions", body).get_json()["redemption"]["id"]

    def counts():
        shown = admin.get(path).get_json()["batch"]
        assert admin.get("/coupons/batches").get_json()["batches"] == [shown]
        return tuple(shown[name] for name in ("count", "unused", "reserved", "used", "trashed"))

    reserve(a)
    used = reserve(b)
    admin.post(f"/redemptions/{used}/confirm")
    reserve(b, "another")  # used and reserved counts as used
    expired = reserve(c)
    released = reserve(d)
    admin.post(f"/redemptions/{released}/release")
    assert counts() == (6, 3, 2, 1, 0)
    with app.app_context():
        long_ago = now() - timedelta(seconds=1)
        expiring = update(Redemption).where(Redemption.id == expired).values(expires_at=long_ago)
        run_in_transaction(lambda session: session.execute(expiring))
    assert counts() == (6, 4, 1, 1, 0)
    coupon_id = admin.get(f"/coupons/code/{e}").get_json()["coupon"]["id"]
    admin.delete(f"/coupons/{coupon_id}")
    assert counts() == (6, 3, 1, 1, 1)
    feed()
    assert reply(admin.delete(path)) == (200, {"trashed": 3})
    events = [(event["type"], event["data"]["permanent"]) for event in feed()]
    assert events == [("coupon.deleted", False)] * 3
    assert counts() == (6, 0, 1, 1, 4)
    assert reply(admin.delete(path)) == (200, {"trashed": 0})
    assert sorted(coupon["code"] for coupon in listed(admin, batch)) == sorted([a, b])
    trash = admin.get("/coupons/trash", {"filter[batch]": batch["id"]}).get_json()["coupons"]
    assert sorted(coupon["code"] for coupon in trash) == sorted([c, d, e, f])
    admin.delete("/coupons/trash", {"older_than_days": 0})
    assert counts() == (6, 0, 1, 1, 0)


@pytest.mark.both_databases
def test_delete_in_several_transactions(app, admin, make_batch, monkeypatch):
    monkeypatch.setattr(coupon_batches, "CHUNK", 7)
    batch = make_batch(40)
    for coupon in listed(admin, batch)[::4]:
        body = {"redemption": {"code": coupon["code"], "reference": "cart"}}
        assert admin.post("/redemptions", body).status_code == 201
    path = f"/coupons/batches/{batch['id']}"
    assert reply(admin.delete(path)) == (200, {"trashed": 30})
    found = admin.get(path).get_json()["batch"]
    assert (found["unused"], found["reserved"], found["trashed"]) == (0, 10, 30)


@pytest.mark.both_databases
def test_row_counts_stay_exact(app, admin, make_batch, make_coupon):
    make_coupon()
    batch = make_batch(30)
    admin.delete(f"/coupons/batches/{batch['id']}")
    make_batch(5)
    assert admin.get("/coupons/count").get_json() == {"count": 6}
    with app.app_context():
        counted = fetch(
            text(
                "SELECT partition, sum(count) FROM row_counts WHERE table_name = 'coupons' "
                "GROUP BY partition ORDER BY partition"
            )
        )
        ((stored,),) = fetch(select(func.count()).select_from(Coupon))
    assert [tuple(row) for row in counted] == [("published", 6), ("trash", 30)]
    assert stored == 36


@pytest.mark.both_databases
def test_delete_while_uses_are_reserved(app, admin, make_batch):
    """Every coupon ends up reserved or in the trash, never both."""
    batch = make_batch(40, coupon={"usage_limit": 1})
    found = [coupon["code"] for coupon in listed(admin, batch)]

    def call(part):
        client = Client(app, admin.key)
        if part is None:
            return [client.delete(f"/coupons/batches/{batch['id']}")]
        bodies = ({"redemption": {"code": code, "reference": "cart"}} for code in found[part::4])
        return [client.post("/redemptions", body) for body in bodies]

    answers = at_the_same_time(call, [None, 0, 1, 2, 3])
    ((deleted,), *reserves) = answers
    assert deleted.status_code == 200
    statuses = [response.status_code for each in reserves for response in each]
    assert set(statuses) <= {201, 400}
    shown = admin.get(f"/coupons/batches/{batch['id']}").get_json()["batch"]
    assert shown["reserved"] == statuses.count(201) == 40 - shown["trashed"]
    assert deleted.get_json() == {"trashed": shown["trashed"]}


@pytest.mark.both_databases
def test_batches_are_listed_newest_first(app, admin, make_batch):
    ids = [make_batch(1, prefix=f"x{number}-")["id"] for number in range(12)]
    response = admin.get("/coupons/batches")
    assert [batch["id"] for batch in response.get_json()["batches"]] == ids[:1:-1]
    assert (response.headers["X-Total"], response.headers["X-TotalPages"]) == ("12", "2")
    assert 'rel="next"' in response.headers["Link"]
    second = admin.get("/coupons/batches", {"page": 2, "fields": "id,unused"}).get_json()
    assert second == {"batches": [{"id": ids[1], "unused": 1}, {"id": ids[0], "unused": 1}]}
    for query, expected in (
        ({"filter[limit]": -1, "filter[order]": "asc"}, ids),
        ({"filter[limit]": 3, "filter[offset]": 10}, ids[1::-1]),
        ({"filter[created_at_min]": "2000-01-01", "filter[limit]": 2}, ids[:-3:-1]),
        ({"filter[created_at_max]": "2000-01-01"}, []),
    ):
        found = admin.get("/coupons/batches", query).get_json()["batches"]
        assert [batch["id"] for batch in found] == expected
    assert refused_params(admin.get("/coupons/batches", {"page": 0})) == ["page"]


def test_batch_that_does_not_exist(admin, client_for):
    for client in (admin, client_for("customer", "read_write")):
        for method in ("GET", "DELETE"):
            for batch_id in (0, 999, 2**63, 10**30):
                response = client.request(method, f"/coupons/batches/{batch_id}")
                assert reply(response) == refusal("shop_api_invalid_coupon_batch_id")
