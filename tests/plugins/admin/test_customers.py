"""The pages of customers, with the test client."""

import re
from uuid import uuid4

from app.plugins.admin import calls, selections
from tests.factories import insert_order

HOSTILE = '<script>alert(1)</script>"'


def test_list_of_an_empty_shop_explains_customers(browser):
    assert "No customers yet" in browser.get("/customers").text


def test_create_edit_and_delete(browser, admin):
    page = browser.submit("/customers/new", "email", email="ada@example.com", first_name="Ada")
    assert page.status == 303
    customer = admin.get("/customers/email/ada@example.com").json["customer"]
    path = f"/customers/{customer['id']}"
    assert "Ada" in browser.get(path).text
    assert "ada@example.com" in browser.get("/customers").text
    page = browser.submit(f"{path}/edit", "email", **{"billing_address.city": "London"})
    assert page.status == 303
    changed = admin.get(path).json["customer"]
    assert changed["billing_address"]["city"] == "London"
    assert changed["first_name"] == "Ada"
    assert "London" in browser.get(path).text
    assert browser.post(f"{path}/delete").status == 303
    assert admin.get(path).status_code == 404


def test_error_stands_beside_its_field(browser):
    page = browser.submit("/customers/new", "email", email="not an address", first_name="Kept")
    assert page.status == 400
    assert 'value="Kept"' in page.html
    assert 'id="field-email-error"' in page.html


def test_duplicate_email_stands_beside_its_field(browser, admin):
    admin.post("/customers", {"customer": {"email": "ada@example.com"}})
    page = browser.submit("/customers/new", "email", email="ada@example.com")
    assert page.status == 400
    assert 'id="field-email-error"' in page.html


def test_email_of_another_account_is_not_said_to_be_saved(browser, admin, make_customer):
    """The API ignores it in an update (decisions 5). A form has no such tolerance (admin 5)."""
    path = f"/customers/{make_customer(email='ada@example.com', first_name='Ada')['id']}"
    make_customer(email="bob@example.com")
    page = browser.submit(f"{path}/edit", "email", email="Bob@Example.com", first_name="Kept")
    assert page.status == 400
    assert 'value="Kept"' in page.html
    assert 'id="field-email-error"' in page.html
    stored = admin.get(path).json["customer"]
    assert (stored["email"], stored["first_name"]) == ("ada@example.com", "Ada")
    page = browser.submit(f"{path}/edit", "email", email="ADA@example.com", first_name="Kept")
    assert page.status == 303
    stored = admin.get(path).json["customer"]
    assert (stored["email"], stored["first_name"]) == ("ADA@example.com", "Kept")


def test_conflict_of_two_editors_shows_both_values(browser, admin):
    body = {"customer": {"email": "ada@example.com", "first_name": "Ada"}}
    path = f"/customers/{admin.post('/customers', body).json['customer']['id']}"
    form = browser.get(f"{path}/edit").form("email")
    admin.put(path, {"customer": {"first_name": "Augusta"}})
    page = browser.post(f"{path}/edit", form | {"first_name": "Adele"})
    assert page.status == 409
    assert "Augusta" in page.text
    assert "Adele" in page.text
    # Another field is saved without a question.
    page = browser.post(f"{path}/edit", form | {"last_name": "King"})
    assert page.status in {303, 409}


def test_texts_are_escaped(browser, admin):
    body = {"customer": {"email": "eve@example.com", "billing_address": {"company": "A & B"},
                         "metadata": {HOSTILE: HOSTILE}}}  # fmt: skip
    customer = admin.post("/customers", body).json["customer"]
    page = browser.get(f"/customers/{customer['id']}")
    assert page.status == 200
    assert "<script>alert" not in page.html
    assert "&lt;script&gt;alert" in page.html
    assert "A &amp; B" in page.html


def test_a_customer_with_downloads(browser, admin):
    """The page shows the downloads of the latest orders."""
    customer = admin.post("/customers", {"customer": {"email": "ada@example.com"}}).json["customer"]
    file = {"name": "Book.pdf", "file": "https://shop.example/book.pdf"}

    def add_order(*names):
        book = {"product_id": 7, "file": file}
        permissions = [
            {
                **book,
                "download_id": name,
                "download_name": name,
                "download_url": f"https://s.example/{name}",
            }
            for name in names
        ]
        order = {"customer_id": customer["id"], "status": "completed"}
        order["download_permissions"] = permissions
        assert admin.post("/orders", {"order": order}).status_code == 201
        return browser.get(f"/customers/{customer['id']}")

    page = add_order("Old book", *(f"Volume {number}" for number in range(19)))
    assert page.status == 200
    assert "Old book no limit" in page.text
    assert "The latest" not in page.text
    page = add_order("New book")
    assert "New book no limit" in page.text
    assert "Volume 18" in page.text
    assert "Old book" not in page.text
    assert "The latest 20. The API returns all." in page.text


def tags_of(admin, number):
    return admin.get(f"/customers/{number}", {"fields": "tags"}).json["customer"]["tags"]


def add_customers(admin, *tags):
    """Add a customer for each list of tags, and return their IDs."""
    bodies = [{"email": f"{n}@example.com", "tags": each} for n, each in enumerate(tags)]
    return [admin.post("/customers", {"customer": each}).json["customer"]["id"] for each in bodies]


def test_tags_are_shown_and_filtered(browser, admin):
    tagged, _plain = add_customers(admin, ["vip", "press"], [])
    page = browser.get("/customers")
    assert ">vip</span>" in page.html
    assert ">press</span>" in browser.get(f"/customers/{tagged}").html
    page = browser.get("/customers?tag=VIP")
    assert ("0@example.com" in page.text, "1@example.com" in page.text) == (True, False)
    assert 'name="tag" value="VIP"' in page.html
    assert "Nothing matches." in browser.get("/customers?tag=unknown").text


def test_a_tag_is_added_to_several_customers(browser, admin):
    ids = add_customers(admin, ["vip"], [], ["press"])
    assert "Add tag" in browser.get("/customers").text
    sent = {"action": "tag", "tags": " Newsletter "}
    page = browser.post("/customers/selected", sent | {"id": ids[:2]})
    assert "2 records done" in page.text
    assert [tags_of(admin, each) for each in ids] == [
        ["vip", "newsletter"],
        ["newsletter"],
        ["press"],
    ]
    events = admin.get("/events", {"type": "customer.updated"}).json["events"]
    assert len(events) == 2
    page = browser.post("/customers/selected", {"action": "tag", "tags": "big", "everything": "1",
                                                "query": "tag=newsletter&sort=name"})  # fmt: skip
    assert "2 records done" in page.text
    assert [tags_of(admin, each)[-1] for each in ids] == ["big", "big", "press"]


def test_adding_a_tag_loses_no_tag_of_another_writer(browser, admin, monkeypatch):
    (number,) = add_customers(admin, ["vip"])
    others = iter(("press", "staff"))

    def record_then_tag(name, **path):
        found = calls.record_of(name, **path)
        if tag := next(others, None):
            admin.put(
                f"/customers/{number}", {"customer": {"tags": [*tags_of(admin, number), tag]}}
            )
        return found

    shown = {"row": f"{number}.of-an-earlier-table"}
    monkeypatch.setattr(selections, "record_of", record_then_tag)
    page = browser.post(
        "/customers/selected", shown | {"action": "tag", "tags": "new", "id": number}
    )
    assert "1 record done" in page.text
    assert tags_of(admin, number) == ["vip", "press", "staff", "new"]


def test_a_tag_that_is_not_valid_changes_nothing(browser, admin):
    (number,) = add_customers(admin, [f"tag-{each}" for each in range(50)])
    page = browser.post("/customers/selected", {"action": "tag", "tags": "more", "id": number})
    assert "1 failed" in page.text
    page = browser.post("/customers/selected", {"action": "tag", "tags": "-no", "id": number})
    assert "1 failed" in page.text
    assert len(tags_of(admin, number)) == 50
    page = browser.post("/customers/selected", {"action": "tag", "tags": " ", "id": number})
    assert (page.status, "Fill in this field." in page.text) == (400, True)


def test_a_note_of_support_is_shown_and_changed(browser, admin):
    body = {"customer": {"email": "ada@example.com", "metadata": {"note": "Calls often."}}}
    path = f"/customers/{admin.post('/customers', body).json['customer']['id']}"
    form = browser.get(path).form("metadata.note")
    assert form["metadata.note"] == "Calls often."
    page = browser.post(f"{path}/note", form | {"metadata.note": "Prefers\nmail."})
    assert page.status == 303
    shown = admin.get(path, {"fields": "metadata"}).json["customer"]
    assert shown["metadata"]["note"].splitlines() == ["Prefers", "mail."]


def merging(page):
    """The address of the form that merges two accounts, below ``/admin``, and what it carries."""
    address = re.search(r'action="/admin(/customers/[^"]+/merge[^"]+)"', page.html)[1]
    return address.replace("&amp;", "&"), {"_form": uuid4().hex}


def test_two_accounts_are_compared_and_merged(browser, admin):
    kept, removed = (
        admin.post("/customers", {"customer": {"email": email, "first_name": name}}).json[
            "customer"
        ]
        for email, name in (("ada@example.com", "Ada"), ("old@example.com", "Augusta"))
    )
    path = f"/customers/{kept['id']}/merge"
    assert f"{path}" in browser.get(f"/customers/{kept['id']}").html
    found = browser.get(f"{path}?q=old@")
    assert f"?customer_id={removed['id']}" in found.html
    page = browser.get(f"{path}?customer_id={removed['id']}")
    assert "Augusta" in page.text
    assert "old@example.com" in page.text
    assert "></th>" not in page.html
    # Someone changes an account in between.
    admin.put(f"/customers/{kept['id']}", {"customer": {"last_name": "King"}})
    changed = browser.post(*merging(page))
    assert "Nothing is merged yet." in changed.text
    assert browser.post(*merging(changed)).status == 303
    assert admin.get(f"/customers/{removed['id']}").status_code == 404
    own = browser.get(f"{path}?customer_id={admin.key.user_id}")
    assert "This account cannot be removed" in own.text


def test_orders_of_guests_are_claimed(app, browser, admin):
    customer = admin.post("/customers", {"customer": {"email": "ada@example.com"}}).json["customer"]
    path = f"/customers/{customer['id']}"
    assert "Claim" not in browser.get(path).text
    order = insert_order(app, billing_email="Ada@example.com")
    assert "Claim 1 guest order" in browser.get(path).text
    page = browser.get(f"{path}/claim")
    assert f"/admin/orders/{order}" in page.html
    assert browser.post(f"{path}/claim", {}).status == 303
    assert admin.get(f"/orders/{order}").json["order"]["customer_id"] == customer["id"]
    assert "No order of a guest" in browser.get(f"{path}/claim").text
