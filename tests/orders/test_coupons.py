"""Coupons of orders: applied and recorded, and the uses that a status takes (redemptions 4, 6)."""

import random

import pytest
from sqlalchemy import update as update_of

from app.db.session import run_in_transaction
from app.models import Order
from tests.api_client import codes, refusal, reply, without_key

NOT_APPLICABLE = "shop_api_coupon_not_applicable"
LINE = {"name": "Teapot", "product_id": 7, "quantity": 2, "price": "13.95"}


def post(client, *listed, **over):
    order = {"line_items": [LINE], "coupon_lines": [{"code": code} for code in listed]} | over
    return client.post("/orders", {"order": order})


def create(client, *listed, **over):
    response = post(client, *listed, **over)
    assert response.status_code == 201, response.get_json()
    return response.get_json()["order"]


def put(client, order, **fields):
    return client.put(f"/orders/{order['id']}", {"order": fields})


def update(client, order, **fields):
    response = put(client, order, **fields)
    assert response.status_code == 200, response.get_json()
    return response.get_json()["order"]


def rejected(response, param="order.coupon_lines[0].code"):
    """The codes of the reasons of a rejection."""
    assert codes(response) == (400, NOT_APPLICABLE)
    (entry,) = response.get_json()["errors"]
    assert entry["param"] == param
    return [reason["code"] for reason in entry["reasons"]]


@pytest.fixture
def uses(admin):
    """Return a function: the statuses of an order's redemptions, and the coupon's count."""

    def read(order, coupon):
        query = {"filter[order_id]": order["id"], "filter[order]": "asc", "filter[orderby]": "id"}
        rows = admin.get("/redemptions", query).get_json()["redemptions"]
        shown = admin.get(f"/coupons/{coupon['id']}").get_json()["coupon"]
        return [row["status"] for row in rows], shown["usage_count"]

    return read


@pytest.mark.both_databases
def test_applied_coupon(admin, make_coupon):
    coupon = make_coupon(code="summer", type="percent", amount=20, usage_limit=1)
    order = create(admin, "SUMMER", billing_address={"email": "ada@example.com"})
    assert (order["subtotal"], order["total_discount"], order["total"]) == (
        "27.90", "5.58", "22.32",
    )  # fmt: skip
    (line,) = order["coupon_lines"]
    assert (line["code"], line["amount"]) == ("summer", "5.58")
    (redemption,) = admin.get("/redemptions").get_json()["redemptions"]
    assert redemption == {
        "id": redemption["id"],
        "coupon_id": coupon["id"],
        "code": "summer",
        "reference": f"order-{order['id']}",
        "order_id": order["id"],
        "customer_id": 0,
        "email": "ada@example.com",
        "amount": "5.58",
        "status": "reserved",
        "created_at": redemption["created_at"],
        "updated_at": redemption["created_at"],
        "confirmed_at": None,
        "expires_at": None,
    }
    assert rejected(post(admin, "summer")) == ["usage_limit"]
    path = f"/redemptions/{redemption['id']}"
    assert codes(admin.post(f"{path}/release")) == (409, "shop_api_invalid_redemption_status")


@pytest.mark.both_databases
def test_reasons_of_an_applied_coupon(admin, make_coupon):
    make_coupon(code="good", type="percent", amount=10)
    make_coupon(code="bad", minimum_amount=100, product_ids=[1])
    response = post(admin, "good", "bad", "none")
    expected = ["minimum_amount", "product_not_included"]
    assert rejected(response, "order.coupon_lines[1].code") == expected
    assert rejected(post(admin, "none")) == ["not_found"]
    assert admin.get("/orders/count").get_json() == {"count": 0}
    assert admin.get("/redemptions/count").get_json() == {"count": 0}


def test_recorded_coupon_checks_the_limits_only(admin, make_coupon, uses):
    coupon = make_coupon(code="old", expiry_date="2020-01-01", minimum_amount=100, usage_limit=1)
    recorded = [{"code": "old", "amount": "3"}, {"code": "unknown", "amount": "1"}]
    order = create(admin, coupon_lines=recorded, status="completed")
    assert [line["amount"] for line in order["coupon_lines"]] == ["3.00", "1.00"]
    assert uses(order, coupon) == (["confirmed"], 1)
    assert rejected(post(admin, coupon_lines=recorded)) == ["usage_limit"]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("pending", (["reserved"], 0)),
        ("processing", (["confirmed"], 1)),
        ("on-hold", (["confirmed"], 1)),
        ("completed", (["confirmed"], 1)),
        ("refunded", (["confirmed"], 1)),
        ("cancelled", ([], 0)),
        ("failed", ([], 0)),
    ],
)
@pytest.mark.parametrize("limit", [0, 2])
def test_status_of_a_new_order(admin, make_coupon, uses, status, expected, limit):
    coupon = make_coupon(code="summer", usage_limit=limit)
    assert uses(create(admin, "summer", status=status), coupon) == expected


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["pending", "processing"], (["confirmed"], 1)),
        (["pending", "processing", "completed"], (["confirmed"], 1)),
        (["processing", "pending"], (["reserved"], 0)),
        (["processing", "pending", "processing"], (["confirmed"], 1)),
        (["pending", "cancelled"], (["released"], 0)),
        (["completed", "failed"], (["released"], 0)),
        (["completed", "refunded"], (["confirmed"], 1)),
        (["pending", "refunded"], (["reserved"], 0)),
        (["pending", "cancelled", "refunded"], (["released"], 0)),
        (["pending", "cancelled", "pending"], (["reserved"], 0)),
        (["completed", "cancelled", "completed"], (["confirmed"], 1)),
        (["cancelled", "processing"], (["confirmed"], 1)),
    ],
)
@pytest.mark.parametrize("limit", [0, 1])
def test_status_moves(admin, make_coupon, uses, statuses, expected, limit):
    coupon = make_coupon(code="summer", usage_limit=limit)
    order = create(admin, "summer", status=statuses[0])
    for status in statuses[1:]:
        update(admin, order, status=status)
    assert uses(order, coupon) == expected
    held = expected[0] != ["released"]
    again = post(admin, "summer")
    assert again.status_code == (400 if held and limit else 201)


@pytest.mark.both_databases
def test_moving_back_needs_a_slot(admin, make_coupon, uses):
    coupon = make_coupon(code="summer", usage_limit=1)
    order = create(admin, "summer")
    update(admin, order, status="cancelled")
    other = create(admin, "summer")
    response = put(admin, order, status="processing")
    assert rejected(response, "order.coupon_lines") == ["usage_limit"]
    assert admin.get(f"/orders/{order['id']}").get_json()["order"]["status"] == "cancelled"
    update(admin, other, status="cancelled")
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"expiry_date": "2020-01-01"}})
    update(admin, order, status="processing")
    assert uses(order, coupon) == (["confirmed"], 1)


@pytest.mark.parametrize(
    ("status", "back"),
    [
        ("pending", (["reserved"], 0)),
        ("completed", (["confirmed"], 1)),
        ("refunded", (["confirmed"], 1)),
        ("cancelled", ([], 0)),
    ],
)
def test_trash_and_restore(admin, make_coupon, uses, status, back):
    coupon = make_coupon(code="summer", usage_limit=1)
    order = create(admin, "summer", status=status)
    assert uses(order, coupon) == back
    assert admin.delete(f"/orders/{order['id']}").status_code == 200
    assert uses(order, coupon) == (["released"] * len(back[0]), 0)
    other = create(admin, "summer")
    response = admin.post(f"/orders/{order['id']}/restore")
    if back[0]:
        assert rejected(response, "order.coupon_lines") == ["usage_limit"]
        update(admin, other, status="cancelled")
        assert admin.post(f"/orders/{order['id']}/restore").status_code == 200
    assert uses(order, coupon) == back


def test_permanent_removal_releases(admin, make_coupon, uses):
    coupon = make_coupon(code="summer", usage_limit=1)
    order = create(admin, "summer", status="completed")
    admin.delete(f"/orders/{order['id']}", {"force": "true"})
    assert uses(order, coupon) == (["released"], 0)


def test_removing_a_line_releases_and_adding_it_again_is_a_new_redemption(admin, make_coupon, uses):
    coupon = make_coupon(code="summer", type="percent", amount=20, usage_limit=1)
    order = create(admin, "summer", status="completed")
    line = order["coupon_lines"][0]
    after = update(admin, order, coupon_lines=[{"id": line["id"], "remove": True}])
    assert (after["total"], after["total_discount"]) == ("27.90", "0.00")
    assert uses(order, coupon) == (["released"], 0)
    again = update(admin, order, coupon_lines=[{"code": "summer"}])
    assert again["total"] == "22.32"
    assert uses(order, coupon) == (["released", "confirmed"], 1)


def test_recomputed_when_lines_change(admin, make_coupon, uses):
    coupon = make_coupon(code="summer", type="percent", amount=10, minimum_amount=20, usage_limit=1)
    order = create(admin, "summer")
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"amount": 20}})
    assert update(admin, order, note="hello")["total"] == "25.11"
    after = update(admin, order, line_items=[{"name": "Mug", "price": "10.00"}])
    assert (after["total"], after["coupon_lines"][0]["amount"]) == ("30.32", "7.58")
    first, second = (item["id"] for item in after["line_items"])
    response = put(admin, order, line_items=[{"id": first, "remove": True}])
    assert rejected(response, "order.coupon_lines") == ["minimum_amount"]
    assert admin.get(f"/orders/{order['id']}").get_json()["order"] == after
    assert uses(order, coupon) == (["reserved"], 0)
    admin.delete(f"/coupons/{coupon['id']}")
    gone = update(admin, order, line_items=[{"id": second, "remove": True}])
    assert gone["coupon_lines"][0]["amount"] == "7.58"


def test_customer_changes_are_checked_again(admin, make_coupon, make_customer, uses):
    coupon = make_coupon(code="summer", usage_limit_per_user=1)
    ada, bob = make_customer(email="ada@example.com"), make_customer(email="bob@example.com")
    create(admin, "summer", customer_id=ada["id"])
    order = create(admin, "summer", customer_id=bob["id"])
    assert rejected(post(admin, "summer", customer_id=ada["id"])) == ["usage_limit_per_user"]
    for fields in ({"customer_id": ada["id"]}, {"billing_address": {"email": "ADA@example.com"}}):
        response = put(admin, order, **fields)
        assert rejected(response, "order.coupon_lines") == ["usage_limit_per_user"]
    update(admin, order, customer_id=0, billing_address={"email": "eve@example.com"})
    redemption = admin.get("/redemptions", {"filter[order_id]": order["id"]}).get_json()
    assert redemption["redemptions"][0]["email"] == "eve@example.com"
    create(admin, "summer", customer_id=bob["id"])
    assert uses(order, coupon) == (["reserved"], 0)


@pytest.mark.both_databases
def test_addresses_beyond_any_entry_of_an_index_count(app, admin, make_coupon):
    make_coupon(code="summer", usage_limit_per_user=1)
    letters = random.Random(1).choices(
        [chr(0x4E00 + each) for each in range(20_000)], k=980
    )  # reproducible
    address = {"email": f"{''.join(letters)}@Example.com"}
    order = create(admin, "summer", billing_address=address)
    address = {"email": address["email"].lower()}
    assert rejected(post(admin, "summer", billing_address=address)) == ["usage_limit_per_user"]
    (use,) = admin.get("/redemptions", {"filter[order_id]": order["id"]}).json["redemptions"]
    assert use["email"] == order["billing_address"]["email"]
    assert admin.get("/redemptions/count", {"filter[email]": use["email"]}).json == {"count": 1}


@pytest.mark.both_databases
def test_bulk_items_fail_alone_and_give_back_what_they_took(admin, make_coupon, make_customer):
    coupon = make_coupon(code="one", usage_limit=2)
    make_coupon(code="own", usage_limit_per_user=1)
    ada = make_customer()["id"]
    make_coupon(code="full", usage_limit=1, usage_count=1)

    def order(*listed, **over):
        return {"line_items": [LINE], "coupon_lines": [{"code": code} for code in listed]} | over

    items = [
        order("one"),
        order("one", "full"),
        order("one"),
        order("one"),
        order("own", customer_id=ada),
        order("own", customer_id=ada),
        order(),
    ]
    results = admin.post("/orders/bulk", {"orders": items}).get_json()["orders"]
    reasons = [[r["code"] for r in each.get("error", {}).get("reasons", [])] for each in results]
    assert reasons == [
        [], ["usage_limit"], [], ["usage_limit"], [], ["usage_limit_per_user"], [],
    ]  # fmt: skip
    query = {"filter[coupon_id]": coupon["id"], "filter[status]": "reserved"}
    assert admin.get("/redemptions/count", query).get_json() == {"count": 2}
    made = [each for each in results if "error" not in each]
    stored = admin.get("/orders", {"filter[limit]": -1}).get_json()["orders"]
    assert sorted(each["id"] for each in stored) == sorted(each["id"] for each in made)


def test_update_that_is_rejected_keeps_the_removed_coupon(admin, make_coupon, uses):
    kept = make_coupon(code="kept", usage_limit=1)
    make_coupon(code="full", usage_limit=1, usage_count=1)
    order = create(admin, "kept")
    line = order["coupon_lines"][0]["id"]
    change = [{"id": line, "remove": True}, {"code": "full", "amount": "1"}]
    response = put(admin, order, coupon_lines=change)
    assert rejected(response, "order.coupon_lines[1].code") == ["usage_limit"]
    assert uses(order, kept) == (["reserved"], 0)


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_legacy_orders_redeem(admin, make_coupon, uses, version):
    coupon = make_coupon(code="summer", usage_limit=1)
    body = {"order": {"line_items": [LINE], "coupon_lines": [{"code": "summer"}]}}
    order = admin.post(f"/wc-api/{version}/orders", body).get_json()["order"]
    assert uses(order, coupon) == (["reserved"], 0)
    refused = admin.post(f"/wc-api/{version}/orders", body)
    assert codes(refused) == (400, NOT_APPLICABLE.replace("shop_api", "woocommerce_api"))
    path = f"/wc-api/{version}/orders/{order['id']}"
    admin.put(path, {"order": {"status": "completed"}})
    assert uses(order, coupon) == (["confirmed"], 1)
    assert reply(admin.delete(path))[0] == 202
    assert uses(order, coupon) == (["released"], 0)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (["pending", "refunded"], (["reserved"], 0)),
        (["completed", "refunded"], (["confirmed"], 1)),
        # Everything can happen within one second.
        (["pending", "cancelled", "refunded"], (["released"], 0)),
        (["refunded"], (["confirmed"], 1)),
    ],
)
def test_restore_takes_a_use_again_as_it_was(admin, make_coupon, uses, statuses, expected):
    coupon = make_coupon(code="summer", usage_limit=1)
    order = create(admin, "summer", status=statuses[0])
    for status in statuses[1:]:
        update(admin, order, status=status)
    for _ in range(2):
        assert admin.delete(f"/orders/{order['id']}").status_code == 200
        assert uses(order, coupon) == (["released"], 0)
        assert admin.post(f"/orders/{order['id']}/restore").status_code == 200
        assert uses(order, coupon) == expected


def test_discount_of_a_deleted_coupon_stays(admin, make_coupon):
    coupon = make_coupon(code="summer", type="percent", amount=10)
    order = create(admin, "summer")
    admin.delete(f"/coupons/{coupon['id']}", {"force": "true"})
    after = update(admin, order, line_items=[{"name": "Mug", "price": "10.00"}])
    assert after["coupon_lines"] == order["coupon_lines"]
    assert (after["subtotal"], after["total_discount"], after["total"]) == (
        "37.90", "2.79", "35.11",
    )  # fmt: skip
    line = {"id": order["line_items"][0]["id"], "quantity": 4}
    assert update(admin, order, line_items=[line])["total"] == "60.22"
    remove = {"id": order["coupon_lines"][0]["id"], "remove": True}
    after = update(admin, order, coupon_lines=[remove])
    assert (after["total_discount"], after["total"]) == ("0.00", "65.80")


def renamed(client, coupon, code):
    response = client.put(f"/coupons/{coupon['id']}", {"coupon": {"code": code}})
    assert response.status_code == 200


@pytest.mark.sample(2)
@pytest.mark.parametrize("status", ["pending", "completed", "cancelled"])
@pytest.mark.parametrize("line", [{"code": "new"}, {"code": "new", "amount": "1"}])
def test_order_uses_a_coupon_once_whatever_its_code(admin, make_coupon, uses, status, line):
    """There is at most one live redemption per order and coupon (redemptions 6)."""
    coupon = make_coupon(code="old", usage_limit=5)
    order = create(admin, "old")
    update(admin, order, status=status)
    before = uses(order, coupon)
    renamed(admin, coupon, "new")
    response = put(admin, order, coupon_lines=[line])
    assert reply(response) == refusal(
        "shop_api_invalid_order_item",
        param="order.coupon_lines[0].code",
        reason="is the new code of a coupon that the order already uses.",
    )
    assert uses(order, coupon) == before
    remove = {"id": order["coupon_lines"][0]["id"], "remove": True}
    update(admin, order, coupon_lines=[remove, line], status="completed")
    assert uses(order, coupon)[0][-1] == "confirmed"
    assert uses(order, coupon)[1] == 1


@pytest.mark.parametrize("status", ["pending", "cancelled"])
def test_recorded_code_that_becomes_the_code_of_a_coupon_in_use(admin, make_coupon, uses, status):
    coupon = make_coupon(code="old")
    recorded = [{"code": "unknown", "amount": "1"}, {"code": "old", "amount": "1"}]
    order = create(admin, coupon_lines=recorded, status=status)
    renamed(admin, coupon, "unknown")
    update(admin, order, status="completed")
    assert uses(order, coupon)[0][-1] == "confirmed"
    assert uses(order, coupon)[1] == 1


@pytest.mark.both_databases
def test_codes_that_coupons_exchange(admin, make_coupon, uses):
    """A line keeps its coupon when codes change, and gets no coupon that another line uses."""
    first, second = make_coupon(code="first"), make_coupon(code="second")
    recorded = [{"code": code, "amount": "1"} for code in ("first", "second")]
    order = create(admin, coupon_lines=recorded, status="cancelled")
    update(admin, order, status="completed")
    admin.delete(f"/coupons/{first['id']}?force=true")
    renamed(admin, second, "first")
    update(admin, order, status="cancelled")
    update(admin, order, status="completed")
    assert uses(order, second) == (["confirmed", "confirmed"], 1)
    # The line of the deleted coupon can be added again, but not as a second use.
    remove = {"id": order["coupon_lines"][0]["id"], "remove": True}
    update(admin, order, coupon_lines=[remove])
    assert codes(put(admin, order, coupon_lines=recorded[:1])) == (
        400,
        "shop_api_invalid_order_item",
    )
    assert uses(order, second) == (["released", "confirmed"], 1)


def removed(client, coupon, *, force=False):
    response = client.delete(f"/coupons/{coupon['id']}", {"force": "true"} if force else {})
    assert response.status_code == 200


LOSES_ITS_CODE = {
    "renamed": lambda client, coupon: renamed(client, coupon, f"{coupon['code']}-new"),
    "trashed": removed,
    "deleted": lambda client, coupon: removed(client, coupon, force=True),
}
MUG = {"name": "Mug", "price": "10.00"}


@pytest.fixture
def redemptions(admin):
    """Return a function: coupon, amount and status of the redemptions of an order."""

    def read(order):
        query = {"filter[order_id]": order["id"], "filter[order]": "asc", "filter[orderby]": "id"}
        rows = admin.get("/redemptions", query).get_json()["redemptions"]
        assert {row["code"] for row in rows} == {"code"}  # as the line has it
        return [(row["coupon_id"], row["amount"], row["status"]) for row in rows]

    return read


@pytest.mark.sample(4)
@pytest.mark.parametrize("change", LOSES_ITS_CODE)
@pytest.mark.parametrize("status", ["pending", "processing"])
@pytest.mark.parametrize(
    "other", [{"usage_limit": 1}, {"usage_limit": 1, "usage_count": 1}, {"minimum_amount": 1000}]
)
def test_order_keeps_its_coupon_when_another_has_its_code(
    admin, make_coupon, redemptions, change, status, other
):
    """The use of the order identifies its coupon, and not the code (redemptions 6)."""
    coupon = make_coupon(code="code", type="percent", amount=10, usage_limit=5)
    order = create(admin, "code", line_items=[MUG, MUG], status=status)
    LOSES_ITS_CODE[change](admin, coupon)
    other = make_coupon(code="code", type="percent", amount=50, **other)
    # A coupon in the trash or permanently deleted gives no new discount: the line stays.
    amount, total = ("3.00", "27.00") if change == "renamed" else ("2.00", "28.00")
    coupon_id = None if change == "deleted" else coupon["id"]
    held = {"pending": "reserved", "processing": "confirmed"}[status]
    results = admin.post("/orders/bulk", {"orders": [{"id": order["id"], "line_items": [MUG]}]})
    (after,) = results.get_json()["orders"]
    assert (after["coupon_lines"][0]["amount"], after["total"]) == (amount, total)
    assert after["coupon_lines"][0]["code"] == "code"
    assert redemptions(order) == [(coupon_id, amount, held)]
    update(admin, order, status="cancelled")
    assert redemptions(order) == [(coupon_id, amount, "released")]
    assert update(admin, order, status=status)["total"] == total
    assert redemptions(order) == [(coupon_id, amount, held)]
    assert admin.delete(f"/orders/{order['id']}").status_code == 200
    assert redemptions(order) == [(coupon_id, amount, "released")]
    assert admin.post(f"/orders/{order['id']}/restore").status_code == 200
    assert redemptions(order) == [(coupon_id, amount, held)]
    query = {"filter[coupon_id]": other["id"]}
    assert admin.get("/redemptions/count", query).get_json() == {"count": 0}
    shown = admin.get(f"/coupons/{other['id']}").get_json()["coupon"]
    assert shown["usage_count"] == other["usage_count"]


def test_renamed_coupon_is_recomputed_with_its_current_conditions(admin, make_coupon, redemptions):
    coupon = make_coupon(code="code", type="percent", amount=10, usage_limit=1)
    order = create(admin, "code", line_items=[MUG, MUG])
    renamed(admin, coupon, "new")
    after = update(admin, order, line_items=[MUG])
    assert (after["coupon_lines"][0]["amount"], after["total"]) == ("3.00", "27.00")
    admin.put(f"/coupons/{coupon['id']}", {"coupon": {"minimum_amount": 25}})
    remove = {"id": after["line_items"][0]["id"], "remove": True}
    response = put(admin, order, line_items=[remove])
    assert rejected(response, "order.coupon_lines") == ["minimum_amount"]
    update(admin, order, status="cancelled")
    assert rejected(post(admin, "code", line_items=[MUG])) == ["not_found"]
    create(admin, "new", line_items=[MUG, MUG, MUG])
    response = put(admin, order, status="pending")
    assert rejected(response, "order.coupon_lines") == ["usage_limit"]
    assert redemptions(order) == [(coupon["id"], "3.00", "released")]


def test_coupon_restored_from_the_trash_keeps_its_use(admin, make_coupon, uses):
    """A use of a coupon in the trash counts towards its limits."""
    coupon = make_coupon(code="code", usage_limit=1)
    order = create(admin, "code")
    removed(admin, coupon)
    update(admin, order, status="cancelled")
    update(admin, order, status="processing")
    assert admin.post(f"/coupons/{coupon['id']}/restore").status_code == 200
    assert uses(order, coupon) == (["confirmed"], 1)
    assert rejected(post(admin, "code")) == ["usage_limit"]


@pytest.mark.sample(2)
@pytest.mark.parametrize("change", LOSES_ITS_CODE)
@pytest.mark.parametrize("status", ["processing", "cancelled"])
@pytest.mark.parametrize("requests", [1, 2])
def test_code_added_again_is_the_coupon_that_has_it_now(
    admin, make_coupon, redemptions, change, status, requests
):
    coupon = make_coupon(code="code", type="percent", amount=10, usage_limit=5)
    order = create(admin, "code", line_items=[MUG])
    update(admin, order, status=status)
    LOSES_ITS_CODE[change](admin, coupon)
    other = make_coupon(code="code", type="percent", amount=50, usage_limit=1)
    changes = [{"id": order["coupon_lines"][0]["id"], "remove": True}, {"code": "code"}]
    if requests == 1:
        after = update(admin, order, coupon_lines=changes)
    else:
        update(admin, order, coupon_lines=changes[:1])
        after = update(admin, order, coupon_lines=changes[1:])
    assert after["total"] == "5.00"
    earlier = (None if change == "deleted" else coupon["id"], "1.00", "released")
    assert redemptions(order)[0] == earlier
    # The new line of a cancelled order has no use yet, and does not take over the earlier one.
    update(admin, order, status="completed")
    assert redemptions(order) == [earlier, (other["id"], "5.00", "confirmed")]
    update(admin, order, status="cancelled")
    update(admin, order, status="pending")
    assert redemptions(order) == [earlier, (other["id"], "5.00", "reserved")]
    after = update(admin, order, line_items=[MUG])
    assert (after["total"], redemptions(order)[1][1]) == ("10.00", "10.00")


def test_code_without_a_coupon_added_again_has_no_use(admin, make_coupon, redemptions):
    """A recorded code that matches no coupon is kept without a redemption (redemptions 6)."""
    coupon = make_coupon(code="code")
    order = create(admin, "code", line_items=[MUG], status="processing")
    renamed(admin, coupon, "new")
    remove = {"id": order["coupon_lines"][0]["id"], "remove": True}
    update(admin, order, coupon_lines=[remove, {"code": "code", "amount": "1"}])
    update(admin, order, status="completed")
    assert redemptions(order) == [(coupon["id"], "0.00", "released")]


@pytest.mark.parametrize("line", [{"code": "summer"}, {"code": "summer", "amount": "1"}])
@pytest.mark.parametrize("limit", ["usage_limit", "usage_limit_per_user"])
def test_line_removed_and_added_in_one_request_is_a_new_redemption(
    admin, make_coupon, uses, line, limit
):
    """The use that the request releases is left for the new line."""
    coupon = make_coupon(code="summer", **{limit: 1})
    guest = {"billing_address": {"email": "ada@example.com"}}
    order = create(admin, "summer", status="completed", **guest)
    remove = {"id": order["coupon_lines"][0]["id"], "remove": True}
    update(admin, order, coupon_lines=[remove, line])
    assert uses(order, coupon) == (["released", "confirmed"], 1)
    assert rejected(post(admin, "summer", **guest)) == [limit]


@pytest.mark.parametrize("back", ["processing", "restore"])
def test_use_of_a_deleted_coupon_is_taken_again(admin, make_coupon, redemptions, back):
    """A permanently deleted coupon has no limit (redemptions 6)."""
    coupon = make_coupon(code="code", usage_limit=1)
    order = create(admin, "code", status="processing")
    removed(admin, coupon, force=True)
    if back == "restore":
        admin.delete(f"/orders/{order['id']}")
        assert redemptions(order) == [(None, "0.00", "released")]
        assert admin.post(f"/orders/{order['id']}/restore").status_code == 200
    else:
        update(admin, order, status="cancelled")
        assert redemptions(order) == [(None, "0.00", "released")]
        update(admin, order, status=back)
    assert redemptions(order) == [(None, "0.00", "confirmed")]


@pytest.mark.parametrize("status", ["pending", "cancelled", "failed"])
@pytest.mark.parametrize("line", [{"code": "full"}, {"code": "full", "amount": "1"}])
def test_limits_are_checked_in_every_status(admin, make_coupon, status, line):
    """An order that records a coupon checks the two limits (redemptions 6)."""
    make_coupon(code="full", usage_limit=1, usage_count=1)
    assert rejected(post(admin, coupon_lines=[line], status=status)) == ["usage_limit"]
    order = create(admin, status=status)
    assert rejected(put(admin, order, coupon_lines=[line])) == ["usage_limit"]


def trashed_by_order(client, order):
    assert client.delete(f"/orders/{order['id']}").status_code == 200
    return client.post(f"/orders/{order['id']}/restore")


FIRST_USES = {
    "put": lambda client, order: put(client, order, status="completed"),
    "paid": lambda client, order: put(client, order, payment_details={"paid": True}),
    "v2": lambda client, order: client.put(
        f"/wc-api/v2/orders/{order['id']}", {"order": {"status": "completed"}}
    ),
    "v3": lambda client, order: client.post(
        f"/wc-api/v3/orders/{order['id']}", {"order": {"status": "processing"}}
    ),
}
COUPON_LINES = {"applied": {"code": "summer"}, "recorded": {"code": "summer", "amount": "2.79"}}


@pytest.mark.sample(1)
@pytest.mark.parametrize("route", FIRST_USES)
def test_coupon_in_the_trash_gives_no_discount_without_a_use(admin, make_coupon, uses, route):
    """A line keeps its coupon before its first use, so that its limits hold."""
    coupon = make_coupon(code="summer", type="percent", amount=10, usage_limit=1)
    orders = [create(admin, "summer", status="cancelled") for _ in "123"]
    removed(admin, coupon)
    for order in orders:
        response = FIRST_USES[route](admin, order)
        assert response.status_code == 400
        (error,) = response.get_json()["errors"]
        assert error["code"].partition("_api_")[2] == "coupon_not_applicable"
        assert error["param"] == "order.coupon_lines"
        assert [reason["code"] for reason in error["reasons"]] == ["not_found"]
        assert admin.get(f"/orders/{order['id']}").get_json()["order"] == order
    assert admin.get("/redemptions/count").get_json() == {"count": 0}
    assert admin.post(f"/coupons/{coupon['id']}/restore").status_code == 200
    assert uses(orders[0], coupon) == ([], 0)
    assert update(admin, orders[0], status="completed")["total"] == "25.11"
    assert uses(orders[0], coupon) == (["confirmed"], 1)
    for order in orders[1:]:
        assert rejected(put(admin, order, status="completed"), "order.coupon_lines") == [
            "usage_limit"
        ]


@pytest.mark.sample(2)
@pytest.mark.parametrize("line", COUPON_LINES)
@pytest.mark.parametrize("change", ["trashed", "deleted"])
@pytest.mark.parametrize("has_new_code", [False, True])
def test_first_use_of_a_coupon_that_is_gone(
    admin, make_coupon, redemptions, change, line, has_new_code
):
    """Neither a change of the lines nor another coupon with the code makes up for it."""
    coupon = make_coupon(code="code", type="percent", amount=10, usage_limit=1)
    lines = [COUPON_LINES[line] | {"code": "code"}]
    order = create(admin, line_items=[MUG], coupon_lines=lines, status="cancelled")
    LOSES_ITS_CODE[change](admin, coupon)
    if has_new_code:
        make_coupon(code="code", type="percent", amount=50)
    changes = [{"status": "completed"}, {"line_items": [MUG]}, {"status": "on-hold"}]
    results = [
        admin.post("/orders/bulk", {"orders": [{"id": order["id"], **fields}]}).get_json()
        for fields in changes
    ]
    first, second, third = (result["orders"][0] for result in results)
    for result in (first, third):
        assert result["error"]["code"] == NOT_APPLICABLE
        assert [reason["code"] for reason in result["error"]["reasons"]] == ["not_found"]
    # The line stays as recorded.
    assert second["coupon_lines"] == order["coupon_lines"]
    assert (second["status"], second["subtotal"]) == ("cancelled", "20.00")
    assert admin.get("/redemptions/count").get_json() == {"count": 0}
    # In the trash and back, the order is what it was.
    assert trashed_by_order(admin, order).get_json()["order"]["status"] == "cancelled"
    # Without the coupon, the order can be completed.
    remove = {"id": order["coupon_lines"][0]["id"], "remove": True}
    after = update(admin, order, status="completed", coupon_lines=[remove])
    assert (after["total"], after["coupon_lines"]) == ("20.00", [])


def test_first_use_of_a_renamed_coupon(admin, make_coupon, redemptions):
    coupon = make_coupon(code="code", type="percent", amount=10, usage_limit=1)
    order = create(admin, "code", line_items=[MUG], status="cancelled")
    renamed(admin, coupon, "new")
    other = make_coupon(code="code", type="percent", amount=50, usage_limit=1)
    assert update(admin, order, line_items=[MUG])["total"] == "18.00"
    assert update(admin, order, status="completed")["total"] == "18.00"
    assert redemptions(order) == [(coupon["id"], "2.00", "confirmed")]
    assert rejected(post(admin, "new", line_items=[MUG])) == ["usage_limit"]
    shown = admin.get(f"/coupons/{other['id']}").get_json()["coupon"]
    assert shown["usage_count"] == 0


def test_use_that_was_released_is_taken_again_within_the_limits(admin, make_coupon, uses):
    """An order that returns from cancelled checks only the limits, also of a trashed coupon."""
    coupon = make_coupon(code="code", type="percent", amount=10, usage_limit=1)
    orders = []
    for _ in "123":
        orders.append(create(admin, "code"))
        update(admin, orders[-1], status="cancelled")
    removed(admin, coupon)
    update(admin, orders[0], status="completed")
    for order in orders[1:]:
        response = put(admin, order, status="completed")
        assert rejected(response, "order.coupon_lines") == ["usage_limit"]
    assert admin.post(f"/coupons/{coupon['id']}/restore").status_code == 200
    assert uses(orders[0], coupon) == (["confirmed"], 1)


def forget_coupons(app, order):
    """Let an order be as a release wrote it whose lines did not keep the coupon."""
    details = update_of(Order).where(Order.id == order["id"])
    lines = {str(line["id"]): {"applied": True} for line in order["coupon_lines"]}
    with app.app_context():
        run_in_transaction(lambda session: session.execute(details.values(item_details=lines)))


@pytest.mark.parametrize("recomputed", [False, True])
def test_line_of_an_earlier_release(app, admin, make_coupon, uses, recomputed):
    coupon = make_coupon(code="code", usage_limit=1, amount=1)
    order = create(admin, "code", line_items=[MUG], status="cancelled")
    forget_coupons(app, order)
    removed(admin, coupon)
    if recomputed:
        update(admin, order, line_items=[MUG])
    for _ in "12":
        response = put(admin, order, status="completed")
        assert rejected(response, "order.coupon_lines") == ["not_found"]
    assert admin.post(f"/coupons/{coupon['id']}/restore").status_code == 200
    update(admin, order, status="completed")
    assert uses(order, coupon) == (["confirmed"], 1)


# --- cost ---


@pytest.mark.parametrize(
    ("status", "limit", "email", "count"),
    [
        ("pending", {}, "own", 10),
        ("completed", {}, "own", 11),  # the use is counted at the end
        ("pending", {"usage_limit": 9}, "own", 10),
        ("completed", {"usage_limit": 9}, "own", 10),
        ("pending", {"usage_limit_per_user": 9}, "own", 11),  # the coupon is locked first
        ("pending", {}, "", 10),
        ("pending", {}, "other@example.com", 11),  # the account with the other e-mail
    ],
)
def test_statements_of_an_order_with_a_coupon(
    admin, make_coupon, make_customer, statements, status, limit, email, count
):
    """An order reads its customer and its coupon as seldom as possible.

    The customer; an ID; the coupon; its slot; the redemption; the order; the customer with the
    statistics after the order, the event; the customer of the response, after the commit.
    """
    customer = make_customer()
    make_coupon(code="summer", **limit)
    address = {"email": customer["email"].upper() if email == "own" else email}
    statements.clear()
    create(
        admin,
        "summer",
        customer_id=customer["id"],
        line_items=[LINE] * 3,
        billing_address=address,
        status=status,
    )
    assert len(without_key(statements)) == count, statements


def test_event_has_the_final_state_of_a_coupon(admin, make_coupon):
    """Several uses of one coupon in a request: what a statement returned for one use is not it."""
    limited, unlimited = make_coupon(usage_limit=5), make_coupon()
    lines = [{"code": coupon["code"], "amount": "1"} for coupon in (limited, unlimited)]
    new = {"status": "completed", "coupon_lines": lines}
    first = admin.post("/orders", {"order": new}).get_json()["order"]
    last = admin.get("/events", {"filter[limit]": 100}).get_json()["events"][-1]["id"]
    items = [new, {"id": first["id"], "status": "cancelled"}, new, {**new, "status": "pending"}]
    response = admin.post("/orders/bulk", {"orders": items})
    assert not [item for item in response.get_json()["orders"] if "error" in item]
    query = {"filter[after]": last, "filter[limit]": 100}
    events = admin.get("/events", query).get_json()["events"]
    uses = [event for event in events if event["resource"] == "coupon"]
    assert len(uses) == 8
    for coupon in (limited, unlimited):
        shown = admin.get(f"/coupons/{coupon['id']}").get_json()["coupon"]
        assert shown["usage_count"] == 2
        assert [use["data"]["coupon"] for use in uses if use["resource_id"] == coupon["id"]] == [
            shown
        ] * 4
