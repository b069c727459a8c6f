"""The pages of orders and customers, with the test client."""

import re

import pytest

from app.services.coupons.refusals import refusals_of

NEW_ORDER = {
    "customer_id": 0,
    "status": "processing",
    "billing_address": {"first_name": "Ada", "last_name": "Lovelace", "email": "ada@example.com"},
    "line_items": [{"name": "Teapot", "quantity": 2, "price": "10.00", "sku": "TEA"}],
    "shipping_lines": [{"method_id": "flat", "method_title": "Parcel", "total": "5.00"}],
}
HOSTILE = "<script>alert(1)</script>\"'&{{7*7}}"


@pytest.fixture
def new_order(admin):
    """Return a function: creates an order over the API."""

    def create(**over):
        return admin.post("/orders", {"order": NEW_ORDER | over}).json["order"]

    return create


def test_list_of_an_empty_shop_explains_orders(browser):
    assert "No orders yet" in browser.get("/orders").text


def test_an_order_without_a_name_has_that_of_the_account(admin, browser, new_order):
    person = {"email": "ada@example.com", "first_name": "Ada", "last_name": "Byron"}
    number = admin.post("/customers", {"customer": person}).json["customer"]["id"]
    new_order(customer_id=number, billing_address={"email": "ada@example.com"})
    assert "Ada Byron" in browser.get("/orders").text


def test_an_item_without_a_name_is_shown_by_its_product(browser, new_order):
    order = new_order(line_items=[{"product_id": 4711, "quantity": 1, "price": "1.00"}])
    page = browser.get(f"/orders/{order['id']}")
    assert "Product ID 4711" in page.text
    assert page.status == 200


@pytest.mark.both_databases
def test_list_shows_orders_by_status_and_search(browser, new_order):
    order = new_order()
    done = new_order(status="completed", billing_address={"last_name": "Byron"})
    page = browser.get("/orders")
    assert page.status == 200
    assert f">#{order['id']}<" in page.html
    assert "€25.00" in page.text or "$25.00" in page.text
    processing = browser.get("/orders?state=processing")
    assert f">#{order['id']}<" in processing.html
    assert f">#{done['id']}<" not in processing.html
    assert f">#{done['id']}<" in browser.get("/orders?status=completed").html
    assert "Nothing matches." in browser.get("/orders?q=nowhere").text


def test_the_tabs_count_the_orders_of_the_chosen_customer(admin, browser, new_order):
    new_order()
    person = {"email": "bob@example.com"}
    number = admin.post("/customers", {"customer": person}).json["customer"]["id"]
    new_order(customer_id=number)
    admin.delete(f"/orders/{new_order(customer_id=number)['id']}")
    tabs = browser.get(f"/orders?customer_id={number}&state=trash").text
    assert re.search(r"All 1 Processing 1 On hold 0 Trash 1", tabs)
    assert re.search(r"All 2 Processing 2 On hold 0 Trash 1", browser.get("/orders").text)


def test_order_page_shows_the_order(browser, new_order):
    order = new_order()
    page = browser.get(f"/orders/{order['id']}")
    assert page.status == 200
    for text in ("Teapot", "TEA", "Ada Lovelace", "ada@example.com", "Parcel", "Guest", "Created"):
        assert text in page.text, text


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_times_at_the_ends_of_the_calendar(app, zone, monkeypatch, browser, admin, new_order):
    monkeypatch.setitem(app.config, "SHOP_TIMEZONE", zone)
    for time, year in (("0001-01-01T00:00:00Z", ", 1,"), ("9999-12-31T23:59:59Z", ", 9999,")):
        order = new_order(created_at=time)
        assert year in browser.get("/orders").text
        assert browser.get(f"/orders/{order['id']}").status == 200
        coupon = {"code": f"until {time[:4]}", "expiry_date": time[:10]}
        coupon_id = admin.post("/coupons", {"coupon": coupon}).json["coupon"]["id"]
        assert year.rstrip(",") in browser.get("/coupons").text
        for page in ("", "/edit", "/try"):
            assert browser.get(f"/coupons/{coupon_id}{page}").status == 200


def test_unknown_order_is_a_page(browser):
    page = browser.get("/orders/999")
    assert page.status == 404
    assert "shop_api_invalid_order_id" in page.text


def test_status_changes_and_a_note_is_added(browser, new_order, admin):
    order = new_order()
    path = f"/orders/{order['id']}"
    page = browser.post(f"{path}/status", {"status": "completed"})
    assert page.status == 303
    assert admin.get(path).json["order"]["status"] == "completed"
    assert browser.post(f"{path}/status", {"status": "lost"}).status == 400
    form = browser.get(path).form("note") | {"note": "Called back.\r\nAll good."}
    assert browser.post(f"{path}/notes", form).status == 303
    notes = admin.get(f"{path}/notes").json["order_notes"]
    assert notes[-1]["note"] == "Called back.\nAll good."
    assert "Called back." in browser.get(path).text


def test_small_forms_show_their_request_and_keep_what_was_typed(browser, new_order, admin):
    path = f"/orders/{new_order()['id']}"
    form = browser.get(path).form("note") | {"note": "Called back."}
    page = browser.post(f"{path}/notes", form | {"_show": "request"})
    assert f"<code>POST {path}/notes</code>" in page.html
    assert "Called back." in page.form("note")["note"]
    assert (
        "Called back."
        in browser.post(f"{path}/notes", form | {"_show": "form"}).form("note")["note"]
    )
    assert admin.get(f"{path}/notes").json["order_notes"] == []
    refund = browser.get(f"{path}/refund").form("amount") | {"amount": "5", "_show": "form"}
    assert browser.post(f"{path}/refund", refund).form("amount")["amount"] == "5"
    assert admin.get(f"{path}/refunds").json["order_refunds"] == []


def test_a_note_sent_twice_is_added_once(browser, new_order, admin):
    path = f"/orders/{new_order()['id']}"
    form = browser.get(path).form("note") | {"note": "Once"}
    for _ in range(2):
        assert browser.post(f"{path}/notes", form).status == 303
    notes = [each["note"] for each in admin.get(f"{path}/notes").json["order_notes"]]
    assert notes.count("Once") == 1


def test_refund_of_an_item_and_of_an_amount(browser, new_order, admin):
    order = new_order()
    path = f"/orders/{order['id']}"
    line = f"line_items.{order['line_items'][0]['id']}"
    fields = {f"{line}.quantity": "1", f"{line}.total": "10.00", "reason": "Broken"}
    assert browser.submit(f"{path}/refund", "amount", **fields).status == 303
    assert browser.submit(f"{path}/refund", "amount", amount="2.50").status == 303
    refunds = admin.get(f"{path}/refunds").json["order_refunds"]
    assert [(each["amount"], each["reason"]) for each in refunds] == [
        ("10.00", "Broken"),
        ("2.50", ""),
    ]
    page = browser.get(path)
    assert "Broken" in page.text
    assert "$2.50 Total after refunds $12.50" in page.text
    assert browser.post(f"{path}/refunds/{refunds[1]['id']}/delete").status == 303
    assert len(admin.get(f"{path}/refunds").json["order_refunds"]) == 1


@pytest.mark.both_databases
def test_the_amounts_of_a_refund_follow_the_quantity(browser, new_order, admin):
    item = {"name": "Cup", "quantity": 3, "total": "10.00", "total_tax": "1.90"}
    order = new_order(line_items=[item])
    path, line = f"/orders/{order['id']}", f"line_items.{order['line_items'][0]['id']}"
    quantity = f"{line}.quantity"
    assert "Cup: 3 of 3 left, $10.00 + $1.90 tax" in browser.get(f"{path}/refund").text
    assert browser.submit(f"{path}/refund", "amount", **{quantity: "1"}).status == 303
    page = browser.get(f"{path}/refund")
    assert "Cup: 2 of 3 left, $6.67 + $1.27 tax" in page.text
    assert "Left to refund $12.94" in page.text
    form = page.form("amount") | {quantity: "2"}
    sent = browser.post(f"{path}/refund", form | {"_show": "request"})
    assert '"total": "6.67"' in sent.html.replace("&#34;", '"')
    assert browser.post(f"{path}/refund", form).status == 303
    refunds = admin.get(f"{path}/refunds").json["order_refunds"]
    assert [each["amount"] for each in refunds] == ["3.96", "7.94"]
    assert browser.post(f"{path}/refund", form).status == 303  # pressed twice
    assert admin.get(f"{path}/refunds").json["order_refunds"] == refunds
    assert "Cup" not in browser.get(f"{path}/refund").text


def test_a_quantity_in_a_currency_without_cents(browser, new_order, admin):
    item = {"name": "Cup", "quantity": 3, "total": "1000"}
    order = new_order(currency="JPY", line_items=[item], shipping_lines=[])
    path = f"/orders/{order['id']}"
    quantity = f"line_items.{order['line_items'][0]['id']}.quantity"
    assert browser.submit(f"{path}/refund", "amount", **{quantity: "1"}).status == 303
    assert admin.get(f"{path}/refunds").json["order_refunds"][0]["amount"] == "333.00"


@pytest.mark.both_databases
def test_the_history_shows_refunds_and_notes(browser, new_order, admin):
    path, other = (f"/orders/{new_order()['id']}" for _ in range(2))
    for each in (path, other):
        refund = {"amount": "5.00", "reason": f"Broken {each}"}
        refund = admin.post(f"{each}/refunds", {"order_refund": refund}).json["order_refund"]
        note = admin.post(f"{each}/notes", {"order_note": {"note": f"Hi {each}"}})
    note = f"{other}/notes/{note.json['order_note']['id']}"
    admin.put(note, {"order_note": {"note": "Called back"}})
    admin.put(f"{other}/refunds/{refund['id']}", {"order_refund": {"reason": "Lost"}})
    admin.delete(f"{other}/refunds/{refund['id']}")
    shown = browser.get(other).text.partition(" History ")[2]
    for text in (
        f"Refund recorded {{}} Amount $5.00 Reason Broken {other}",
        f"Note added {{}} Note Hi {other}",
        f"Note changed {{}} Note Hi {other} → Called back",
        f"Refund changed {{}} Reason Broken {other} → Lost Amount $5.00",
        "Refund deleted {} Amount $5.00",
    ):
        assert re.search(re.escape(text).replace(r"\{\}", r"\w+ \d+, \d\d:\d\d"), shown), text
    assert path not in shown.replace(other, "")
    assert "Total refunded" not in shown


def test_only_what_is_left_can_be_refunded(browser, new_order):
    order = new_order()
    refund = f'href="/admin/orders/{order["id"]}/refund"'
    assert refund in browser.get(f"/orders/{order['id']}").html
    page = browser.submit(f"/orders/{order['id']}/refund", "_form", amount=order["total"])
    assert page.status == 303
    assert refund not in browser.get(f"/orders/{order['id']}").html


def test_amounts_of_a_currency_without_cents(browser, new_order):
    text = browser.get(f"/orders/{new_order(currency='JPY')['id']}").text
    assert "Total ¥25" in text
    assert "¥25.00" not in text


def test_refund_of_an_item_whose_place_changes(browser, new_order, admin):
    """Another user removes the first item while the form of the refund is open."""
    items = [{"name": name, "quantity": 1, "price": "10.00"} for name in ("Cup", "Bowl")]
    order = new_order(line_items=items, shipping_lines=[])
    path = f"/orders/{order['id']}"
    cup, bowl = (each["id"] for each in order["line_items"])
    form = browser.get(f"{path}/refund").form("amount")
    changed = {"line_items": [{"id": cup, "quantity": 0}, {"name": "Jug", "price": "10.00"}]}
    assert admin.put(path, {"order": changed}).status_code == 200
    form |= {f"line_items.{bowl}.quantity": "1", f"line_items.{bowl}.total": "10.00"}
    assert browser.post(f"{path}/refund", form).status == 303
    (refund,) = admin.get(f"{path}/refunds").json["order_refunds"]
    assert [each["id"] for each in refund["line_items"]] == [bowl]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"amount": "10,50"}, "Write a number with a point"),
        (
            {"line_items.1.quantity": "9", "line_items.1.total": "1"},
            "Quantity: Must be between 0 and 2",
        ),
        ({"amount": "26.00"}, "25.00"),
        ({}, "amount"),
    ],
)
def test_refund_with_an_error_keeps_what_was_typed(browser, new_order, fields, message):
    page = browser.submit(
        f"/orders/{new_order()['id']}/refund", "amount", reason="As typed", **fields
    )
    assert page.status == 400
    assert message in page.text
    assert 'value="As typed"' in page.html
    assert 'aria-invalid="true"' in page.html
    assert "<title>Error:" in page.html


@pytest.mark.both_databases
def test_refund_with_an_error_is_not_recorded(admin, browser, new_order):
    """Also not by the search for its other errors, however often the form is sent."""
    order = new_order()
    path = f"/orders/{order['id']}"
    line = f"line_items.{order['line_items'][0]['id']}.quantity"
    form = browser.get(f"{path}/refund").form("amount") | {line: "1"}
    for amount in ("10,50", "26.00", "26.00"):
        page = browser.post(f"{path}/refund", form | {"amount": amount})
        assert page.status == 400, amount
        assert admin.get(f"{path}/refunds").json["order_refunds"] == [], amount
        assert admin.get("/events?type=order_refund.created").json["events"] == [], amount
    assert browser.post(f"{path}/refund", form | {"amount": "10.50"}).status == 303
    (refund,) = admin.get(f"{path}/refunds").json["order_refunds"]
    assert refund["amount"] == "10.50"
    assert len(admin.get("/events?type=order_refund.created").json["events"]) == 1


def test_trash_restore_and_delete(browser, new_order, admin):
    order = new_order()
    path = f"/orders/{order['id']}"
    assert browser.post(f"{path}/trash").status == 303
    assert f">#{order['id']}<" in browser.get("/orders?state=trash").html
    assert browser.post(f"{path}/restore").status == 303
    assert admin.get(path).json["order"]["status"] == "processing"
    assert browser.post(f"{path}/delete").status == 303
    assert admin.get(path).status_code == 404


def test_status_of_everything_that_matches(browser, new_order, admin):
    ids = [new_order()["id"] for _ in range(3)]
    kept = new_order(status="on-hold")["id"]
    values = {"action": "status", "status": "completed", "everything": "1"}
    page = browser.post("/orders/selected", values | {"query": "state=processing"})
    assert page.status == 200
    assert "3 records done" in page.text
    statuses = {each["id"]: each["status"] for each in admin.get("/orders").json["orders"]}
    assert [statuses[each] for each in ids] == ["completed"] * 3
    assert statuses[kept] == "on-hold"
    for each in ids:
        browser.post(f"/orders/{each}/trash")
    values = {"action": "restore", "id": str(ids[0]), "query": "state=trash"}
    assert "1 record done" in browser.post("/orders/selected", values).text


def selection(page, ids, **values):
    """The form below a table, with selected rows and without those of the other tables."""
    rows = re.findall('name="row" value="(.+?)"', page.html)
    return {"id": [str(each) for each in ids], "row": rows, **values}


def test_selected_orders_that_have_changed_are_left_as_they_are(browser, new_order, admin):
    first, changed, done, trashed, other = (new_order()["id"] for _ in range(5))
    page = browser.get("/orders")
    admin.put(f"/orders/{changed}", {"order": {"status": "on-hold"}})
    admin.put(f"/orders/{done}", {"order": {"status": "completed"}})
    admin.delete(f"/orders/{trashed}")
    admin.put(f"/orders/{other}", {"order": {"note": "The table does not show it."}})
    sent = selection(
        page, (first, changed, done, trashed, other), action="status", status="completed"
    )
    page = browser.post("/orders/selected", sent)
    assert "3 records done , 2 failed" in page.text
    assert f"{changed}: Someone else has changed it." in page.text
    statuses = {each["id"]: each["status"] for each in admin.get("/orders").json["orders"]}
    assert statuses == dict.fromkeys((first, done, other), "completed") | {changed: "on-hold"}
    # A second press finds its own work.
    assert "3 records done , 2 failed" in browser.post("/orders/selected", sent).text


@pytest.mark.parametrize("kind", ["coupon", "order"])
def test_selected_records_that_have_changed_are_not_trashed(browser, admin, kind):
    def create(number):
        new = {"code": f"code-{number}"} if kind == "coupon" else {"status": "pending"}
        return admin.post(f"/{kind}s", {kind: new}).json[kind]["id"]

    kept, trashed = create(1), create(2)
    page = browser.get(f"/{kind}s")
    change = {"description": "new"} if kind == "coupon" else {"status": "processing"}
    admin.put(f"/{kind}s/{kept}", {kind: change})
    sent = selection(page, (kept, trashed), action="trash")
    assert "1 record done , 1 failed" in browser.post(f"/{kind}s/selected", sent).text
    assert [each["id"] for each in admin.get(f"/{kind}s").json[f"{kind}s"]] == [kept]
    # What was trashed by an earlier press is not a failure.
    assert "1 record done , 1 failed" in browser.post(f"/{kind}s/selected", sent).text
    # Rows that were not sent by a table are ignored.
    hostile = selection(page, [kept], action="trash") | {"row": ["x", "1.", "9" * 5000, "٣.a"]}
    assert "1 record done" in browser.post(f"/{kind}s/selected", hostile).text


def test_texts_of_customers_are_escaped(browser, new_order):
    order = new_order(
        billing_address={"first_name": HOSTILE, "company": HOSTILE},
        note=HOSTILE,
        line_items=[{"name": HOSTILE, "sku": HOSTILE, "total": "1.00"}],
    )
    for path in ("/orders", f"/orders/{order['id']}", f"/orders/{order['id']}/refund"):
        page = browser.get(path)
        assert page.status == 200
        assert "<script>alert" not in page.html
        assert "49" not in page.text.replace(HOSTILE, "") or "{{7*7}}" in page.text


@pytest.mark.parametrize("path", ["/orders", "/orders/1", "/orders/1/refund", "/customers"])
def test_pages_require_the_resource(new_browser, new_order, path):
    new_order()
    page = new_browser(login="bob", resources=["coupons"]).get(path)
    assert page.status == 403 or page.status == 401


def test_a_key_that_reads_sees_no_actions(new_browser, new_order):
    order = new_order()
    page = new_browser(login="eve", permission="read").get(f"/orders/{order['id']}")
    assert page.status == 200
    for text in ("Change status", "Add note", "Delete permanently", "Move to the trash"):
        assert text not in page.text


def test_trash_can_be_undone(browser, new_order, admin):
    first, second = new_order(), new_order()
    page = browser.post(f"/orders/{first['id']}/trash")
    assert "Undo" in browser.get(page.location.removeprefix("/admin")).html
    assert "Undo" not in browser.get(f"/orders?undo={first['id']}&at=1").html
    page = browser.post("/orders/selected", {"action": "trash", "id": [str(second["id"])]})
    assert "Undo" in page.html
    undone = {"action": "restore", "id": [str(first["id"]), str(second["id"])]}
    assert "2 records done" in browser.post("/orders/selected", undone).text
    assert admin.get("/orders/count").json == {"count": 2}


def test_status_of_a_stale_page_changes_nothing(admin, browser):
    order = admin.post("/orders", {"order": {"status": "processing"}}).json["order"]
    path = f"/orders/{order['id']}"
    shown = browser.get(path).form("status")
    assert shown["_etag"]
    admin.put(path, {"order": {"status": "cancelled"}})
    page = browser.post(f"{path}/status", shown | {"status": "completed"})
    assert page.status == 409
    assert "Someone else changed this order" in page.text
    assert admin.get(path).json["order"]["status"] == "cancelled"
    chosen = page.form("_etag") | {"status": "completed"}
    assert browser.post(f"{path}/status", chosen).location.endswith("done=saved")
    assert admin.get(path).json["order"]["status"] == "completed"


def test_status_of_a_page_whose_order_has_changed_otherwise(admin, browser):
    order = admin.post("/orders", {"order": {"status": "processing"}}).json["order"]
    path = f"/orders/{order['id']}"
    shown = browser.get(path).form("status")
    admin.put(path, {"order": {"note": "Ring twice."}})
    page = browser.post(f"{path}/status", shown | {"status": "completed"})
    assert page.location.endswith("done=saved")


@pytest.mark.both_databases
def test_an_order_is_edited(browser, new_order, admin):
    customer = {"email": "grace@example.com", "first_name": "Grace", "last_name": "Hopper"}
    number = admin.post("/customers", {"customer": customer}).json["customer"]["id"]
    items = [{"name": name, "quantity": 2, "price": "10.00"} for name in ("Teapot", "Cup")]
    order = new_order(line_items=items)
    path = f"/orders/{order['id']}"
    pot, cup = (f"line_items.{each['id']}" for each in order["line_items"])
    form = browser.get(f"{path}/edit").form("note")
    assert (form["billing_address.first_name"], form[f"{pot}.quantity"]) == ("Ada", "2")
    form |= {
        "customer_id": str(number),
        "note": "Ring twice",
        "billing_address.city": "Turin",
        f"{pot}.quantity": "1",
        f"{cup}.quantity": "0",
        "line_items.-1.name": "Bowl",
        "line_items.-1.price": "4.50",
    }
    sent = browser.post(f"{path}/edit", form | {"_show": "request"})
    assert "created_via" not in sent.html
    assert browser.post(f"{path}/edit", form).status == 303
    saved = admin.get(path).json["order"]
    assert [(each["name"], each["quantity"], each["total"]) for each in saved["line_items"]] == [
        ("Teapot", 1, "10.00"),
        ("Bowl", 1, "4.50"),
    ]
    assert (saved["note"], saved["customer_id"], saved["total"]) == ("Ring twice", number, "19.50")
    assert saved["billing_address"] == order["billing_address"] | {"city": "Turin"}
    assert "Grace Hopper Billed to Ada Lovelace" in browser.get(path).text
    assert browser.post(f"{path}/edit", form).status == 303  # pressed twice
    assert admin.get(path).json["order"] == saved
    assert browser.post(f"{path}/edit", form | {"note": ""}).status == 409  # an item is gone


def test_new_items_of_a_form_are_added_once(browser, new_order, admin):
    path = f"/orders/{new_order()['id']}"
    bowl = {"line_items.-1.name": "Bowl", "line_items.-1.price": "4.50"}
    form = browser.get(f"{path}/edit").form("note") | bowl
    for _ in range(2):
        assert browser.post(f"{path}/edit", form).status == 303
    page = browser.post(f"{path}/edit", form | {"line_items.-1.price": "5"})
    assert "This form was already sent with other values." in page.text
    items = admin.get(path).json["order"]["line_items"]
    assert [each["name"] for each in items].count("Bowl") == 1


def test_an_item_that_someone_else_changed_is_a_conflict(browser, new_order, admin):
    order = new_order()
    path, number = f"/orders/{order['id']}", order["line_items"][0]["id"]
    form = browser.get(f"{path}/edit").form("note") | {f"line_items.{number}.name": "Pot"}
    changed = {"line_items": [{"id": number, "quantity": 3}]}
    assert admin.put(path, {"order": changed}).status_code == 200
    page = browser.post(f"{path}/edit", form)
    assert page.status == 409
    assert "Pot, Quantity When you began 2 Theirs: 3 Yours: 2" in page.text
    assert "Pot, Total" not in page.text, "it follows the quantity"
    values = page.form("_etag") | {f"line_items.{number}.quantity": "3"}
    assert browser.post(f"{path}/edit", values).status == 303
    (saved,) = admin.get(path).json["order"]["line_items"]
    assert (saved["name"], saved["quantity"], saved["total"]) == ("Pot", 3, "30.00")
    # A total that was typed is compared, also with one that followed a quantity.
    form = browser.get(f"{path}/edit").form("note") | {f"line_items.{number}.total": "9.00"}
    changed = {"line_items": [{"id": number, "quantity": 4}]}
    assert admin.put(path, {"order": changed}).status_code == 200
    page = browser.post(f"{path}/edit", form)
    assert "Pot, Total When you began 30.00 Theirs: 40.00 Yours: 9.00" in page.text
    same = form | {f"line_items.{number}.total": "30.00", f"line_items.{number}.quantity": "4"}
    assert browser.post(f"{path}/edit", same).status == 303, "both have typed the same quantity"


def test_an_order_is_created_for_a_customer(browser, admin):
    address = {"first_name": "Grace", "city": "Arlington"}
    customer = {"email": "grace@example.com", "billing_address": address}
    number = admin.post("/customers", {"customer": customer}).json["customer"]["id"]
    admin.post("/coupons", {"coupon": {"code": "tea", "type": "percent", "amount": "10"}})
    assert f"/orders/new?customer_id={number}" in browser.get(f"/customers/{number}").html
    form = browser.get(f"/orders/new?customer_id={number}").form("note") | {
        "status": "processing",
        "line_items.-1.name": "Tea",
        "line_items.-1.quantity": "2",
        "line_items.-1.price": "5.00",
        "coupon_lines.-1.code": "TEA",
        "shipping_lines.-1.method_title": "Parcel",
        "shipping_lines.-1.total": "3.00",
    }
    for _ in range(2):  # a double click creates one
        assert browser.post("/orders/new", form).status == 303
    (order,) = admin.get(f"/orders?customer_id={number}").json["orders"]
    assert (order["status"], order["total"], order["total_discount"]) == (
        "processing",
        "12.00",
        "1.00",
    )
    assert order["billing_address"]["city"] == "Arlington"
    assert order["shipping_methods"] == "Parcel"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("sort=colour", "Orderby: must be one of"),
        ("status=none", "Status: unknown status"),
        ("total_min=x", "Total min: "),
    ],
)
def test_errors_of_an_address_name_no_parameters_of_the_api(browser, query, message):
    page = browser.get(f"/orders?{query}")
    assert page.status == 400
    assert message in page.text
    assert "filter[" not in page.text


def test_a_form_that_shows_all_its_errors_counts_no_refused_code(app, admin, browser):
    line = {"line_items.-1.name": "Tea", "line_items.-1.price": "5"}
    code = {"coupon_lines.-1.code": "nothing"}
    form = browser.get("/orders/new").form("note") | line | code
    counts = []
    for customer in ("x", ""):  # with an error that the form finds, it runs the request on trial
        page = browser.post("/orders/new", form | {"customer_id": customer})
        assert page.status == 400
        assert 'href="#field-coupon_lines--1-code"' in page.html
        refusals_of(app).flush()
        rows = admin.get("/reports/refusals").get_json()["refusal_reports"]
        counts.append([row["count"] for row in rows])
    assert counts == [[], [1]]


def test_errors_of_a_new_order_stand_beside_their_fields(browser):
    form = browser.get("/orders/new").form("note")
    fields = {
        "line_items.-2.name": "Tea",
        "line_items.-1.name": "Cup",
        "line_items.-1.price": "1,5",
    }
    page = browser.post("/orders/new", form | fields | {"customer_id": "x"})
    assert page.status == 400
    assert page.html.count('aria-invalid="true"') == 3  # the second line has no price
    page = browser.post("/orders/new", form | {"line_items.-2.name": "Tea"})
    assert page.status == 400
    assert 'href="#field-line_items--2-price"' in page.html
    page = browser.post("/orders/new", form | {"customer_id": "99999"})
    assert 'href="#field-customer_id"' in page.html


def test_the_search_shows_address_time_and_total(browser, new_order):
    new_order(created_at="2026-05-01T12:00:00Z")
    new_order(created_at="2026-05-02T12:00:00Z")
    text = browser.get("/search?q=ada").text
    assert "Ada Lovelace · ada@example.com · May 1, 12:00 · $25.00" in text
