"""Campaigns: records, conditions, limits and budgets (campaigns 1 to 7)."""

from decimal import Decimal

import pytest
from sqlalchemy import select

from app.db.read_pool import fetch
from app.models import Campaign, Redemption
from tests.api_client import Client, at_the_same_time, codes, refused_params, reply
from tests.coupons.batches import generate, listed
from tests.coupons.calls import edit
from tests.orders.calls import LINE, change, create
from tests.redemptions.calls import move, post, rejected, reserve

pytestmark = pytest.mark.both_databases

BLANK = {
    "active": True,
    "starts_at": None,
    "ends_at": None,
    "usage_limit": None,
    "usage_limit_per_user": None,
    "budget": "0.00",
    "tags": [],
    "combines_with": [],
    "state": "active",
    "uses": 0,
    "discount": "0.00",
}


def make(client, **fields):
    response = client.post("/campaigns", {"campaign": {"name": "Mailing", **fields}})
    assert response.status_code == 201, response.get_json()
    return response.get_json()["campaign"]


def read(client, campaign):
    return client.get(f"/campaigns/{campaign['id']}").get_json()["campaign"]


def put(client, campaign, **fields):
    response = client.put(f"/campaigns/{campaign['id']}", {"campaign": fields})
    assert response.status_code == 200, response.get_json()
    return response.get_json()["campaign"]


def figures(client, campaign):
    shown = read(client, campaign)
    return shown["uses"], shown["discount"]


def order_reasons(response):
    assert codes(response) == (400, "shop_api_coupon_not_applicable"), response.get_json()
    return [each["code"] for each in response.get_json()["errors"][0]["reasons"]]


@pytest.fixture
def exact(app):
    """Return a function: the stored numbers of limited campaigns are those of their uses."""

    def check():
        with app.app_context():
            for campaign in fetch(select(*Campaign.__table__.c)):
                uses = fetch(
                    select(Redemption.amount).where(
                        Redemption.campaign_id == campaign.id, Redemption.status != "released"
                    )
                )
                if campaign.usage_limit or campaign.usage_limit_per_user or campaign.budget:
                    amounts = sum((max(each.amount or 0, Decimal(0)) for each in uses), Decimal(0))
                    found = (campaign.stored_uses, campaign.stored_discount)
                    assert found == (len(uses), amounts)

    return check


def test_a_campaign_is_created_read_changed_and_deleted(admin):
    campaign = make(admin)
    times = {"created_at": campaign["created_at"], "updated_at": campaign["updated_at"]}
    assert campaign == {"id": campaign["id"], "name": "Mailing", **times, **BLANK}
    assert read(admin, campaign) == campaign
    given = {
        "name": "Spring",
        "active": False,
        "starts_at": "2030-01-01",
        "ends_at": "2031-01-01T10:00:00+01:00",
        "usage_limit": 5,
        "usage_limit_per_user": 1,
        "budget": 12.5,
        "tags": ["A"],
        "combines_with": ["-a", "code:X"],
    }
    changed = put(admin, campaign, **given)
    assert changed == campaign | given | {
        "updated_at": changed["updated_at"],
        "starts_at": "2030-01-01T00:00:00Z",
        "ends_at": "2031-01-01T09:00:00Z",
        "budget": "12.50",
        "tags": ["a"],
        "combines_with": ["-a", "code:x"],
        "state": "paused",
    }
    assert put(admin, campaign, **changed)["usage_limit"] == 5  # as it was read
    assert put(admin, campaign, starts_at="", budget="", usage_limit=0)["budget"] == "0.00"
    types = [each["type"] for each in admin.get("/events").get_json()["events"]]
    deleted = admin.delete(f"/campaigns/{campaign['id']}")
    assert reply(deleted) == (200, {"message": "Permanently deleted campaign"})
    assert types == ["campaign.created", *["campaign.updated"] * 3]
    (event,) = admin.get("/events", {"filter[type]": "campaign.deleted"}).get_json()["events"]
    assert event["data"] == {"campaign": {"id": campaign["id"]}, "permanent": True}
    assert codes(admin.get(f"/campaigns/{campaign['id']}")) == (404, "shop_api_invalid_campaign_id")


def test_what_is_rejected(admin):
    campaign = make(admin, starts_at="2030-01-01")
    path = f"/campaigns/{campaign['id']}"
    for name in ({}, {"name": ""}, {"name": "  "}):
        response = admin.post("/campaigns", {"campaign": name})
        assert codes(response) == (400, "shop_api_missing_campaign_name")
    assert codes(admin.put(path, {"campaign": {"name": ""}})) == (
        400,
        "shop_api_missing_campaign_name",
    )
    assert codes(admin.post("/campaigns", {})) == (400, "shop_api_missing_campaign_data")
    for given, param in (
        ({"usage_limitt": 1}, "usage_limitt"),
        ({"budget": "-1"}, "budget"),
        ({"name": "x" * 201}, "name"),
        ({"ends_at": "2030-01-01"}, "ends_at"),
        ({"active": "true"}, "active"),
    ):
        response = admin.put(path, {"campaign": given})
        assert refused_params(response) == [f"campaign.{param}"]
    missing = admin.put("/campaigns/999", {"campaign": {}})
    assert codes(missing) == (404, "shop_api_invalid_campaign_id")


def test_lists_find_campaigns(admin):
    made = [
        make(admin, name="Alpha", tags=["x"]),
        make(admin, name="Beta", active=False),
        make(admin, name="Gamma", starts_at="2040-01-01"),
        make(admin, name="Delta", ends_at="2020-01-01"),
    ]
    ids = [each["id"] for each in made]

    def found(**query):
        response = admin.get("/campaigns", {"fields": "id", **query})
        count = admin.get("/campaigns/count", query).get_json()["count"]
        assert response.headers["X-Total"] == str(count)
        return [each["id"] for each in response.get_json()["campaigns"]]

    assert found() == ids[::-1]
    assert found(q="ALPH") == found(tag="X") == found(state="active") == ids[:1]
    assert [found(state=state) for state in ("paused", "scheduled", "ended", "used_up")] == [
        [ids[1]], [ids[2]], [ids[3]], [],
    ]  # fmt: skip
    assert found(limit=2) == ids[:1:-1]


def test_coupons_join_and_leave_a_campaign(admin, make_coupon):
    campaign = make(admin)
    coupon = make_coupon(code="a", campaign_id=campaign["id"])
    assert coupon["campaign_id"] == campaign["id"]
    other = make_coupon(code="b")
    query = {"filter[campaign]": campaign["id"], "fields": "id"}
    assert admin.get("/coupons", query).get_json()["coupons"] == [{"id": coupon["id"]}]
    for unknown in (999, 10**18):
        response = edit(admin, other["id"], campaign_id=unknown)
        assert codes(response) == (400, "shop_api_invalid_campaign_id")
    part = edit(admin, other["id"], campaign_id=campaign["id"] + 0.5)
    assert refused_params(part) == ["coupon.campaign_id"]
    cannot = (400, "shop_api_cannot_delete_campaign")
    assert codes(admin.delete(f"/campaigns/{campaign['id']}")) == cannot
    admin.delete(f"/coupons/{coupon['id']}")
    assert codes(admin.delete(f"/campaigns/{campaign['id']}")) == cannot
    admin.post(f"/coupons/{coupon['id']}/restore")
    for none in (0, "0", ""):
        edit(admin, coupon["id"], campaign_id=campaign["id"])
        assert (
            edit(admin, coupon["id"], campaign_id=none).get_json()["coupon"]["campaign_id"] is None
        )
    assert admin.delete(f"/campaigns/{campaign['id']}").status_code == 200


def test_codes_are_generated_for_a_campaign(admin):
    campaign = make(admin)
    given = {"type": "percent", "amount": "10", "campaign_id": campaign["id"]}
    batch = generate(admin, count=3, coupon=given).get_json()["batch"]
    assert len(listed(admin, batch)) == 3
    assert admin.get("/coupons/count", {"campaign": campaign["id"]}).get_json() == {"count": 3}
    found = admin.get("/coupons/batches", {"campaign": campaign["id"], "fields": "id,campaign_id"})
    assert found.get_json()["batches"] == [{"id": batch["id"], "campaign_id": campaign["id"]}]
    response = generate(admin, count=3, coupon=given | {"campaign_id": 999})
    assert codes(response) == (400, "shop_api_invalid_campaign_id")


CONDITIONS = [
    ({"active": False}, ["paused"]),
    ({"starts_at": "2040-01-01"}, ["not_started"]),
    ({"ends_at": "2020-01-01"}, ["expired"]),
    ({"usage_limit": 1}, ["usage_limit"]),
    ({"usage_limit_per_user": 1}, ["usage_limit_per_user"]),
    ({"budget": "1.99"}, ["campaign_budget"]),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("fields", "reasons"), CONDITIONS)
def test_conditions_count_for_each_coupon(admin, make_coupon, exact, fields, reasons):
    campaign = make(admin)
    ids = {"campaign_id": campaign["id"], "type": "fixed_cart", "amount": "1"}
    make_coupon(code="first", **ids)
    make_coupon(code="summer", **ids)
    ann = {"email": "ann@example.com"}
    reserve(admin, "first", amount="1.00", **ann)
    put(admin, campaign, **fields)
    assert rejected(post(admin, "summer", "new", amount="1.00", **ann)) == reasons
    cart = {"coupons": ["summer"], "items": [{"price": "10"}], **ann}
    found = admin.post("/coupons/evaluate", {"cart": cart}).get_json()["evaluation"]["coupons"][0]
    assert [each["code"] for each in found["reasons"]] == reasons
    assert all("Mailing" not in each["message"] for each in found["reasons"])
    order = {"line_items": [LINE], "coupon_lines": [{"code": "summer"}], "billing_address": ann}
    assert order_reasons(admin.post("/orders", {"order": order})) == reasons
    assert figures(admin, campaign) == (1, "1.00")
    exact()


def test_earlier_codes_of_a_cart_count(admin, make_coupon, exact):
    campaign = make(admin, usage_limit=2, budget="5")
    for code in "abc":
        make_coupon(code=code, campaign_id=campaign["id"], type="fixed_cart", amount="1")
    cart = {"coupons": ["a", "b", "c"], "items": [{"price": "10"}]}
    found = admin.post("/coupons/evaluate", {"cart": cart}).get_json()["evaluation"]["coupons"]
    assert [[r["code"] for r in each["reasons"]] for each in found] == [[], [], ["usage_limit"]]
    order = {"line_items": [LINE], "coupon_lines": [{"code": code} for code in "abc"]}
    assert order_reasons(admin.post("/orders", {"order": order})) == ["usage_limit"]
    assert figures(admin, campaign) == (0, "0.00")
    made = create(admin, line_items=[LINE], coupon_lines=[{"code": "a"}, {"code": "b"}])
    assert figures(admin, campaign) == (2, "2.00")
    remove = [{"id": made["coupon_lines"][0]["id"], "remove": True}, {"code": "c"}]
    change(admin, made["id"], coupon_lines=remove)
    assert figures(admin, campaign) == (2, "2.00")
    change(admin, made["id"], status="cancelled")
    assert figures(admin, campaign) == (0, "0.00")
    change(admin, made["id"], status="completed")
    assert figures(admin, campaign) == (2, "2.00")
    admin.delete(f"/orders/{made['id']}")
    assert figures(admin, campaign) == (0, "0.00")
    admin.post(f"/orders/{made['id']}/restore")
    assert figures(admin, campaign) == (2, "2.00")
    exact()


def test_a_budget_follows_the_amount_of_an_order(admin, make_coupon, exact):
    campaign = make(admin, budget="3")
    make_coupon(code="summer", campaign_id=campaign["id"], type="percent", amount="50")
    made = create(admin, line_items=[LINE], coupon_lines=[{"code": "summer"}])
    assert figures(admin, campaign) == (1, "2.00")
    response = admin.put(f"/orders/{made['id']}", {"order": {"line_items": [LINE]}})
    assert order_reasons(response) == ["campaign_budget"]
    response = admin.put(f"/orders/{made['id']}", {"order": {"currency": "EUR"}})
    assert order_reasons(response) == ["campaign_budget"]
    line = {"id": made["line_items"][0]["id"], "subtotal": "6.00"}
    change(admin, made["id"], line_items=[line])
    assert figures(admin, campaign) == (1, "3.00")
    assert read(admin, campaign)["state"] == "used_up"
    put(admin, campaign, budget="1")
    change(admin, made["id"], line_items=[line | {"subtotal": "5.00"}])  # it does not grow
    assert figures(admin, campaign) == (1, "2.50")
    recorded = {"line_items": [LINE], "coupon_lines": [{"code": "summer", "amount": "1.00"}]}
    assert order_reasons(admin.post("/orders", {"order": recorded})) == ["campaign_budget"]
    exact()


def test_uses_count_from_reservation_to_release(admin, make_coupon, expire, exact):
    campaign = make(admin, usage_limit=2, budget="5")
    for code in "abc":
        make_coupon(code=code, campaign_id=campaign["id"])
    assert refused_params(post(admin, "a", "1")) == ["redemption.amount"]
    first, second = (reserve(admin, code, code, amount="2.00") for code in "ab")
    assert post(admin, "a", "a", amount="9.00").status_code == 200  # the same use
    assert rejected(post(admin, "c", "c", amount="1.00")) == ["usage_limit"]
    move(admin, first, "confirm")
    assert figures(admin, campaign) == (2, "4.00")
    expire(second)
    assert figures(admin, campaign) == (1, "2.00")
    third = reserve(admin, "c", "c", amount="1.00")
    assert figures(admin, campaign) == (2, "3.00")
    response = admin.post(f"/redemptions/{second['id']}/confirm")
    assert rejected(response) == ["usage_limit"]
    move(admin, third, "release")
    move(admin, second, "confirm")
    assert figures(admin, campaign) == (2, "4.00")
    move(admin, first, "release")
    reserve(admin, "c", "c", amount="3.00")
    assert figures(admin, campaign) == (2, "5.00")
    query = {"filter[campaign]": campaign["id"], "fields": "id,campaign_id"}
    found = admin.get("/redemptions", query).get_json()["redemptions"]
    assert found[0] == {"id": third["id"], "campaign_id": campaign["id"]}
    exact()


def test_uses_stay_in_the_campaign_in_which_they_were_taken(admin, make_coupon, exact):
    old, new = make(admin, usage_limit=1), make(admin, usage_limit=1)
    coupon = make_coupon(code="a", campaign_id=old["id"])
    held = reserve(admin, "a", "1")
    edit(admin, coupon["id"], campaign_id=new["id"])
    reserve(admin, "a", "2")
    assert [figures(admin, each)[0] for each in (old, new)] == [1, 1]
    move(admin, held, "release")
    assert [figures(admin, each)[0] for each in (old, new)] == [0, 1]
    assert rejected(post(admin, "a", "1")) == ["usage_limit"]
    exact()


def test_a_limit_that_is_set_later_counts_earlier_uses(admin, make_coupon, exact):
    campaign = make(admin)
    make_coupon(code="a", campaign_id=campaign["id"])
    for number in range(3):
        reserve(admin, "a", f"{number}", amount="2.00")
    assert figures(admin, campaign) == (3, "6.00")
    assert put(admin, campaign, budget="7")["discount"] == "6.00"
    assert rejected(post(admin, "a", "x", amount="2.00")) == ["campaign_budget"]
    reserve(admin, "a", "x", amount="0.00")
    put(admin, campaign, budget="", usage_limit=4)
    assert rejected(post(admin, "a", "y")) == ["usage_limit"]
    exact()


def test_the_event_of_a_use_names_the_campaign(admin, make_coupon):
    campaign = make(admin)
    make_coupon(code="a", campaign_id=campaign["id"])
    reserve(admin, "a", amount="2.00")
    (event,) = admin.get("/events", {"filter[type]": "coupon.redeemed"}).get_json()["events"]
    shown = event["data"]["redemption"]
    assert (shown["campaign_id"], shown["amount"]) == (campaign["id"], "2.00")


@pytest.mark.parametrize("limit", [{"usage_limit": 10}, {"budget": "20"}])
def test_many_codes_never_exceed_a_limit(admin, make_coupon, exact, limit):
    campaign = make(admin, **limit)
    for number in range(8):
        make_coupon(code=f"c{number}", campaign_id=campaign["id"])

    def use(number):
        client = Client(admin.app, admin.key)
        statuses = []
        for each in range(4):
            response = post(client, f"c{number}", f"{each}", amount="2.00")
            statuses.append(response.status_code)
            if response.status_code == 201 and each == 1:
                found = response.get_json()["redemption"]["id"]
                client.post(f"/redemptions/{found}/release")
                statuses[-1] = 0
        return statuses

    results = at_the_same_time(use, range(8))
    assert sum(each.count(201) for each in results) <= 10
    uses, discount = figures(admin, campaign)
    assert (uses, discount) == (sum(each.count(201) for each in results), f"{2 * uses}.00")
    while post(admin, "c0", f"more-{uses}", amount="2.00").status_code == 201:
        uses += 1
    assert figures(admin, campaign) == (10, "20.00")
    exact()


def test_orders_and_reservations_of_many_codes_at_once(admin, make_coupon, exact):
    campaign = make(admin, usage_limit=6, budget="12")
    for number in range(4):
        make_coupon(code=f"c{number}", campaign_id=campaign["id"], type="fixed_cart", amount="2")

    def use(number):
        client = Client(admin.app, admin.key)
        for each in range(3):
            lines = [{"code": f"c{number % 4}"}, {"code": f"c{(number + 1) % 4}"}]
            order = {"line_items": [LINE], "coupon_lines": lines}
            response = client.post("/orders", {"order": order})
            assert response.status_code in {201, 400}, response.get_json()
            if response.status_code == 201 and each:
                path = f"/orders/{response.get_json()['order']['id']}"
                assert client.put(path, {"order": {"status": "cancelled"}}).status_code == 200
            assert post(client, f"c{number % 4}", f"{number}-{each}", amount="2").status_code in {
                201,
                400,
            }

    at_the_same_time(use, range(8))
    uses, discount = figures(admin, campaign)
    assert uses <= 6
    assert Decimal(discount) <= 12
    exact()


def test_a_pause_is_seen_by_every_later_use(admin, make_coupon):
    campaign = make(admin)
    for number in range(4):
        make_coupon(code=f"c{number}", campaign_id=campaign["id"])

    def use(number):
        client = Client(admin.app, admin.key)
        if number == 4:
            put(client, campaign, active=False)
            return [post(client, "c0", "after").status_code]
        return [post(client, f"c{number}", f"{each}").status_code for each in range(5)]

    results = at_the_same_time(use, range(5))
    assert results[4] == [400]
    assert all(each == sorted(each) for each in results)


def test_sums_beyond_64_bits_are_exact_or_refused(admin, make_coupon):
    """SQLite adds integers of 64 bits. Without a limit, the sum is computed when it is read."""
    most = "9999999999999999.99"
    for limits, taken, discount in (
        ({}, 12, "119999999999999999.88"),
        ({"usage_limit": 100}, 9, "89999999999999999.91"),
    ):
        campaign_id = make(admin, **limits)["id"]
        code = make_coupon(campaign_id=campaign_id)["code"]
        answers = [post(admin, code, f"{code}-{number}", amount=most) for number in range(12)]
        assert [each.status_code for each in answers] == [201] * taken + [400] * (12 - taken)
        assert all(rejected(each) == ["campaign_budget"] for each in answers[taken:])
        shown = admin.get(f"/campaigns/{campaign_id}").get_json()["campaign"]
        assert (shown["uses"], shown["discount"]) == (taken, discount)
        set_later = admin.put(f"/campaigns/{campaign_id}", {"campaign": {"usage_limit": 50}})
        assert set_later.status_code == (200 if limits else 400), set_later.get_json()
    assert admin.get("/campaigns").get_json()["campaigns"][1]["discount"] == "119999999999999999.88"
