"""Codes, addresses and search columns that an earlier version normalized in another way."""

import pytest
from sqlalchemy import update

from app.conversions.numbers import MAX_COUNT
from app.db.session import run_in_transaction
from app.models import CAMPAIGNS, COUPONS, ORDERS, REDEMPTIONS, USERS
from app.services.maintenance import stored_texts
from tests.coupons.test_evaluate import reasons
from tests.redemptions.calls import post, rejected, reserve

ASCII, UNICODE = "max@xn--mnchen-3ya.example", "max@münchen.example"


pytestmark = pytest.mark.both_databases


@pytest.fixture
def normalize(app, monkeypatch):
    """Return a function that changes rows, and then normalizes all stored texts."""
    monkeypatch.setattr(stored_texts, "WINDOW", 3)

    def run(*statements):
        with app.app_context():
            for statement in statements:
                run_in_transaction(lambda session, each=statement: session.execute(each))
            found = [code for _, code in stored_texts.unstable_codes()]
            messages = stored_texts.normalize(again=True)
            assert [*stored_texts.unstable_codes()] == []
            return found, messages

    return run


def code_is(coupon, code):
    changes = {"code": code, "search_text": code}
    return update(COUPONS).where(COUPONS.c.id == coupon["id"]).values(changes)


def codes_of(admin, *coupons):
    return [admin.get(f"/coupons/{each['id']}").get_json()["coupon"]["code"] for each in coupons]


def test_codes_are_normalized_and_the_older_coupon_keeps_its_code(admin, make_coupon, normalize):
    turkish, older, newer, entity, empty, plain, trashed = (
        make_coupon(code=f"code{number}") for number in range(7)
    )
    admin.delete(f"/coupons/{trashed['id']}")
    found, messages = normalize(
        code_is(turkish, "i\u0307ndi\u0307ri\u0307m10"),
        code_is(older, "sum\u200bmer"),
        code_is(newer, "summer"),
        code_is(entity, "x&amp;y"),
        code_is(empty, "\u3164"),
        code_is(plain, "straße & söhne"),
        code_is(trashed, "\ufeffsummer"),
    )
    assert len(found) == 5
    assert len(messages) == 5
    assert codes_of(admin, turkish, older, newer, entity, empty, plain) == [
        "indirim10", "summer", f"summer~{newer['id']}", "x&y", f"~{empty['id']}", "straße & söhne",
    ]  # fmt: skip
    assert f"coupon {newer['id']}" in messages[1]
    assert reasons(admin, "\u0130ND\u0130R\u0130M10") == []
    (found,) = admin.get("/coupons", {"q": "\u0130ND\u0130"}).get_json()["coupons"]
    assert found["id"] == turkish["id"]
    assert normalize() == ([], [])


def test_texts_are_normalized_once_per_version(app, admin, make_coupon, normalize, monkeypatch):
    coupon = make_coupon(code="code")
    runner = app.test_cli_runner()

    def upgrade(*options):
        with app.app_context():
            code = code_is(coupon, "sum\u200bmer")
            run_in_transaction(lambda session: session.execute(code))
        result = runner.invoke(args=["db", "upgrade", *options])
        assert result.exit_code == 0, result.output
        return codes_of(admin, coupon) == ["summer"]

    normalize()
    assert not upgrade()
    assert upgrade("--normalize")
    assert not upgrade()
    monkeypatch.setattr(stored_texts, "VERSION", stored_texts.VERSION + 1)
    assert upgrade()
    assert not upgrade()
    monkeypatch.undo()
    assert not upgrade()  # a newer version has normalized them
    normalize()


@pytest.mark.sample(1)
@pytest.mark.parametrize("old", ["sum\u200bmer", "\uff53ummer", "summer&amp;"])
def test_redemptions_are_found_by_the_new_code(admin, make_coupon, normalize, old):
    coupon = make_coupon(code="x", type="fixed_cart", amount="1", usage_limit=2)
    alone = reserve(admin, "x", "cart")
    item = {"name": "Mug", "quantity": 1, "subtotal": "9.00"}
    new = {"status": "processing", "coupon_lines": [{"code": "x"}], "line_items": [item]}
    order = admin.post("/orders", {"order": new}).get_json()["order"]
    (line,) = order["coupon_lines"]
    lines = update(ORDERS).where(ORDERS.c.id == order["id"])
    stored = {"id": line["id"], "code": old, "amount": 100, "applied": True}
    normalize(
        code_is(coupon, old),
        update(REDEMPTIONS).values(code=old),
        lines.values(coupon_lines=[stored]),
    )
    (code,) = codes_of(admin, coupon)
    for query in (code, old, code.upper()):
        found = admin.get("/redemptions", {"filter[code]": query}).get_json()["redemptions"]
        assert {each["order_id"] for each in found} == {None, order["id"]}
    # The order keeps its use, and gives it back.
    path = f"/orders/{order['id']}"
    assert admin.get(path).get_json()["order"]["coupon_lines"][0]["code"] == old
    count = f"/coupons/{coupon['id']}"
    for status, used in (("completed", 1), ("cancelled", 0), ("processing", 1)):
        changed = admin.put(path, {"order": {"status": status}})
        assert changed.status_code == 200, changed.get_json()
        assert admin.get(count).get_json()["coupon"]["usage_count"] == used
    admin.delete(path)
    assert admin.get(count).get_json()["coupon"]["usage_count"] == 0
    assert admin.post(f"{path}/restore").status_code == 200
    assert admin.get(count).get_json()["coupon"]["usage_count"] == 1
    uses = admin.get("/redemptions", {"filter[code]": code}).get_json()["redemptions"]
    assert sorted(each["id"] for each in uses) == sorted(each["id"] for each in found)
    assert post(admin, code, "cart").get_json()["redemption"]["id"] == alone["id"]


def test_counts_have_at_most_15_digits(admin, make_coupon, normalize):
    coupon, other = make_coupon(), make_coupon(usage_limit=MAX_COUNT)
    names = "usage_limit", "usage_limit_per_user", "limit_usage_to_x_items", "usage_count"
    large = update(COUPONS).where(COUPONS.c.id == coupon["id"])
    _, messages = normalize(large.values(dict.fromkeys(names, 2**62)))
    assert len(messages) == 4
    assert messages[0].startswith(f"Coupon {coupon['id']}: usage_limit is 999999999999999 instead")
    found = admin.get(f"/coupons/{coupon['id']}").get_json()["coupon"]
    assert [found[name] for name in names] == [MAX_COUNT] * 4
    shown = {name: found[name] for name in names}
    assert admin.put(f"/coupons/{coupon['id']}", {"coupon": shown}).status_code == 200
    assert admin.get(f"/coupons/{other['id']}").get_json()["coupon"]["usage_limit"] == MAX_COUNT
    assert normalize() == ([], [])


def test_a_newer_coupon_gets_its_id(admin, make_coupon, normalize):
    older, newer = make_coupon(code="summer"), make_coupon(code="x")
    _, (message,) = normalize(code_is(newer, "summer\u200d"))
    assert codes_of(admin, older, newer) == ["summer", f"summer~{newer['id']}"]
    assert f"coupon {older['id']} is older" in message


def test_addresses_are_normalized_unless_another_account_has_them(
    app, admin, make_customer, make_coupon, normalize
):
    alone = make_customer(email="a@xn--bcher-kva.example")
    first, second = make_customer(email=UNICODE), make_customer(email="x@example.com")
    make_coupon(code="once", usage_limit_per_user=1)
    used = reserve(admin, "once", "a", email="b@xn--bcher-kva.example")
    old = {"email": ASCII, "email_normalized": ASCII, "search_text": ASCII}
    mine = dict.fromkeys(("email_normalized", "search_text"), alone["email"])
    use = {"email_normalized": "b@xn--bcher-kva.example"}
    _, (message,) = normalize(
        update(USERS).where(USERS.c.id == second["id"]).values(old),
        update(USERS).where(USERS.c.id == alone["id"]).values(mine),
        update(REDEMPTIONS).where(REDEMPTIONS.c.id == used["id"]).values(use),
    )
    assert f"Account {second['id']}" in message
    assert f"account {first['id']}" in message
    found = admin.get("/customers/email/a@bücher.example").get_json()["customer"]
    assert found["id"] == alone["id"]
    assert rejected(post(admin, "once", "b", email="b@bücher.example")) == ["usage_limit_per_user"]
    path = f"/customers/{second['id']}"
    changed = admin.put(path, {"customer": {"first_name": "Max", "email": ASCII}})
    assert changed.status_code == 200
    changed = admin.put(path, {"customer": {"email": "max@example.com"}}).get_json()["customer"]
    assert changed["email"] == "max@example.com"
    assert normalize() == ([], [])


def test_searches_ignore_invisible_characters(admin, make_customer, normalize):
    ann = make_customer(email="ann@example.com", first_name="An\u200bn", last_name="\u0130nci")
    assert ann["first_name"] == "An\u200bn"
    order = admin.post("/orders", {"order": {"billing_address": {"company": "Ac\u00adme"}}})
    order = order.get_json()["order"]
    old = {"search_text": "an\u200bn i\u0307nci", "name_normalized": "an\u200bn i\u0307nci"}
    for _ in range(2):
        for word in ("ann", "An\u200bn \u0130n", "inci", "an*nci"):
            found = admin.get("/customers", {"q": word}).get_json()["customers"]
            assert [each["id"] for each in found] == [ann["id"]], word
        found = admin.get("/orders", {"q": "acm\u200be"}).get_json()["orders"]
        assert [each["id"] for each in found] == [order["id"]]
        normalize(update(USERS).where(USERS.c.id == ann["id"]).values(old))


@pytest.mark.parametrize("typed", ["muller", "strasse"])
def test_searches_of_an_earlier_version_ignore_accents_and_find_streets(
    admin, make_customer, make_coupon, normalize, monkeypatch, typed
):
    monkeypatch.setattr(stored_texts, "TOGETHER", 2)
    text = "M\u00fcller Stra\u00dfe"
    made = {"customers": make_customer(last_name=text), "coupons": make_coupon(description=text)}
    orders = [{"billing_address": {"address_1": text}} for _ in range(5)]
    found = [
        result["id"]
        for result in admin.post("/orders/bulk", {"orders": orders}).get_json()["orders"]
    ]
    campaign = admin.post("/campaigns", {"campaign": {"name": text}}).get_json()["campaign"]
    made["campaigns"] = campaign
    normalize(
        update(USERS).where(USERS.c.id == made["customers"]["id"]).values(search_text=text.lower()),
        update(COUPONS).values(search_text=text.lower()),
        update(CAMPAIGNS).values(search_text=text.lower() + "\n"),
        update(ORDERS).values(search_text="1"),
    )
    for key, record in made.items():
        (one,) = admin.get(f"/{key}", {"q": typed}).get_json()[key]
        assert one["id"] == record["id"]
    listed = admin.get("/orders", {"q": typed, "orderby": "id", "order": "asc"}).get_json()
    assert [order["id"] for order in listed["orders"]] == found


def test_no_statement_examines_a_whole_table(make_coupon, normalize, statements):
    """One that took longer than a statement may would end every upgrade of a large shop."""
    for _ in range(7):
        make_coupon()
    statements.clear()
    assert normalize() == ([], [])
    selects = [each for each in statements if "FROM coupons" in each and "LIMIT" not in each]
    passes = sum("coupons.id <=" not in each for each in selects)  # the last window of each
    assert len(selects) == 3 * passes
