"""Guests in reports are those of an e-mail address, in whatever form it was written."""

import pytest
from sqlalchemy import select, update

from app.db.read_pool import fetch
from app.db.session import run_in_transaction
from app.models import ORDERS
from app.services.maintenance import stored_texts
from tests.openapi.test_contract import validator_of
from tests.reports.shops import LONG_EMAIL

pytestmark = pytest.mark.both_databases

FORMS = (
    "Éva@Bücher.example",
    "éva@bücher.example",
    "E\u0301VA@xn--bcher-kva.example",
    "éva@XN--BCHER-KVA.example",
)
KEY = "éva@bücher.example"


def guests(admin):
    """Return the number of orders of each guest."""
    rows = admin.get("/reports/customers").get_json()["customer_reports"]
    return {row["customer"]["email"]: row["orders"] for row in rows}


def order_of(email):
    return {"order": {"status": "completed", "billing_address": {"email": email}}}


def stored_key(app, order_id):
    with app.app_context():
        column = ORDERS.c.billing_email_normalized
        return fetch(select(column).where(ORDERS.c.id == order_id))[0][0]


@pytest.mark.sample(1)
@pytest.mark.parametrize("path", ["/orders", "/wc-api/v2/orders", "/wc-api/v3/orders"])
def test_one_guest_has_several_forms_of_an_address(app, admin, path):
    ids = [admin.post(path, order_of(form)).get_json()["order"]["id"] for form in FORMS]
    assert {stored_key(app, each) for each in ids} == {KEY}
    assert guests(admin) == {KEY: 4}
    changed = {"order": {"billing_address": {"email": "Eva@example.com"}}}
    assert admin.put(f"{path}/{ids[0]}", changed).status_code == 200
    assert stored_key(app, ids[0]) is None
    assert guests(admin) == {KEY: 3, "eva@example.com": 1}
    bulk = {"orders": [{"id": ids[0], "billing_address": {"email": FORMS[0]}}]}
    assert admin.put(f"{path}/bulk", bulk).status_code == 200
    assert guests(admin) == {KEY: 4}
    sales = admin.get("/reports/sales").get_json()["sales"]["totals"]
    assert sales["customers"] == 1


def test_one_guest_of_wc_v3(app, admin):
    for form in (FORMS[0], FORMS[2]):
        data = {"status": "completed", "billing": {"email": form}}
        made = admin.post("/wp-json/wc/v3/orders", data)
        assert made.status_code == 201, made.get_json()
        assert stored_key(app, made.get_json()["id"]) == KEY
    assert guests(admin) == {KEY: 2}


def test_addresses_of_any_length(app, admin):
    """A key has a limited length on PostgreSQL, and the report shows the whole address."""
    with app.app_context():
        for number, local in enumerate(("ada", "É", "é")):
            made = admin.post("/orders", order_of("")).get_json()["order"]
            email = f"{local}{LONG_EMAIL}"
            key = stored_texts.guest_key(email)
            assert key is None if number == 0 else key.startswith("long:")
            values = {"billing_email": email, "billing_email_normalized": key}
            changed = update(ORDERS).where(ORDERS.c.id == made["id"]).values(values)
            run_in_transaction(lambda session, each=changed: session.execute(each))
    assert guests(admin) == {f"ada{LONG_EMAIL}": 1, f"é{LONG_EMAIL}": 2}


def test_a_new_customer_of_a_coupon_has_no_earlier_order_in_another_form(admin, make_coupon):
    make_coupon(code="again")
    admin.post("/orders", order_of(FORMS[1]))
    for email in (FORMS[2], "ö@example.com", "Ö@example.com"):
        order = order_of(email)["order"] | {"coupon_lines": [{"code": "again", "amount": "1.00"}]}
        assert admin.post("/orders", {"order": order}).status_code == 201
    (row,) = admin.get("/reports/coupons").get_json()["coupon_reports"]
    assert (row["orders"], row["new_customers"]) == (3, 1)


def test_addresses_that_a_previous_version_wrote_are_normalized(app, admin):
    """It leaves the column of a new order empty, and that of a changed one as it was."""
    ids = [admin.post("/orders", order_of(form)).get_json()["order"]["id"] for form in FORMS]
    emails = [FORMS[2], "É@mail.xn--bcher-kva.example", "Eva@example.com", FORMS[0]]
    keys = [None, None, KEY, "é@other.example"]
    with app.app_context():
        for order_id, email, key in zip(ids, emails, keys, strict=True):
            values = {"billing_email": email, "billing_email_normalized": key}
            changed = update(ORDERS).where(ORDERS.c.id == order_id).values(values)
            run_in_transaction(lambda session, each=changed: session.execute(each))
        assert admin.get("/reports/customers").status_code == 200
        for _ in range(2):
            stored_texts.normalize(again=True)
            assert guests(admin) == {KEY: 2, "é@mail.bücher.example": 1, "eva@example.com": 1}
    assert [stored_key(app, each) for each in ids] == [KEY, "é@mail.bücher.example", None, KEY]


@pytest.mark.sample(1)
def test_guests_are_as_documented(admin):
    admin.post("/orders", order_of(FORMS[0]))
    document = admin.get("/openapi.json").get_json()
    schema = {"$ref": "#/components/schemas/CustomerReportList"}
    validator_of(document, schema).validate(admin.get("/reports/customers").get_json())
