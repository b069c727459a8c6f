"""Concurrent requests keep codes unique and bulk requests complete (spec 2.1; decisions 3, 4)."""

import pytest

from tests.api_client import Client, at_the_same_time, failure, refusal, reply

pytestmark = pytest.mark.pooler

THREADS = 6
TAKEN = "shop_api_coupon_code_already_exists"
GONE = refusal("shop_api_invalid_coupon_id")


@pytest.fixture
def at_once(admin):
    """Return a function: send requests at the same time, each by a client of its own."""

    def send(*requests):
        def run(request):
            client = Client(admin.app, admin.key)
            return client.request(*request[:2], json=request[2] if request[2:] else None)

        return at_the_same_time(run, requests)

    return send


def create(code, **fields):
    return "POST", "/coupons", {"coupon": {"code": code} | fields}


def edit(coupon, **fields):
    return "PUT", f"/coupons/{coupon['id']}", {"coupon": fields}


def bulk(*items):
    return "POST", "/coupons/bulk", {"coupons": list(items)}


def results(responses):
    """The results of several bulks, in one list."""
    found = []
    for response in responses:
        assert response.status_code == 200, response.get_json()
        found += response.get_json()["coupons"]
    return found


def shop(client):
    """The published coupons by their codes."""
    response = client.get("/coupons", {"filter[orderby]": "id"})
    return {coupon["code"]: coupon for coupon in response.get_json()["coupons"]}


def test_create_of_one_code_concurrently(admin, at_once):
    responses = at_once(*[create("summer", usage_count=n) for n in range(THREADS)])
    refused = [reply(response) for response in responses if response.status_code != 201]
    (created,) = (response for response in responses if response.status_code == 201)
    assert refused == [refusal(TAKEN)] * (THREADS - 1)
    assert shop(admin) == {"summer": created.get_json()["coupon"]}


def test_create_of_several_codes_concurrently(admin, at_once):
    responses = at_once(*[create(f"c{n}") for n in range(THREADS)])
    assert [response.status_code for response in responses] == [201] * THREADS
    assert shop(admin) == {
        r.get_json()["coupon"]["code"]: r.get_json()["coupon"] for r in responses
    }


def test_bulk_create_of_one_code_concurrently(admin, at_once):
    answers = results(at_once(*[bulk({"code": "summer"}) for _ in range(THREADS)]))
    (created,) = (answer for answer in answers if "error" not in answer)
    assert answers.count(failure(TAKEN)) == THREADS - 1
    assert shop(admin) == {"summer": created}


def test_single_and_bulk_create_of_one_code_concurrently(admin, at_once):
    each = THREADS // 2
    responses = at_once(
        *[create("summer") for _ in range(each)],
        *[bulk({"code": f"own {n}"}, {"code": "summer"}) for n in range(each)],
    )
    singles, bulks = responses[:each], responses[each:]
    created = [r.get_json()["coupon"] for r in singles if r.status_code == 201]
    assert all(reply(r) == refusal(TAKEN) for r in singles if r.status_code != 201)
    answers = results(bulks)
    assert [answer["code"] for answer in answers[::2]] == [f"own {n}" for n in range(each)]
    created += [answer for answer in answers[1::2] if answer != failure(TAKEN)]
    assert [coupon["code"] for coupon in created] == ["summer"]
    assert shop(admin) == {coupon["code"]: coupon for coupon in [*answers[::2], *created]}


@pytest.mark.parametrize("times", [2, 4])
def test_bulk_create_in_reversed_order_concurrently(admin, at_once, times):
    items = [{"code": f"c{n}"} for n in range(10)]
    answers = results(at_once(*[bulk(*items), bulk(*items[::-1])] * (times // 2)))
    created = {answer["code"]: answer for answer in answers if "error" not in answer}
    assert len(answers) == 10 * times
    assert answers.count(failure(TAKEN)) == 10 * (times - 1)
    assert set(created) == {item["code"] for item in items}
    assert shop(admin) == created


def test_bulk_create_and_single_creates_of_its_codes_concurrently(admin, at_once):
    codes = [f"c{n}" for n in range(8)]
    several, *singles = at_once(
        bulk(*({"code": code} for code in codes)), *[create(code) for code in codes]
    )
    created = [answer for answer in results([several]) if answer != failure(TAKEN)]
    for single in singles:
        if single.status_code == 201:
            created.append(single.get_json()["coupon"])
        else:
            assert reply(single) == refusal(TAKEN)
    assert sorted(coupon["code"] for coupon in created) == codes
    assert shop(admin) == {coupon["code"]: coupon for coupon in created}


def test_rename_to_one_code_concurrently(admin, at_once, make_coupon):
    coupons = [make_coupon() for _ in range(THREADS)]
    responses = at_once(*[edit(coupon, code="summer") for coupon in coupons])
    (renamed,) = (response for response in responses if response.status_code == 200)
    refused = [reply(response) for response in responses if response.status_code != 200]
    assert refused == [refusal(TAKEN)] * (THREADS - 1)
    assert shop(admin)["summer"] == renamed.get_json()["coupon"]
    assert len(shop(admin)) == THREADS


def test_rename_and_create_of_one_code_concurrently(admin, at_once, make_coupon):
    coupons = [make_coupon() for _ in range(2)]
    responses = at_once(
        *[edit(coupon, code="summer") for coupon in coupons],
        *[create("summer") for _ in range(2)],
        *[bulk({"code": "summer"}) for _ in range(2)],
    )
    answers = [reply(response) for response in responses[:4] if response.status_code == 400]
    assert answers == [refusal(TAKEN)] * len(answers)
    failed = results(responses[4:]).count(failure(TAKEN))
    assert len(answers) + failed == len(responses) - 1
    assert "summer" in shop(admin)


def test_rename_and_create_of_the_freed_code_concurrently(admin, at_once, make_coupon):
    coupon = make_coupon(code="summer")
    renamed, created = at_once(edit(coupon, code="winter"), create("summer"))
    assert renamed.status_code == 200
    if created.status_code == 201:
        assert set(shop(admin)) == {"summer", "winter"}
    else:
        assert reply(created) == refusal(TAKEN)
        assert set(shop(admin)) == {"winter"}


def test_bulk_rename_in_reversed_order_concurrently(admin, at_once, make_coupon):
    one, two = make_coupon(code="one"), make_coupon(code="two")
    rename = [{"id": one["id"], "code": "three"}, {"id": two["id"], "code": "one"}]
    responses = at_once(bulk(*rename), bulk(*rename[::-1]))
    assert [response.status_code for response in responses] == [200, 200]
    # Whichever comes first, the other one finds the codes as they shall be.
    ids = {code: coupon["id"] for code, coupon in shop(admin).items()}
    assert ids == {"three": one["id"], "one": two["id"]}


def test_updates_of_one_coupon_concurrently_are_all_kept(admin, at_once, make_coupon):
    coupon = make_coupon()
    fields = {
        "amount": "1.00",
        "description": "text",
        "usage_limit": 5,
        "product_ids": [7],
        "individual_use": True,
        "type": "percent",
    }
    responses = at_once(*[edit(coupon, **{name: value}) for name, value in fields.items()])
    assert [response.status_code for response in responses] == [200] * len(fields)
    (edited,) = shop(admin).values()
    assert edited == coupon | fields | {"updated_at": edited["updated_at"]}


def test_bulk_updates_of_the_same_coupons_concurrently(admin, at_once, make_coupon):
    coupons = [make_coupon() for _ in range(5)]
    names = ["usage_limit", "usage_count", "limit_usage_to_x_items", "usage_limit_per_user"]
    bulks = [[{"id": coupon["id"], name: 9} for coupon in coupons] for name in names]
    answers = results(at_once(*[bulk(*items[:: (-1) ** n]) for n, items in enumerate(bulks)]))
    assert not any("error" in answer for answer in answers)
    for coupon in shop(admin).values():
        assert [coupon[name] for name in names] == [9] * len(names)


@pytest.mark.parametrize("force", ["false", "true"])
def test_delete_concurrently(admin, at_once, make_coupon, force):
    coupon = make_coupon()
    path = f"/coupons/{coupon['id']}?force={force}"
    responses = at_once(*[("DELETE", path)] * THREADS)
    assert sorted(response.status_code for response in responses) == [200, *[404] * (THREADS - 1)]
    assert [reply(response) for response in responses].count(GONE) == THREADS - 1
    assert shop(admin) == {}


@pytest.mark.parametrize("force", ["false", "true"])
def test_delete_update_and_create_concurrently(admin, at_once, make_coupon, force):
    coupon = make_coupon(code="summer")
    deleted, edited, created, several = at_once(
        ("DELETE", f"/coupons/{coupon['id']}?force={force}"),
        edit(coupon, amount=5),
        create("summer"),
        bulk({"id": coupon["id"], "amount": 6}, {"code": "autumn"}),
    )
    assert deleted.status_code == 200
    assert edited.status_code == 200 or reply(edited) == GONE
    assert created.status_code == 201 or reply(created) == refusal(TAKEN)
    assert several.status_code == 200
    expected = {"autumn", "summer"} if created.status_code == 201 else {"autumn"}
    assert set(shop(admin)) == expected
    assert coupon["id"] not in {left["id"] for left in shop(admin).values()}


def test_reads_while_others_write(admin, at_once, make_coupon):
    coupon = make_coupon(code="summer")
    path = f"/coupons/{coupon['id']}"
    *writes, listed, count, read, by_code = at_once(
        create("a"),
        edit(coupon, amount=5),
        bulk({"code": "b"}, {"code": "c"}),
        ("GET", "/coupons"),
        ("GET", "/coupons/count"),
        ("GET", path),
        ("GET", "/coupons/code/summer"),
    )
    assert [response.status_code for response in writes] == [201, 200, 200]
    assert {r.status_code for r in (listed, count, read, by_code)} == {200}
    # A bulk is written whole: its two coupons are seen together or not at all.
    assert len({"b", "c"} & {c["code"] for c in listed.get_json()["coupons"]}) in {0, 2}
