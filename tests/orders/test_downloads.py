"""Download permissions of orders, written with the order (orders 6 and 9)."""

import pytest

from tests.api_client import refused_params, without_key

BOOK = {
    "product_id": 3,
    "download_id": "file-3",
    "download_name": "E-book",
    "download_url": "https://shop.example/?download_file=3",
    "file": {"name": "E-book", "file": "https://shop.example/files/3.pdf"},
    "downloads_remaining": 5,
    "access_expires": "2999-12-31T00:00:00Z",
}
LINE = {"name": "E-book", "price": "8.00"}


@pytest.fixture
def customer_id(make_customer):
    return make_customer()["id"]


@pytest.fixture
def order(admin, customer_id):
    """Return a function: create a paid order of the customer with download permissions."""

    def make(*permissions, client=admin, **fields):
        body = {"customer_id": customer_id, "status": "completed", "line_items": [LINE]}
        body |= {"download_permissions": list(permissions)}
        response = client.post("/orders", {"order": body | fields})
        assert response.status_code == 201, response.get_json()
        return response.get_json()["order"]

    return make


@pytest.fixture
def downloads(admin, customer_id):
    """Return a function: what the customer can download, by the ID of the permission."""

    def get():
        return admin.get(f"/customers/{customer_id}/downloads").get_json()["downloads"]

    return get


@pytest.fixture
def change(admin):
    """Return a function: update the download permissions of an order."""

    def put(order, *permissions, **fields):
        body = {"order": {"download_permissions": list(permissions)} | fields}
        return admin.put(f"/orders/{order['id']}", body)

    return put


def invalid_items(response):
    """The locations and reasons of invalid items, in order."""
    assert response.status_code == 400, response.get_json()
    entries = response.get_json()["errors"]
    assert {entry["code"] for entry in entries} == {"shop_api_invalid_order_item"}
    return [(entry["param"], entry["message"].partition(": ")[2]) for entry in entries]


def test_permissions_of_a_new_order_are_offered(order, downloads):
    created = order(BOOK, {"download_id": "file-4"})
    assert "download_permissions" not in created
    first, second = downloads().items()
    of_order = {"order_id": created["id"], "order_key": created["order_key"]}
    assert first[1] == BOOK | of_order | {"downloads_remaining": "5"}
    assert second[1] == of_order | {
        "download_url": "",
        "download_id": "file-4",
        "product_id": 0,
        "download_name": "",
        "downloads_remaining": "",
        "access_expires": None,
        "file": {"name": "", "file": ""},
    }
    assert int(first[0]) < int(second[0])


@pytest.mark.parametrize(
    ("given", "shown"),
    [("", ""), (" ", ""), (None, ""), (7, "7"), ("7", "7"), (7.0, "7"), (" 7 ", "7")],
)
def test_remaining_downloads(order, downloads, given, shown):
    order(BOOK | {"downloads_remaining": given})
    assert [each["downloads_remaining"] for each in downloads().values()] == [shown]


def test_none_remaining_is_stored_and_not_offered(order, downloads, change):
    created = order(BOOK)
    (key,) = downloads()
    assert change(created, {"id": key, "downloads_remaining": 0}).status_code == 200
    assert downloads() == {}
    assert change(created, {"id": key, "downloads_remaining": 2}).status_code == 200
    assert downloads()[key]["downloads_remaining"] == "2"


def test_update_by_the_key_of_the_downloads(order, downloads, change):
    created = order(BOOK, BOOK | {"download_id": "file-4"}, BOOK | {"download_id": "file-5"})
    first, second, third = downloads().items()
    response = change(
        created,
        {"id": second[0], "remove": True},
        {"id": int(first[0]), "file": {"name": "Book"}, "access_expires": "", "product_id": None},
        {"download_id": "file-6"},
        {"id": third[0], "remove": "true", "downloads_remaining": ""},
    )
    assert response.status_code == 200, response.get_json()
    after = downloads()
    assert list(after)[:2] == [first[0], third[0]]
    file = {"name": "Book", "file": BOOK["file"]["file"]}
    assert after[first[0]] == first[1] | {"file": file, "access_expires": None}
    assert after[third[0]] == third[1] | {"downloads_remaining": ""}
    assert [each["download_id"] for each in after.values()] == ["file-3", "file-5", "file-6"]
    # IDs are never reused.
    assert int(list(after)[2]) > int(third[0])


@pytest.mark.parametrize("permissions", [[], None])
def test_an_empty_list_changes_nothing(admin, order, downloads, permissions):
    created = order(BOOK)
    before = downloads()
    body = {"order": {"download_permissions": permissions}}
    assert admin.put(f"/orders/{created['id']}", body).status_code == 200
    assert downloads() == before


def test_violated_rules_of_all_lists_are_reported_together(admin, order, downloads, change):
    created, other = order(BOOK), order(BOOK)
    mine, foreign = downloads()
    lines = [{"name": "Teapot"}]
    needs = "needs a product_id, a download_id or a download_url."
    unknown = "is not the ID of an item in download_permissions."
    response = change(
        created,
        {"download_name": "nothing"},
        {"id": foreign, "downloads_remaining": 1},
        {"id": mine, "downloads_remaining": -1},
        {"id": mine},
        {"product_id": -1},
        line_items=lines,
        status="refunded",
    )
    assert sorted(invalid_items(response)) == [
        ("order.download_permissions[0]", needs),
        ("order.download_permissions[1].id", unknown),
        ("order.download_permissions[2].downloads_remaining", "must not be negative."),
        ("order.download_permissions[3].id", "occurs twice."),
        ("order.download_permissions[4].product_id", "must not be negative."),
        ("order.line_items[0]", "needs a price, a subtotal or a total."),
    ]
    assert set(downloads()) == {mine, foreign}
    assert admin.get(f"/orders/{created['id']}").get_json()["order"]["status"] == "completed"
    body = {"order": {"download_permissions": [{}, {"id": foreign, "product_id": 1}]}}
    assert invalid_items(admin.post("/orders", body))[0] == ("order.download_permissions[0]", needs)
    assert other


@pytest.mark.parametrize(
    ("item", "param"),
    [
        (5, "order.download_permissions[0]"),
        ({"product_id": []}, "order.download_permissions[0].product_id"),
        ({"download_id": True}, "order.download_permissions[0].download_id"),
        ({"file": "f"}, "order.download_permissions[0].file"),
        ({"file": {"name": {}}}, "order.download_permissions[0].file.name"),
        ({"downloads_remaining": "many"}, "order.download_permissions[0].downloads_remaining"),
        ({"downloads_remaining": True}, "order.download_permissions[0].downloads_remaining"),
        ({"downloads_remaining": 1.5}, "order.download_permissions[0].downloads_remaining"),
        ({"downloads_remaining": 2**63}, "order.download_permissions[0].downloads_remaining"),
        ({"access_expires": "soon"}, "order.download_permissions[0].access_expires"),
    ],
)
def test_wrong_types(admin, order, change, item, param):
    assert refused_params(admin.post("/orders", {"order": {"download_permissions": [item]}})) == [
        param
    ]
    assert refused_params(change(order(), item)) == [param]


def test_too_many_permissions(admin, order, change):
    items = [{"download_id": str(number)} for number in range(1001)]
    too_large = {"order": {"download_permissions": items}}
    assert admin.post("/orders", too_large).status_code == 413
    created = order(*items[:600])
    assert change(created, *items[:401]).status_code == 413
    assert change(created, *items[:400]).status_code == 200


@pytest.mark.parametrize("mount", ["/wc-api/v2", "/wc-api/v3"])
def test_legacy_mounts(admin, customer_id, mount):
    order = {"customer_id": customer_id, "status": "wc-completed", "line_items": [LINE]}
    order |= {"download_permissions": {"0": BOOK, "2": {"product_id": 4}}}
    created = admin.post(f"{mount}/orders", {"order": order})
    assert created.status_code == 201, created.get_json()
    path = f"{mount}/customers/{customer_id}/downloads"
    listed = admin.get(path).get_json()["downloads"]
    assert [each["product_id"] for each in listed] == [3, 4]


def test_bulk(admin, order, downloads):
    created = order(BOOK)
    (key,) = downloads()
    items = [
        {"id": created["id"], "download_permissions": [{"id": key, "downloads_remaining": 1}]},
        {"id": created["id"], "download_permissions": [{"id": 0, "download_id": "file-9"}]},
        {"id": created["id"], "download_permissions": [{"id": 10**9, "download_id": "none"}]},
        {
            "customer_id": admin.get(f"/orders/{created['id']}").get_json()["order"]["customer_id"],
            "status": "completed",
            "download_permissions": [{"download_id": "file-10"}],
        },
    ]
    results = admin.post("/orders/bulk", {"orders": items}).get_json()["orders"]
    assert ["error" in result for result in results] == [False, False, True, False]
    assert results[2]["error"]["code"] == "shop_api_invalid_order_item"
    assert {
        (each["order_id"], each["download_id"], each["downloads_remaining"])
        for each in downloads().values()
    } == {
        (created["id"], "file-3", "1"),
        (created["id"], "file-9", ""),
        (results[3]["id"], "file-10", ""),
    }


def test_statements_do_not_depend_on_the_number(admin, order, downloads, change, statements):
    def counted(write):
        admin.get("/coupons/count")  # remembers the key
        statements.clear()
        write()
        return len(without_key(statements))

    many = [{"download_id": str(number)} for number in range(30)]
    without = counted(order)
    assert counted(lambda: order(BOOK)) == counted(lambda: order(*many)) == without + 1
    created = order(BOOK, *many)
    keys = list(downloads())[-31:]

    def updates(number):
        items = [{"id": key, "downloads_remaining": 9} for key in keys[:number]]
        return [*items, {"id": keys[number], "remove": True}, {"download_id": "new"}]

    # A new note, so that both write the order, whether or not a second has passed since its last
    # change.
    one = counted(lambda: change(created, *updates(1), note="first"))
    keys = list(downloads())[-31:]
    assert counted(lambda: change(created, *updates(20), note="second")) == one
