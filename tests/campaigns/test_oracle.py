"""Evaluations compared with a second implementation, written from campaigns 1 to 6 and redemptions."""

import random
from fractions import Fraction
from math import floor

import pytest

from tests.api_client import Client

PAST, FUTURE = "2020-01-01T00:00:00Z", "2090-01-01T00:00:00Z"
TYPES = ["fixed_cart", "percent", "fixed_product", "percent_product", "buy_x_get_y"]
CARTS = 150


def cents(text):
    return floor(Fraction(text) * 100 + Fraction(1, 2)) if text else 0


def accepted(labels, conditions, otherwise):
    """Whether none of the labels is excluded, and one is named, if any is (campaigns 4)."""
    if any(f"-{label}" in conditions for label in labels):
        return False
    named = {each for each in conditions if not each.startswith("-")}
    return bool(named & set(labels)) if named else otherwise


class Line:
    """Line of the cart: cents, and what no coupon has taken yet."""

    def __init__(self, item):
        self.item, self.units = item, item["quantity"]
        self.value = self.left = floor(Fraction(item["price"]) * 100 * self.units + Fraction(1, 2))

    def is_in(self, coupon, kind):
        products, categories = coupon[f"{kind}product_ids"], coupon[f"{kind}product_category_ids"]
        has_category = set(categories) & set(self.item["product_category_ids"])
        return self.item["product_id"] in products or bool(has_category)

    def is_allowed(self, coupon):
        on_sale = coupon["exclude_sale_items"] and self.item["on_sale"]
        return not self.is_in(coupon, "exclude_") and not on_sale

    def is_eligible(self, coupon):
        conditions = coupon["product_ids"] or coupon["product_category_ids"]
        return self.is_allowed(coupon) and (not conditions or self.is_in(coupon, ""))


def given_units(coupon, lines):
    """The discounted units of buy_x_get_y, by line (campaigns 6)."""
    buy, get = coupon["buy_quantity"] or 1, coupon["get_quantity"] or 1
    wanted = coupon["get_product_ids"]
    open_lines = [line for line in lines if line.left]
    if wanted:
        bought = sum(
            line.units
            for line in open_lines
            if line.is_eligible(coupon) and line.item["product_id"] not in wanted
        )
        given = [
            line
            for line in open_lines
            if line.item["product_id"] in wanted and line.is_allowed(coupon)
        ]
        number = get * (bought // buy)
    else:
        given = [line for line in open_lines if line.is_eligible(coupon)]
        units = sum(line.units for line in given)
        number = units // (buy + get) * get + max(0, units % (buy + get) - buy)
    if coupon["limit_usage_to_x_items"]:
        number = min(number, coupon["limit_usage_to_x_items"])
    units = [
        (Fraction(line.value, line.units), -lines.index(line), line)
        for line in given
        for _ in range(line.units)
    ]
    found = {}
    for *_, line in sorted(units, key=lambda each: each[:2])[:number]:
        found[line] = found.get(line, 0) + 1
    return found


def spread(missing, lines, most, discounts):
    """Distribute missing cents line by line, at most one for each unit (redemptions 3.4)."""
    for line in lines:
        added = max(0, min(missing, line.units, most[line] - discounts[line]))
        discounts[line] += added
        missing -= added


def by_percentage(coupon, units, sequential):
    percentage = max(Fraction(coupon["amount"]), 0) / 100
    exact = {
        line: Fraction(line.left if sequential else line.value) * number / line.units
        for line, number in units.items()
    }
    left = {line: line.left for line in units}
    discounts = {line: min(floor(value * percentage), left[line]) for line, value in exact.items()}
    total = sum(exact.values()) * percentage
    rounded = floor(total + Fraction(1, 2)) - (total % 1 == Fraction(1, 2))  # half down
    spread(rounded - sum(discounts.values()), units, left, discounts)
    return discounts


def first_units(coupon, lines):
    left = coupon["limit_usage_to_x_items"] or sum(line.units for line in lines)
    found = {}
    for line in lines:
        found[line] = min(left, line.units)
        left -= found[line]
    return found


def discounts_of(coupon, lines, sequential):
    """The discounts of a coupon by line, in cents (redemptions 3, campaigns 6)."""
    kind, amount = coupon["type"], max(cents(coupon["amount"]), 0)
    ordered = sorted((line for line in lines if line.left), key=lambda line: -line.value)
    if kind != "fixed_cart":
        ordered = [line for line in ordered if line.is_eligible(coupon)]
    most = {line: line.left for line in lines}
    if kind == "buy_x_get_y":
        units = given_units(coupon, lines)
        ordered = sorted(units, key=lambda line: (-line.value, lines.index(line)))
        found = by_percentage(coupon, {line: units[line] for line in ordered}, sequential)
    elif kind.startswith("percent"):
        found = by_percentage(coupon, first_units(coupon, ordered), sequential)
    else:
        found = dict.fromkeys(ordered, 0)
        missing = amount
        while True:
            open_lines = [line for line in ordered if found[line] < line.left]
            all_units = sum(line.units for line in open_lines)
            each = amount if kind == "fixed_product" else missing // all_units if all_units else 0
            before = sum(found.values())
            for line, units in first_units(coupon, open_lines).items():
                limit = line.left - found[line]
                if coupon["limit_usage_to_x_items"]:
                    limit = min(limit, line.value * units // line.units)
                found[line] += min(each * units, limit)
            gave = sum(found.values()) - before
            missing -= gave
            if kind == "fixed_product" or not gave or missing <= 0:
                break
        still_open = sum(line.units for line in ordered if found[line] < line.left)
        if kind == "fixed_cart" and missing < still_open:
            spread(missing, ordered, most, found)
    maximum = cents(coupon["maximum_discount"])
    if maximum and (total := sum(found.values())) > maximum:
        shares = {line: maximum * value // total for line, value in found.items()}
        spread(maximum - sum(shares.values()), ordered, found, shares)
        found = shares
    return found


def reasons_of(code, coupon, shop, cart, lines, applied):
    """The reasons against a coupon in their order, without that of the budget (campaigns 3)."""
    campaign, subtotal = shop["campaigns"].get(coupon["campaign_id"]), sum(e.value for e in lines)
    both = [coupon, campaign] if campaign else [coupon]
    person, found = shop["people"][cart["customer_id"]], []
    uses = shop["used"].get(coupon["campaign_id"], 0) + sum(
        each["campaign_id"] == coupon["campaign_id"] for each in applied.values()
    )
    if campaign and campaign["usage_limit"] and uses >= campaign["usage_limit"]:
        found.append("usage_limit")
    found += ["paused"] * (not all(each["active"] for each in both))
    found += ["not_started"] * any(each["starts_at"] == FUTURE for each in both)
    ends = coupon["expiry_date"], campaign and campaign["ends_at"]
    found += ["expired"] * (PAST in ends)
    found += ["minimum_amount"] * (subtotal < cents(coupon["minimum_amount"]))
    most = cents(coupon["maximum_amount"])
    found += ["maximum_amount"] * bool(most and subtotal > most)
    conditions = coupon["product_ids"] or coupon["product_category_ids"]
    has_none = conditions and not any(line.is_in(coupon, "") for line in lines)
    is_given = coupon["type"] == "buy_x_get_y"
    if has_none or (is_given and not given_units(coupon, lines)):
        found.append("product_not_included")
    if coupon["type"] == "fixed_cart":
        found += ["product_excluded"] * any(line.is_in(coupon, "exclude_") for line in lines)
        all_on_sale = all(line.item["on_sale"] for line in lines)
        found += ["sale_items_excluded"] * (coupon["exclude_sale_items"] and all_on_sale)
    elif not any(line.is_eligible(coupon) for line in lines):
        found.append("product_excluded")
    allowed = coupon["customer_emails"]
    if allowed and not {cart["email"], person["email"]} & set(allowed):
        found.append("email_not_allowed")
    labels = {*person["tags"], *(f"role:{role}" for role in person["roles"])}
    found += ["customer_not_allowed"] * (not accepted(labels, coupon["customer_tags"], True))
    has_ordered = person["has_ordered"] or cart["email"] in shop["buyers"]
    found += ["not_first_order"] * (coupon["first_order_only"] and has_ordered)
    for other_code, other in applied.items():
        pair = (code, coupon, other_code, other), (other_code, other, code, coupon)
        if not all(accepts(shop, x, y_code, y) for _, x, y_code, y in pair):
            alone = coupon["individual_use"] or other["individual_use"]
            found.append("individual_use" if alone else "not_combinable")
            break
    return found


def accepts(shop, coupon, other_code, other):
    def entries(of, name):
        campaign = shop["campaigns"].get(of["campaign_id"])
        return {*of[name], *(campaign[name] if campaign else ())}

    labels = {*entries(other, "tags"), f"code:{other_code}"}
    return accepted(labels, entries(coupon, "combines_with"), not coupon["individual_use"])


def expected(shop, cart, *, sequential):
    """The coupons of an evaluation, each with its reasons and its discount in cents."""
    lines, applied, found = [Line(item) for item in cart["items"]], {}, []
    spent = dict(shop["spent"])
    for code in cart["coupons"]:
        coupon = shop["coupons"][code]
        reasons = reasons_of(code, coupon, shop, cart, lines, applied)
        discounts = {} if reasons else discounts_of(coupon, lines, sequential)
        campaign = shop["campaigns"].get(coupon["campaign_id"])
        total = sum(discounts.values())
        if campaign and not reasons and (budget := cents(campaign["budget"])):
            left = budget - spent.get(campaign["id"], 0)
            reasons = ["campaign_budget"] if total > max(left, 0) else []
        if not reasons:
            applied[code] = coupon
            if campaign:
                spent[campaign["id"]] = spent.get(campaign["id"], 0) + total
            for line, discount in discounts.items():
                line.left -= discount
        found.append((code, reasons, 0 if reasons else total))
    return found


# --- random shops and carts ---


def some(chance, values, otherwise):
    return chance.choice(values) if chance.random() < 0.15 else otherwise


def tags(chance, names, most=2):
    return chance.sample(names, chance.randint(1, most)) if chance.random() < 0.15 else []


def shop_of(chance, admin, name):
    """Create campaigns, coupons, accounts and uses; return what the evaluation depends on."""
    names = ["mail", "loyal", "vip"]
    conditions = [*names, "-mail", "-vip", f"code:{name}1", f"-code:{name}2"]
    shop = {
        "campaigns": {},
        "coupons": {},
        "used": {},
        "spent": {},
        "buyers": {"buyer@x.example"},
        "name": name,
    }
    for number in range(4):
        body = {
            "name": f"campaign {number}",
            "active": chance.random() > 0.1,
            "starts_at": some(chance, [PAST, FUTURE], None),
            "ends_at": some(chance, [FUTURE], None),
            "usage_limit": some(chance, [0, 1, 2], None),
            "budget": some(chance, ["0", "0.01", "6.00", "15.50"], ""),
            "tags": tags(chance, names),
            "combines_with": tags(chance, conditions),
        }
        if body["starts_at"] == FUTURE:
            body["ends_at"] = None
        if chance.random() < 0.1:
            body |= {"ends_at": PAST, "starts_at": None}
        made = admin.post("/campaigns", {"campaign": body})
        assert made.status_code == 201, made.json
        campaign_id = made.json["campaign"]["id"]
        shop["campaigns"][campaign_id] = body | {"id": campaign_id}
    ids = [1, 2, 3, 4]
    for number in range(40):
        kind = chance.choice(TYPES)
        body = {
            "code": f"{name}{number}",
            "type": kind,
            "amount": chance.choice(["-1", "5", "10", "33.33", "50", "100", "150", "1.27"]),
            "active": chance.random() > 0.05,
            "starts_at": some(chance, [PAST], None) if number else FUTURE,
            "expiry_date": some(chance, [FUTURE], "") if number != 1 else PAST,
            "campaign_id": some(chance, [*shop["campaigns"]], None)
            or some(chance, [*shop["campaigns"]], None)
            or some(chance, [*shop["campaigns"]], None),
            "tags": tags(chance, names),
            "combines_with": tags(chance, conditions),
            "customer_tags": tags(
                chance, ["wholesale", "-banned", "role:customer", "-role:customer"]
            ),
            "first_order_only": chance.random() < 0.1,
            "maximum_discount": some(chance, ["0", "0.03", "4.99", "12"], ""),
            "buy_quantity": chance.randint(0, 3),
            "get_quantity": chance.randint(0, 2),
            "get_product_ids": some(chance, [[1], [2, 3]], []),
            "individual_use": chance.random() < 0.1,
            "product_ids": some(chance, [[1, 2], [3]], []),
            "product_category_ids": some(chance, [[7]], []),
            "exclude_product_ids": some(chance, [[2], [4]], []),
            "exclude_product_category_ids": some(chance, [[8]], []),
            "exclude_sale_items": chance.random() < 0.1,
            "limit_usage_to_x_items": some(chance, [1, 2, 5], 0),
            "minimum_amount": some(chance, ["20"], ""),
            "maximum_amount": some(chance, ["60"], ""),
            "customer_emails": some(chance, [["buyer@x.example"]], []),
        }
        sent = {name: value for name, value in body.items() if value is not None}
        made = admin.post("/coupons", {"coupon": sent})
        assert made.status_code == 201, made.json
        shop["coupons"][body["code"]] = body
    people = {0: {"email": "", "tags": [], "roles": [], "has_ordered": False}}
    for person, given in (("a", ["wholesale"]), ("b", ["banned", "vip"]), ("c", [])):
        body = {"email": f"{name}{person}@x.example", "tags": given}
        number = admin.post("/customers", {"customer": body}).json["customer"]["id"]
        people[number] = body | {"roles": ["customer"], "has_ordered": person == "c"}
    for order in (
        {"customer_id": max(people), "status": "completed"},
        {"status": "completed", "billing_address": {"email": "buyer@x.example"}},
        {"customer_id": sorted(people)[1], "status": "pending"},
    ):
        assert admin.post("/orders", {"order": order}).status_code == 201
    for number, coupon in enumerate(shop["coupons"].values()):
        use = {"code": coupon["code"], "reference": f"till-{name}-{number}", "amount": "2.50"}
        made = admin.post("/redemptions", {"redemption": use})
        if made.status_code == 201 and coupon["campaign_id"]:
            campaign = coupon["campaign_id"]
            shop["used"][campaign] = shop["used"].get(campaign, 0) + 1
            shop["spent"][campaign] = shop["spent"].get(campaign, 0) + 250
    return shop | {"people": people, "ids": ids}


def cart_of(chance, shop):
    items = [
        {
            "product_id": chance.choice(shop["ids"]),
            "product_category_ids": chance.choice([[], [7], [8], [7, 8]]),
            "quantity": chance.choice([1, 1, 2, 3, 7]),
            "price": chance.choice(["0", "0.01", "3.33", "8.00", "9.99", "10", "17.505"]),
            "on_sale": chance.random() < 0.3,
        }
        for _ in range(chance.randint(1, 5))
    ]
    return {
        "customer_id": chance.choice([*shop["people"]]),
        "email": chance.choice(["", "new@x.example", "buyer@x.example"]),
        "coupons": chance.sample([*shop["coupons"]], chance.randint(1, 5)),
        "items": items,
    }


@pytest.mark.both_databases
@pytest.mark.parametrize("sequential", [False, True])
def test_evaluations_are_those_of_the_specification(make_app, admin, sequential):
    chance = random.Random(f"oracle {sequential}")
    client = Client(make_app(SHOP_SEQUENTIAL_DISCOUNTS=sequential), admin.key)
    shops = [shop_of(chance, client, name) for name in "abc"]
    for number in range(CARTS):
        shop = shops[number % len(shops)]
        cart = cart_of(chance, shop)
        response = client.post("/coupons/evaluate", {"cart": cart})
        assert response.status_code == 200, response.json
        found = [
            (each["code"], [reason["code"] for reason in each["reasons"]], cents(each["discount"]))
            for each in response.json["evaluation"]["coupons"]
        ]
        assert found == expected(shop, cart, sequential=sequential), (cart, shop)
