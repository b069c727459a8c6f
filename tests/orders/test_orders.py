"""Orders: decisions 7 and 8, spec 2.3 and the orders and downloads of a customer (spec 4.2)."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from app.api.representations import OrderSerializer
from app.auth.principals import Capability, Principal
from app.errors.codes import ERRORS
from app.services.orders import queries as order_queries
from tests.api_client import without_key
from tests.factories import (
    LINE_ITEM,
    NO_SHIPPING_TAX,
    ORIGIN,
    SHIPPING_LINE,
    TIMESTAMP,
    insert_download,
    insert_order,
)

BILLING = ["first_name", "last_name", "company", "address_1", "address_2", "city", "state", "postcode", "country", "email", "phone"]  # fmt: skip
SHIPPING = BILLING[:9]
GUEST_BILLING = dict.fromkeys(BILLING, "") | {
    "first_name": "Gast",
    "last_name": "Müller",
    "email": "guest@example.com",
}
GUEST_SHIPPING = dict.fromkeys(SHIPPING, "") | {"city": "Köln"}
GUEST = {
    "id": 0,
    "email": "guest@example.com",
    "first_name": "Gast",
    "last_name": "Müller",
    "billing_address": GUEST_BILLING,
    "shipping_address": GUEST_SHIPPING,
}


def order_body(order_id, **over):
    """An order of factories.ORDER as the API shows it."""
    return {
        "id": order_id,
        "order_number": "1001",
        "order_key": f"order_{order_id}",
        "created_at": "2026-01-02T03:04:05Z",
        "updated_at": "2026-01-02T03:04:05Z",
        "completed_at": None,
        "status": "completed",
        "currency": "EUR",
        "total": "11.00",
        "subtotal": "8.00",
        "total_line_items_quantity": 2,
        "total_tax": "2.00",
        "total_shipping": "1.00",
        "cart_tax": "1.50",
        "shipping_tax": "0.50",
        "total_discount": "0.00",
        "shipping_methods": "Flat rate",
        "payment_details": {"method_id": "bacs", "method_title": "Bank transfer", "paid": True},
        "billing_address": GUEST_BILLING,
        "shipping_address": GUEST_SHIPPING,
        "note": "",
        "customer_ip": "192.0.2.1",
        "customer_user_agent": "Mozilla/5.0",
        "customer_id": 0,
        "line_items": [LINE_ITEM | {"variation_id": 0, "taxes": []}],
        "shipping_lines": [SHIPPING_LINE | NO_SHIPPING_TAX],
        "tax_lines": [],
        "fee_lines": [],
        "coupon_lines": [],
        **ORIGIN,
        "customer": GUEST,
    } | over


def refused(response):
    """Return the status and the code of an error response, and check its message."""
    (entry,) = response.get_json()["errors"]
    assert entry["message"] == ERRORS[entry["code"]][1]
    return response.status_code, entry["code"]


def ids(response):
    return [order["id"] for order in response.get_json()["orders"]]


# --- read ---


def test_order_of_guest_is_complete_with_customer_last(admin, app):
    order_id = insert_order(app)
    response = admin.get(f"/orders/{order_id}")
    assert response.get_json() == {"order": order_body(order_id)}
    assert list(response.get_json()["order"]) == list(order_body(order_id))


def test_order_of_account_has_the_customer_as_read_by_id(admin, app, make_customer):
    customer = make_customer(first_name="Ada", billing_address={"city": "London"})
    order_id = insert_order(app, customer_id=customer["id"])
    expected = admin.get(f"/customers/{customer['id']}").get_json()["customer"]
    assert expected["orders_count"] == 1
    assert expected["total_spent"] == "11.00"
    body = order_body(order_id, customer_id=customer["id"], customer=expected)
    assert admin.get(f"/orders/{order_id}").get_json() == {"order": body}
    assert admin.get("/orders").get_json() == {"orders": [body]}
    assert admin.get(f"/customers/{customer['id']}/orders").get_json() == {"orders": [body]}


@pytest.mark.both_databases
@pytest.mark.parametrize("customer_id", [2**63 - 1, 2**63, 10**30])
def test_orders_of_an_id_beyond_64_bits(admin, app, customer_id):
    insert_order(app)
    query = {"filter[customer_id]": str(customer_id)}
    assert admin.get("/orders", query).get_json() == {"orders": []}
    assert admin.get("/orders/count", query).get_json() == {"count": 0}


@pytest.mark.parametrize("order_id", [1, 0, 10**30])
def test_order_unknown(admin, order_id):
    assert refused(admin.get(f"/orders/{order_id}")) == (404, "shop_api_invalid_order_id")


def test_order_statuses(admin):
    assert admin.get("/orders/statuses").get_json() == {
        "order_statuses": {
            "pending": "Pending payment",
            "processing": "Processing",
            "on-hold": "On hold",
            "completed": "Completed",
            "cancelled": "Cancelled",
            "refunded": "Refunded",
            "failed": "Failed",
        }
    }


def test_order_for_caller_without_capability(client_for, app):
    order_id = insert_order(app)
    customer = client_for("customer")
    assert refused(customer.get(f"/orders/{order_id}")) == (401, "shop_api_user_cannot_read_order")
    assert refused(customer.get("/orders/7000")) == (404, "shop_api_invalid_order_id")
    assert customer.get("/orders/statuses").status_code == 200


def test_order_customer_is_complete_without_the_capability_to_list(app, admin, make_customer):
    """decisions 5: a role that reads orders but lists no users still sees who ordered."""
    customer = make_customer()
    order_id = insert_order(app, customer_id=customer["id"])
    reader = Principal(1, frozenset({Capability.READ_PRIVATE_SHOP_ORDERS}))
    with app.test_request_context():
        serializer = OrderSerializer(None)
        row = order_queries.get_order(reader, order_id, serializer.columns)
        (order,) = serializer.rows([row])
    assert order["customer"]["username"] == customer["username"]


# --- lists ---


@pytest.mark.parametrize("few", [pytest.param(0, marks=pytest.mark.both_databases), 1000])
def test_orders_filters(admin, app, make_customer, monkeypatch, few):
    """The same whether few or many are found: they are counted and sorted in other ways."""
    monkeypatch.setattr("app.services.common.plans.FEW", few)
    customer = make_customer()
    old = insert_order(app, status="failed", created_at=TIMESTAMP - timedelta(days=9))
    own = insert_order(app, customer_id=customer["id"], total=Decimal("5.00"))
    guest = insert_order(
        app,
        status="pending",
        search_text="1007\x1fgast muller",
        updated_at=TIMESTAMP + timedelta(1),
    )
    table = {
        (): [guest, own, old],
        (("filter[order]", "ASC"),): [old, own, guest],
        (("filter[status]", "failed"),): [old],
        (("filter[status]", "failed, pending"),): [guest, old],
        (("filter[status]", ",failed,, pending,"),): [guest, old],
        (("filter[status]", " , "),): [guest, own, old],
        (("filter[customer_id]", str(customer["id"])),): [own],
        (("filter[customer_id]", "0"),): [guest, old],
        (("filter[created_at_min]", "2026-01-01"),): [guest, own],
        (("filter[created_at_max]", "2026-01-01"),): [old],
        (("filter[updated_at_min]", "2026-01-03"),): [guest],
        (("filter[q]", "MÜLLER"),): [guest],
        (("filter[q]", "MÜLLER"), ("filter[status]", "pending")): [guest],
        (("filter[q]", "MÜLLER"), ("filter[status]", "failed")): [],
        (("filter[q]", "müll"), ("filter[customer_id]", "0")): [guest],
        (("filter[q]", "mü"),): [guest],
        (("filter[q]", "nobody"),): [],
        (("filter[orderby]", "total"),): [guest, old, own],
        (("filter[orderby]", "total"), ("filter[order]", "asc")): [own, old, guest],
        (("filter[orderby]", "id"),): [guest, own, old],
        (("filter[orderby]", "modified"),): [guest, own, old],
        (("filter[limit]", "2"), ("page", "2")): [old],
        (("filter[limit]", "-1"),): [guest, own, old],
        (("filter[offset]", "1"),): [own, old],
    }
    assert {query: ids(admin.get("/orders", dict(query))) for query in table} == table
    counts = {query: admin.get("/orders/count", dict(query)).get_json() for query in table}
    paged = {"filter[limit]", "filter[offset]"}
    expected = {
        query: {"count": 3 if paged & dict(query).keys() else len(found)}
        for query, found in table.items()
    }
    assert counts == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("filter[status]", "bogus"),
        ("filter[customer_id]", "-1"),
        ("filter[customer_id]", "x"),
    ],
)
def test_orders_reject_wrong_parameters(admin, name, value):
    response = admin.get("/orders", {name: value})
    (entry,) = response.get_json()["errors"]
    assert (response.status_code, entry["code"], entry["param"]) == (
        400,
        "shop_api_invalid_param",
        name,
    )


@pytest.mark.both_databases
def test_orders_statement_count_does_not_grow(admin, app, make_customer, statements):
    counts = []
    for _ in range(2):
        insert_order(app, customer_id=make_customer()["id"])
        insert_order(app, customer_id=make_customer()["id"])
        statements.clear()
        assert admin.get("/orders").status_code == 200
        counts.append(len(without_key(statements)))
        statements.clear()
        assert admin.get("/orders", {"fields": "id,total"}).status_code == 200
        counts.append(len(without_key(statements)))
    # the orders with their total; and one more for all customers
    assert counts == [2, 1, 2, 1]
    statements.clear()
    assert admin.get("/orders", {"status": "completed", "fields": "id"}).status_code == 200
    # No index has a status and all that is shown, so the IDs are read first.
    assert len(without_key(statements)) == 3


# --- fields ---


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("id", {"id": 7}),
        ("id,customer_id", {"id": 7, "customer_id": 0}),
        ("customer", {"customer": GUEST}),
        ("customer.email,id", {"id": 7, "customer": {"email": "guest@example.com"}}),
        ("line_items.name", {"line_items": [{"name": "Teapot"}]}),
        ("payment_details.paid, total", {"total": "11.00", "payment_details": {"paid": True}}),
        ("billing_address.city", {"billing_address": {"city": ""}}),
        ("total_tax,total_line_items_quantity", {"total_line_items_quantity": 2, "total_tax": "2.00"}),
        ("nothing", {}),
        ("id.x", {}),
    ],
)  # fmt: skip
def test_order_fields(admin, app, fields, expected):
    order_id = insert_order(app)
    expected = {k: order_id if k == "id" else v for k, v in expected.items()}
    assert admin.get(f"/orders/{order_id}", {"fields": fields}).get_json() == {"order": expected}
    assert admin.get("/orders", {"fields": fields}).get_json() == {"orders": [expected]}


def test_order_fields_narrow_an_account_too(admin, app, make_customer):
    customer = make_customer(billing_address={"city": "Oslo"})
    order_id = insert_order(app, customer_id=customer["id"])
    fields = {"fields": "customer.billing_address,customer.id"}
    kept = {key: customer[key] for key in ("id", "billing_address")}
    assert admin.get(f"/orders/{order_id}", fields).get_json() == {"order": {"customer": kept}}
    assert kept["billing_address"]["city"] == "Oslo"


# --- a customer's ---


@pytest.mark.both_databases
def test_customer_orders_are_all_oldest_first(admin, app, make_customer):
    customer = make_customer()["id"]
    young = insert_order(app, customer_id=customer, status="failed")
    old = insert_order(app, customer_id=customer, created_at=TIMESTAMP - timedelta(days=1))
    insert_order(app)
    assert ids(admin.get(f"/customers/{customer}/orders")) == [old, young]
    fields = admin.get(f"/customers/{customer}/orders", {"fields": "id,customer.id"}).get_json()
    assert fields == {
        "orders": [
            {"id": old, "customer": {"id": customer}},
            {"id": young, "customer": {"id": customer}},
        ]
    }


def test_customer_without_orders_or_downloads(admin, make_customer):
    customer = make_customer()["id"]
    assert admin.get(f"/customers/{customer}/orders").get_json() == {"orders": []}
    assert admin.get(f"/customers/{customer}/downloads").get_json() == {"downloads": {}}


@pytest.mark.parametrize("part", ["orders", "downloads"])
def test_customer_orders_and_downloads_order_of_checks(client_for, make_customer, part):
    customer = make_customer()["id"]
    nobody = client_for("subscriber")
    assert refused(nobody.get(f"/customers/0/{part}")) == (404, "shop_api_invalid_customer_id")
    assert refused(nobody.get(f"/customers/99999/{part}")) == (404, "shop_api_invalid_customer")
    answer = refused(nobody.get(f"/customers/{customer}/{part}"))
    assert answer == (401, "shop_api_user_cannot_read_customer")


@pytest.mark.both_databases
def test_customer_downloads_are_the_available_ones(admin, app, make_customer):
    customer = make_customer()["id"]
    order = insert_order(app, customer_id=customer)
    future = datetime.now(UTC).replace(microsecond=0) + timedelta(days=1)
    unlimited = insert_download(app, order)
    limited = insert_download(app, order, downloads_remaining=2, access_expires=future)
    insert_download(app, order, downloads_remaining=0)
    insert_download(app, order, access_expires=TIMESTAMP)
    insert_download(app, insert_order(app, customer_id=customer, status="cancelled"))
    insert_download(app, insert_order(app))
    common = {
        "download_url": "https://shop.example/?download_file=3",
        "download_id": "file-3",
        "product_id": 3,
        "download_name": "E-book",
        "order_id": order,
        "order_key": f"order_{order}",
    }
    file = {"file": {"name": "E-book", "file": "https://shop.example/files/3.pdf"}}
    assert admin.get(f"/customers/{customer}/downloads").get_json() == {
        "downloads": {
            str(unlimited): common | {"downloads_remaining": "", "access_expires": None} | file,
            str(limited): common
            | {
                "downloads_remaining": "2",
                "access_expires": f"{future.replace(tzinfo=None).isoformat()}Z",
            }
            | file,
        }
    }
    fields = admin.get(f"/customers/{customer}/downloads", {"fields": "order_id"}).get_json()
    assert fields["downloads"][str(limited)] == {"order_id": order}


def test_customer_deletion_leaves_guest_orders(admin, app, make_customer):
    customer = make_customer(first_name="Ada")["id"]
    order_id = insert_order(app, customer_id=customer)
    assert admin.delete(f"/customers/{customer}").status_code == 200
    assert admin.get(f"/orders/{order_id}").get_json() == {"order": order_body(order_id)}
