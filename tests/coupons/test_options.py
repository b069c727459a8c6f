"""Fields that few coupons use: input, responses, states and customers (campaigns 1 to 5)."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.api_client import refused_params
from tests.commands import succeed
from tests.coupons.batches import generate, listed
from tests.coupons.calls import BLANK as DEFAULTS_ON_REQUEST
from tests.coupons.calls import GIVEN, SHOWN, edit, read
from tests.orders.calls import LINE, change, create
from tests.redemptions.calls import move, post, rejected, reserve

BLANK = {name: value for name, value in DEFAULTS_ON_REQUEST.items() if name != "campaign_id"}
NAMES = ",".join(BLANK)


def options(client, coupon_id):
    return client.get(f"/coupons/{coupon_id}", {"fields": NAMES}).get_json()["coupon"]


def body(response):
    assert response.status_code in {200, 201}, response.get_json()
    return response.get_json()["coupon"]


@pytest.mark.both_databases
def test_a_response_contains_only_what_the_request_wrote_or_named(admin, make_coupon):
    plain = make_coupon(code="plain")
    assert not BLANK.keys() & plain.keys()
    assert options(admin, plain["id"]) == BLANK
    coupon = body(
        admin.post("/coupons", {"coupon": {"code": "all", **GIVEN, "metadata": {"a": 1}}})
    )
    assert list(coupon)[-len(SHOWN) - 1 :] == [*SHOWN, "metadata"]
    assert coupon.items() >= SHOWN.items()
    assert options(admin, coupon["id"]) == SHOWN
    assert not BLANK.keys() & read(admin, coupon["id"]).keys()
    some = admin.get("/coupons", {"fields": "tags,code"}).get_json()["coupons"]
    assert some == [
        {"code": "all", "tags": SHOWN["tags"]},
        {"code": "plain", "tags": []},
    ]
    assert body(edit(admin, coupon["id"], tags=["b"])).keys() & BLANK.keys() == {"tags"}
    blank = BLANK | {"starts_at": "", "maximum_discount": ""}
    assert body(edit(admin, coupon["id"], **blank)).items() >= BLANK.items()
    items = [{"id": plain["id"], **GIVEN}, {"code": "b", **GIVEN}, {"code": "c", "tags": ["x"]}]
    results = admin.post("/coupons/bulk", {"coupons": items}).get_json()["coupons"]
    assert [each.keys() & BLANK.keys() for each in results] == [*[BLANK.keys()] * 2, {"tags"}]
    assert [options(admin, each["id"]) for each in results] == [
        *[SHOWN] * 2,
        BLANK | {"tags": ["x"]},
    ]


@pytest.mark.both_databases
def test_generated_and_imported_coupons_have_them(admin, app, tmp_path):
    response = generate(admin, count=2, coupon={"type": "percent", "amount": "10", **GIVEN})
    found = listed(admin, response.get_json()["batch"])
    assert [options(admin, each["id"]) for each in found] == [SHOWN] * 2
    file = tmp_path / "coupons.csv"
    names = ["active", "starts_at", "tags", "combines_with", "maximum_discount", "first_order_only"]
    cells = ["false", "2030-12-01T09:00:00Z", "a b|c", "-a b|code:d", "50", ""]
    file.write_text(f"code,{','.join(names)}\nx,{','.join(cells)}\ny,,,,,,\n")
    succeed(app, "import", "coupons", file)
    written = {"tags": ["a b", "c"], "combines_with": ["-a b", "code:d"]}
    written |= {name: SHOWN[name] for name in ("active", "starts_at", "maximum_discount")}
    for code, shown in (("x", BLANK | written), ("y", BLANK)):
        response = admin.get(f"/coupons/code/{code}", {"fields": NAMES})
        assert response.get_json()["coupon"] == shown


def test_invalid_values(admin):
    long = "x" * 65
    for name, values in (
        ("tags", ["newsletter", [""], [None], [long], ["-a"], ["code:a"], ["role:a"]]),
        ("tags", [[f"{number}" for number in range(51)]]),
        ("combines_with", [["role:customer"], ["code:"], ["--a"], [f"-{long}"]]),
        ("customer_tags", [["code:a"], [f"role:{long}"], [f"{number}" for number in range(101)]]),
        ("maximum_discount", ["-0.01"]),
        ("starts_at", ["soon"]),
        ("get_product_ids", [7]),
    ):
        for value in values:
            response = admin.post("/coupons", {"coupon": {"code": "a", name: value}})
            assert refused_params(response) == [f"coupon.{name}"], value
    for given in (
        {"tags": ["x" * 64, "5"]},
        {"combines_with": ["-" + "x" * 64, "code:" + "x" * 500]},
        {"customer_tags": ["-role:" + "x" * 64]},
    ):
        assert body(admin.post("/coupons", {"coupon": {"code": f"a{[*given]}", **given}}))


def test_values_are_converted_like_those_of_other_fields(admin):
    strict = {"Prefer": "handling=strict"}
    for given, shown in (
        ({"active": "true"}, False),
        ({"starts_at": "2030-12-01"}, "2030-12-01T00:00:00Z"),
        ({"starts_at": "2030-12-01T10:00:00.9"}, "2030-12-01T10:00:00Z"),
        ({"maximum_discount": 0}, "0.00"),
        ({"buy_quantity": -3}, 3),
    ):
        (name,) = given
        coupon = {"code": f"{given}", **given}
        assert body(admin.post("/coupons", {"coupon": coupon}))[name] == shown
    coupon = {"code": "strict", "tags": ["A", "a"], "active": True}
    assert body(admin.post("/coupons", {"coupon": coupon}, headers=strict))["tags"] == ["a"]
    for given in ({"active": "true"}, {"tags": ["<b>a</b>"]}):
        coupon = {"code": "s", **given}
        response = admin.post("/coupons", {"coupon": coupon}, headers=strict)
        assert refused_params(response) == [f"coupon.{name}" for name in given]


def test_the_entity_tag_changes_with_each_of_them(admin, make_coupon):
    path = f"/coupons/{make_coupon(code='a')['id']}"
    tags = [admin.get(path).headers["ETag"]]
    for name, value in GIVEN.items():
        header = {"If-Match": tags[-1]}
        assert admin.put(path, {"coupon": {name: value}}, headers=header).status_code == 200
        tags.append(admin.get(path).headers["ETag"])
    assert len(set(tags)) == len(GIVEN) + 1
    stale = {"If-Match": tags[0]}
    assert admin.put(path, {"coupon": {"tags": []}}, headers=stale).status_code == 412


@pytest.mark.parametrize("prefix", ["/wc-api/v2", "/wc-api/v3"])
def test_the_legacy_api_ignores_and_keeps_them(admin, make_coupon, prefix):
    coupon = make_coupon(code="a", **GIVEN)
    response = admin.put(f"{prefix}/coupons/{coupon['id']}", {"coupon": {**BLANK, "amount": "5"}})
    assert not BLANK.keys() & body(response).keys()
    response = admin.get(f"{prefix}/coupons/{coupon['id']}", {"fields": NAMES})
    assert response.get_json() == {"coupon": {}}
    assert options(admin, coupon["id"]) == SHOWN


def test_events_contain_what_the_request_wrote(admin, make_coupon):
    coupon = make_coupon(code="a", tags=["x"])
    edit(admin, coupon["id"], amount="5")
    edit(admin, coupon["id"], active=False)
    events = admin.get("/events", {"filter[resource]": "coupon"}).get_json()["events"]
    found = [event["data"]["coupon"] for event in events]
    written = [{n: v for n, v in each.items() if n in BLANK} for each in found]
    assert written == [{"tags": ["x"]}, {}, {"active": False}]


PAST = (datetime.now(UTC) - timedelta(days=2)).strftime("%Y-%m-%d")
STATES = {
    "expired": {"expiry_date": PAST, "active": False, "starts_at": "2040-01-01"},
    "paused": {"active": False, "starts_at": "2040-01-01", "usage_limit": 1, "usage_count": 1},
    "scheduled": {"starts_at": "2040-01-01", "usage_limit": 1, "usage_count": 1},
    "used_up": {"starts_at": PAST, "usage_limit": 1, "usage_count": 1},
    "active": {"starts_at": PAST},
}


@pytest.mark.both_databases
def test_a_coupon_expires_as_its_day_begins(admin, make_coupon):
    today = datetime.now(UTC).date()
    for code, day in ("today", today), ("later", today + timedelta(days=9)):
        make_coupon(code=code, expiry_date=str(day))
    for state, code in ("expired", "today"), ("active", "later"):
        found = admin.get("/coupons", {"state": state, "fields": "code"})
        assert found.get_json() == {"coupons": [{"code": code}]}


@pytest.mark.both_databases
def test_a_coupon_has_exactly_one_state(admin, make_coupon):
    for state, fields in STATES.items():
        make_coupon(code=state, **fields)
    make_coupon(code="plain")
    for state in STATES:
        query = {"state": state, "orderby": "id", "order": "asc", "fields": "code"}
        found = admin.get("/coupons", query)
        codes = [state] if state != "active" else ["active", "plain"]
        assert [each["code"] for each in found.get_json()["coupons"]] == codes
        assert found.headers["X-Total"] == str(len(codes))
        count = admin.get("/coupons/count", {"state": state}).get_json()["count"]
        assert count == len(codes)


@pytest.mark.both_databases
def test_a_paused_coupon_gives_no_new_use(admin, make_coupon, expire):
    limited = make_coupon(code="limited", usage_limit=9)
    for code in (limited["code"], make_coupon(code="summer")["code"]):
        held, expired, released = (reserve(admin, code, f"{n}") for n in range(3))
        move(admin, released, "release")
        ordered = create(admin, line_items=[LINE], coupon_lines=[{"code": code}])
        coupon = admin.get(f"/coupons/code/{code}").get_json()["coupon"]
        edit(admin, coupon["id"], active=False)
        assert rejected(post(admin, code, "new")) == ["paused"]
        assert rejected(post(admin, code, "2")) == ["paused"]
        lines = [{"code": code}]
        response = admin.post("/orders", {"order": {"line_items": [LINE], "coupon_lines": lines}})
        (error,) = response.get_json()["errors"]
        assert [each["code"] for each in error["reasons"]] == ["paused"]
        # Uses that exist, and lines that record a coupon, are not concerned.
        assert post(admin, code, "0").status_code == 200
        move(admin, held, "confirm")
        expire(expired)
        move(admin, expired, "confirm")
        create(admin, line_items=[LINE], coupon_lines=[{"code": code, "amount": "1.00"}])
        change(admin, ordered["id"], status="cancelled")
        change(admin, ordered["id"], status="processing")
        response = admin.put(f"/orders/{ordered['id']}", {"order": {"line_items": [LINE]}})
        (error,) = response.get_json()["errors"]
        assert [each["code"] for each in error["reasons"]] == ["paused"]


def test_a_coupon_that_has_not_started(admin, make_coupon):
    make_coupon(code="summer", starts_at="2040-01-01T10:00:00Z")
    response = post(admin)
    assert rejected(response) == ["not_started"]
    (reason,) = response.get_json()["errors"][0]["reasons"]
    assert reason["message"] == "The coupon cannot be used before 2040-01-01T10:00:00Z."


def reasons(client, **cart):
    cart = {"items": [{"price": "10"}], "coupons": ["summer"], **cart}
    response = client.post("/coupons/evaluate", {"cart": cart})
    assert response.status_code == 200, response.get_json()
    return [
        [reason["code"] for reason in each["reasons"]]
        for each in response.get_json()["evaluation"]["coupons"]
    ]


def test_coupons_that_cannot_be_combined(admin, make_coupon):
    for code in ("summer", "winter"):
        make_coupon(code=code, tags=["mailing"], combines_with=["-mailing"])
    codes = ["summer", "winter"]
    assert reasons(admin, coupons=codes) == [[], ["not_combinable"]]
    lines = [{"code": code} for code in codes]
    response = admin.post("/orders", {"order": {"line_items": [LINE], "coupon_lines": lines}})
    (error,) = response.get_json()["errors"]
    message = "The coupon cannot be combined with the coupon summer."
    assert error["reasons"] == [{"code": "not_combinable", "message": message}]
    assert error["param"] == "order.coupon_lines[1].code"


@pytest.mark.both_databases
def test_tags_of_the_account_decide_who_may_use_a_coupon(admin, make_coupon, make_customer):
    vip, other = (make_customer(email=f"{name}@example.com") for name in ("vip", "other"))
    path = f"/customers/{vip['id']}"
    assert admin.put(path, {"customer": {"tags": ["VIP"]}}).get_json()["customer"]["tags"] == [
        "vip"
    ]
    refused = ["customer_not_allowed"]
    coupon = make_coupon(code="summer", customer_tags=["vip"])
    assert reasons(admin, customer_id=vip["id"]) == [[]]
    for cart in ({}, {"email": "vip@example.com"}, {"customer_id": other["id"]}):
        assert reasons(admin, **cart) == [refused]
        given = {name: value for name, value in cart.items() if value}
        assert rejected(post(admin, **given)) == refused
    reserve(admin, customer_id=vip["id"])
    order = {"line_items": [LINE], "coupon_lines": [{"code": "summer"}]}
    response = admin.post("/orders", {"order": {**order, "customer_id": other["id"]}})
    (error,) = response.get_json()["errors"]
    assert [each["code"] for each in error["reasons"]] == refused
    create(admin, **order, customer_id=vip["id"])
    edit(admin, coupon["id"], customer_tags=["role:customer", "-vip"])
    assert reasons(admin, customer_id=vip["id"]) == [refused]
    assert reasons(admin, customer_id=other["id"]) == [[]]


@pytest.mark.both_databases
def test_the_first_order_of_a_customer(admin, make_coupon, make_customer):
    make_coupon(code="summer", first_order_only=True)
    ann, bob = (make_customer(email=f"{name}@example.com")["id"] for name in ("ann", "bob"))
    order = {"line_items": [LINE], "coupon_lines": [{"code": "summer"}]}
    first = create(admin, **order, customer_id=ann)
    second = create(admin, **order, customer_id=ann)  # the first is not paid
    change(admin, second["id"], status="completed")
    change(admin, second["id"], line_items=[LINE])  # only orders before it count
    refused = ["not_first_order"]
    for customer in ({"customer_id": ann}, {"email": "Ann@example.com"}):
        assert reasons(admin, **customer) == [refused]
        assert rejected(post(admin, **customer)) == refused
    change(admin, first["id"], line_items=[LINE])
    change(admin, second["id"], status="cancelled")
    assert reasons(admin, customer_id=ann) == [[]]
    guest = {"billing_address": {"email": "BOB@example.com"}}
    create(admin, line_items=[LINE], status="refunded", **guest)
    assert reasons(admin, customer_id=bob) == [refused]
    assert reasons(admin, email="bob@example.com") == [refused]
    assert reasons(admin) == [[]]
