"""Generated coupons: batches with random codes (migration 3)."""

import re
from datetime import timedelta

import pytest
from conftest import Client, at_the_same_time, codes, refusal, refused_params, reply
from sqlalchemy import func, select, text, update

from app.db.read_pool import fetch
from app.db.session import db, now, run_in_transaction
from app.models import Coupon, Redemption
from app.schemas.examples import coupons as examples
from app.services import coupon_batches

GENERATE = "/coupons/generate"
CHARSET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
COUPON = {"type": "percent", "amount": "10", "usage_limit": 1, "description": "Spring"}


def generate(client, count=10, **over):
    return client.post(GENERATE, {"generate": {"count": count, "prefix": "SPRING-"} | over})


@pytest.fixture
def make_batch(admin):
    def make(count=10, client=None, **over):
        response = generate(client or admin, count, **over)
        assert response.status_code == 201, response.get_json()
        return response.get_json()["batch"]

    return make


def listed(client, batch, **query):
    """The coupons of a batch, of all pages."""
    found, page = [], 1
    while True:
        query |= {"filter[batch]": batch["id"], "page": page}
        response = client.get("/coupons", query)
        coupons = response.get_json()["coupons"]
        if not coupons:
            assert response.headers["X-Total"] == str(len(found))
            return found
        found += coupons
        page += 1


@pytest.fixture
def everything(app):
    """Return a function: all rows of all tables except keys, which store when they were used."""

    def read():
        with app.app_context():
            return {
                table.name: fetch(select(table))
                for table in db.metadata.sorted_tables
                if table.name != "api_keys"
            }

    return read


def test_generated_coupons_are_published_with_the_given_fields(admin, make_batch):
    batch = make_batch(25, pattern="####-####", coupon=COUPON)
    shown = {"id": batch["id"], "created_at": batch["created_at"], "count": 25}
    assert batch == shown | {
        "prefix": "SPRING-",
        "pattern": "####-####",
        "charset": CHARSET.lower(),
        "unused": 25,
        "reserved": 0,
        "used": 0,
        "trashed": 0,
    }
    found = listed(admin, batch)
    assert len({coupon["code"] for coupon in found}) == len(found) == 25
    same = [{**coupon, "id": 0, "code": ""} for coupon in found]
    assert same == same[:1] * 25
    single = admin.post("/coupons", {"coupon": {"code": "single", **COUPON}}).get_json()["coupon"]
    times = {"created_at": batch["created_at"], "updated_at": batch["created_at"]}
    assert same[0] == single | {"id": 0, "code": ""} | times
    letters = CHARSET.lower()
    for coupon in found:
        assert re.fullmatch(f"spring-[{letters}]{{4}}-[{letters}]{{4}}", coupon["code"])
        by_code = admin.get(f"/coupons/code/{coupon['code'].upper()}").get_json()["coupon"]
        assert by_code == coupon
    assert admin.get("/coupons/count").get_json() == {"count": 26}
    assert admin.get("/coupons/count", {"filter[batch]": batch["id"]}).get_json() == {"count": 25}
    assert admin.get("/coupons", {"filter[q]": "spring-"}).headers["X-Total"] == "25"


def test_the_defaults_are_those_of_a_coupon(admin, make_batch, make_coupon):
    for over in ({}, {"coupon": None}, {"coupon": {}}, {"prefix": None, "pattern": None}):
        (coupon, *_) = listed(admin, make_batch(1, **over))
        plain = make_coupon()
        same = {name: plain[name] for name in ("id", "code", "created_at", "updated_at")}
        assert coupon | same == plain


def test_a_batch_writes_one_event(admin, make_batch):
    batch = make_batch(25)
    (event,) = admin.get("/events").get_json()["events"]
    assert (event["type"], event["resource"]) == ("coupon_batch.created", "coupon_batch")
    assert (event["resource_id"], event["user_id"]) == (batch["id"], admin.key.user_id)
    names = ("id", "created_at", "count", "prefix", "pattern", "charset")
    assert event["data"] == {"coupon_batch": {name: batch[name] for name in names}}
    generate(admin, pattern="none")
    assert len(admin.get("/events").get_json()["events"]) == 1


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


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("over", "param"),
    [
        ({"count": 0}, "generate.count"),
        ({"count": -1}, "generate.count"),
        ({"count": 10_001}, "generate.count"),
        ({"count": 10**30}, "generate.count"),
        ({"count": "many"}, "generate.count"),
        ({"count": None}, "generate.count"),
        ({"count": []}, "generate.count"),
        ({"pattern": []}, "generate.pattern"),
        ({"pattern": "#" * 501}, "generate.pattern"),
        ({"pattern": "#" * 100_000}, "generate.pattern"),
        ({"pattern": "a\0#"}, "generate.pattern"),
        ({"pattern": "<####"}, "generate.pattern"),
        ({"prefix": "R&D-"}, "generate.prefix"),
        ({"prefix": True}, "generate.prefix"),
        ({"charset": ""}, "generate.charset"),
        ({"charset": "AB-"}, "generate.charset"),
        ({"charset": "A" * 257}, "generate.charset"),
        ({"coupon": []}, "generate.coupon"),
        ({"coupon": {"amount": "abc"}}, "generate.coupon.amount"),
        ({"coupon": {"product_ids": 3}}, "generate.coupon.product_ids"),
    ],
)
def test_input_that_is_not_understood(admin, everything, over, param):
    before = everything()
    assert refused_params(generate(admin, **over)) == [param]
    assert everything() == before


@pytest.mark.parametrize(
    ("over", "size"),
    [
        ({"pattern": "no-placeholder"}, "1"),
        ({"charset": "A"}, "1"),
        ({"charset": "aAaA"}, "1"),
        ({"pattern": "####", "charset": "0123456789"}, "10,000"),
        ({"pattern": "####", "charset": "0123456789", "allow_guessable": "true"}, "10,000"),
        ({"pattern": "<b###########>x"}, "1"),
    ],
)
def test_pattern_that_is_too_small(admin, everything, over, size):
    before = everything()
    times = {"size": size, "times": "1,000,000", "count": "10"}
    assert reply(generate(admin, **over)) == refusal("shop_api_pattern_too_small", **times)
    assert everything() == before


def test_guessable_codes_on_request(admin, make_batch):
    over = {"pattern": "####", "charset": "0123456789", "allow_guessable": True}
    assert make_batch(100, **over)["unused"] == 100
    response = generate(admin, 101, **over)
    details = {"size": "10,000", "times": "100", "count": "101"}
    assert reply(response) == refusal("shop_api_pattern_too_small", **details)


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("over", "code"),
    [
        ({"coupon": {"type": "gift"}}, "shop_api_invalid_coupon_type"),
        ({"prefix": "x" * 400, "pattern": "#" * 101}, "shop_api_cannot_create_coupon"),
        (
            {"count": 10_000, "coupon": {"description": "x" * 20_000}},
            "shop_api_cannot_create_coupon",
        ),
    ],
)
def test_request_that_is_rejected(admin, everything, over, code):
    before = everything()
    assert codes(generate(admin, **over)) == (400, code)
    assert everything() == before


@pytest.mark.one_database
@pytest.mark.parametrize("body", [None, {}, [], {"generate": None}, {"coupon": {}}])
def test_missing_wrapper(admin, body):
    assert reply(admin.post(GENERATE, body)) == refusal("shop_api_missing_generate_data")


def test_checks_come_in_the_specified_order(admin, client_for, everything):
    """Wrapper, types, capability, then what the service decides (decisions 13)."""
    customer = client_for("customer", "read_write")
    before = everything()
    assert codes(customer.post(GENERATE, {})) == (400, "shop_api_missing_generate_data")
    assert refused_params(generate(customer, 0)) == ["generate.count"]
    wrong = {"pattern": "none", "coupon": {"type": "gift"}}
    cannot = refusal("shop_api_user_cannot_create_coupon")
    assert reply(generate(customer, **wrong)) == cannot
    assert reply(generate(customer)) == cannot
    assert codes(generate(admin, **wrong)) == (400, "shop_api_invalid_coupon_type")
    wrong = {"pattern": "none", "prefix": "x" * 500}
    assert codes(generate(admin, **wrong)) == (400, "shop_api_cannot_create_coupon")
    assert codes(generate(client_for("administrator", "read", "reader"))) == (
        401,
        "shop_api_authentication_error",
    )
    after = everything()
    assert after["coupons"] == before["coupons"] == []
    assert after["coupon_batches"] == []


def test_ten_thousand_codes_at_once(app, admin, make_batch):
    batch = make_batch(10_000)
    with app.app_context():
        rows = fetch(select(Coupon.code, Coupon.search_text).where(Coupon.batch_id == batch["id"]))
    assert len({row.code for row in rows}) == 10_000
    assert all(row.search_text == row.code for row in rows)
    assert admin.get(f"/coupons/batches/{batch['id']}").get_json()["batch"]["unused"] == 10_000


def test_codes_of_existing_coupons_are_not_taken(app, admin, make_batch):
    """Of a hundred codes that the pattern has, 99 are taken."""
    taken = [{"code": f"x-{number:02}"} for number in range(100) if number != 42]
    assert admin.post("/coupons/bulk", {"coupons": taken}).status_code == 200
    over = {"prefix": "X-", "pattern": "##", "charset": "0123456789", "allow_guessable": True}
    (coupon,) = listed(admin, make_batch(1, **over))
    assert coupon["code"] == "x-42"
    refused = generate(admin, 1, **over)
    reason = "existing coupons already use most codes of the pattern."
    assert reply(refused) == refusal("shop_api_cannot_create_coupon", reason=reason)
    assert admin.get("/coupons/batches").headers["X-Total"] == "1"


def test_a_coupon_in_the_trash_does_not_block_its_code(admin, make_batch):
    taken = [{"code": f"x-{number:02}"} for number in range(100)]
    created = admin.post("/coupons/bulk", {"coupons": taken}).get_json()["coupons"]
    admin.delete(f"/coupons/{created[42]['id']}")
    over = {"prefix": "X-", "pattern": "##", "charset": "0123456789", "allow_guessable": True}
    (coupon,) = listed(admin, make_batch(1, **over))
    assert coupon["code"] == "x-42"


def test_generation_at_the_same_time_gives_distinct_codes(app, admin, make_coupon):
    """Six requests for 100 of 10,000 codes, which collide with certainty."""
    over = {"prefix": "", "pattern": "####", "charset": "0123456789", "allow_guessable": True}

    def send(_):
        return generate(Client(app, admin.key), 100, **over)

    responses = at_the_same_time(send, range(6))
    assert [response.status_code for response in responses] == [201] * 6
    with app.app_context():
        stored = [row.code for row in fetch(select(Coupon.code))]
    assert len(set(stored)) == len(stored) == 600
    assert {batch["unused"] for batch in admin.get("/coupons/batches").get_json()["batches"]} == {
        100
    }


def test_same_idempotency_key_generates_once(app, admin):
    headers = {"Idempotency-Key": "campaign-1"}
    body = {"generate": {"count": 5}}
    first, *others = at_the_same_time(
        lambda _: Client(app, admin.key).post(GENERATE, body, headers=headers), range(4)
    )
    assert [other.data for other in others] == [first.data] * 3
    assert admin.get("/coupons/count").get_json() == {"count": 5}


def test_counts_follow_the_uses(app, admin, make_batch):
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
    assert reply(admin.delete(path)) == (200, {"trashed": 3})
    assert counts() == (6, 0, 1, 1, 4)
    assert reply(admin.delete(path)) == (200, {"trashed": 0})
    assert sorted(coupon["code"] for coupon in listed(admin, batch)) == sorted([a, b])
    trash = admin.get("/coupons/trash", {"filter[batch]": batch["id"]}).get_json()["coupons"]
    assert sorted(coupon["code"] for coupon in trash) == sorted([c, d, e, f])
    admin.delete("/coupons/trash", {"older_than_days": 0})
    assert counts() == (6, 0, 1, 1, 0)


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


def test_permissions(app, admin, client_for, make_batch):
    batch = make_batch(3)
    path = f"/coupons/batches/{batch['id']}"
    customer = client_for("customer", "read_write")
    assert reply(customer.get(path)) == refusal("shop_api_user_cannot_read_coupons")
    assert reply(customer.delete(path)) == refusal("shop_api_user_cannot_delete_coupon")
    response = customer.get("/coupons/batches")
    assert (reply(response), response.headers["X-Total"]) == ((200, {"batches": []}), "0")
    assert customer.get("/coupons", {"filter[batch]": batch["id"]}).get_json() == {"coupons": []}
    manager = client_for("shop_manager", "read_write")
    assert reply(manager.get(path)) == (200, {"batch": batch})
    assert reply(manager.delete(path)) == (200, {"trashed": 3})


def test_native_only(admin):
    for mount in ("/wc-api/v2", "/wc-api/v3"):
        for path in ("/coupons/generate", "/coupons/batches", "/coupons/batches/1"):
            assert admin.get(mount + path).status_code == 404


def test_example_is_real(admin):
    response = admin.post(GENERATE, {"generate": examples.NEW_BATCH})
    batch = response.get_json()["batch"]
    times = {name: batch[name] for name in ("id", "created_at")}
    assert reply(response) == (201, {"batch": examples.BATCH | times})
