"""The pages of a person: its data, and the erasure after a preview (people 8)."""

import json

import pytest

from tests.plugins.admin.browser_client import Browser

ADDRESS = {"first_name": "Ann", "email": "ann@example.com"}


@pytest.fixture
def shop(app, admin, make_customer):
    """A customer with an order, and an order of a guest."""
    customer = make_customer(email="ann@example.com", first_name="Ann")["id"]
    made = []
    for customer_id, email in ((customer, "ann@example.com"), (0, "guest@example.com")):
        order = {
            "customer_id": customer_id,
            "status": "completed",
            "billing_address": ADDRESS | {"email": email},
            "line_items": [{"name": "Cup", "price": "1.00"}],
        }
        made.append(admin.post("/orders", {"order": order}).get_json()["order"]["id"])
    return customer, *made


def erase(browser, query, typed):
    """Open the page of a person, type into its form, and send it."""
    form = browser.get(f"/privacy?{query}").form("typed") | {"typed": typed}
    return browser.post("/privacy/erase", form)


def test_a_customer_is_erased_after_the_address_was_typed(app, admin, shop):
    browser = Browser(app, admin.key)
    page = browser.get(f"/customers/{shop[0]}")
    assert "Personal data" in page.text
    assert f"/admin/privacy?customer_id={shop[0]}" in page.html
    page = browser.get(f"/privacy?customer_id={shop[0]}")
    assert "ann@example.com" in page.text
    wrong = erase(browser, f"customer_id={shop[0]}", "bob@example.com")
    assert wrong.status == 400
    assert admin.get(f"/customers/{shop[0]}").status_code == 200
    done = erase(browser, f"customer_id={shop[0]}", "Ann@example.com")
    assert (done.status, "Personal data erased" in done.text) == (200, True)
    assert admin.get(f"/customers/{shop[0]}").status_code == 404
    order = admin.get(f"/orders/{shop[1]}").get_json()["order"]
    assert order["billing_address"]["first_name"] == ""


def test_a_guest_is_found_by_the_order_and_by_the_address(app, admin, shop):
    browser = Browser(app, admin.key)
    assert f"/admin/privacy?order_id={shop[2]}" in browser.get(f"/orders/{shop[2]}").html
    assert "/admin/privacy?" not in browser.get(f"/orders/{shop[1]}").html
    page = browser.post("/privacy/find", {"email": "Guest@example.com"})
    assert (page.status, "guest@example.com" in page.text) == (200, True)
    assert browser.post("/privacy/find", {"email": "none@example.com"}).status == 400
    done = erase(browser, f"order_id={shop[2]}", "guest@example.com")
    assert "Personal data erased" in done.text
    assert "Nothing is left to erase" in browser.get(f"/privacy?order_id={shop[2]}").text


@pytest.mark.parametrize("query", ["customer_id={}", "order_id={}"])
def test_a_second_press_shows_what_was_erased(app, admin, shop, query):
    browser = Browser(app, admin.key)
    number, typed = {"c": (shop[0], "ann"), "o": (shop[2], "guest")}[query[0]]
    form = browser.get(f"/privacy?{query.format(number)}").form("typed")
    form |= {"typed": f"{typed}@example.com"}
    first, again = (browser.post("/privacy/erase", form) for _ in range(2))
    assert (again.status, again.text) == (200, first.text)
    assert browser.post("/privacy/erase", form | {"_form": "x"}).status >= 400


def test_open_orders_are_named(app, admin, shop):
    admin.put(f"/orders/{shop[2]}", {"order": {"status": "processing"}})
    page = Browser(app, admin.key).get(f"/privacy?order_id={shop[2]}")
    assert f"{shop[2]} (processing)" in page.text
    assert "typed" not in page.html


def test_the_data_is_one_file(app, admin, shop):
    page = Browser(app, admin.key).get(f"/privacy/person-data?customer_id={shop[0]}")
    assert json.loads(page.html)["person_data"]["customer_ids"] == [shop[0]]
