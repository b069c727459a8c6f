"""The messages of forms: each error that a service can raise, in words of the form (admin 5)."""

import ast
import re
from pathlib import Path
from string import Formatter

import pytest
from flask import g
from sqlalchemy import func, select

import app as package
from app.api.view_docs import documented
from app.auth.principals import Capability, Principal
from app.db.read_pool import fetch
from app.db.session import db
from app.errors import ERRORS, InvalidOrderItems, Sentence, ShopError
from app.plugins.admin import NOUNS, html
from app.plugins.admin.calls import operations
from app.plugins.admin.form_fields import specs_of
from app.plugins.admin.forms import Form
from app.plugins.admin.nouns import coupon_uses
from app.pricing.evaluation import REASONS, Reason
from app.schemas.base import Base
from app.schemas.coupons.cart import CartSchema
from app.schemas.fields.input import InputPart
from app.schemas.orders.refund import OrderRefundCreate
from app.schemas.redemptions import RedemptionCreate
from app.services.coupons.refusals import CouponRefused

SERVICES = Path(package.__file__).parent / "services"
API_NAME = re.compile(r"[a-z]+_[a-z_]+|\w\.\w|filter\[|\bsubtotal|[{}]")


def forms():
    """Each form of the pages: the operation, the schema of its body, its fields and their key."""
    for noun in NOUNS.values():
        for verb, schema in (("create", noun.create_schema), ("update", noun.update_schema)):
            if schema:
                specs = noun.form_specs(None, is_new=verb == "create")
                key = (verb == "create" and noun.create_key) or noun.name
                yield f"{verb}_{noun.operation}", schema, specs, key
    for name, schema, specs, key in (
        ("create_order_refund", OrderRefundCreate, specs_of(OrderRefundCreate), "order_refund"),
        ("create_redemption", RedemptionCreate, specs_of(RedemptionCreate), "redemption"),
        ("update_coupon", coupon_uses.CouponCount, specs_of(coupon_uses.CouponCount), "coupon"),
        ("evaluate_coupons", CartSchema, coupon_uses._specs(2), "cart"),
    ):
        yield name, schema, specs, key


def params(schema, prefix):
    """The names of the fields of a body in errors, with those of objects and of items of lists."""
    for name, field in schema._declared_fields.items():
        yield f"{prefix}{name}"
        part = getattr(field, "nested", None) or getattr(
            getattr(field, "inner", None), "nested", None
        )
        if isinstance(part, type) and issubclass(part, Base):
            place = "." if isinstance(field, InputPart) else "[0]."
            yield from params(part, f"{prefix}{name}{place}")


def reasons():
    """The sentences of services with the names of fields, as they state reasons."""
    found = set()
    for module in SERVICES.rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text())):
            text = node.value if isinstance(node, ast.Constant) else ""
            is_reason = isinstance(text, str) and re.match("(needs|must|cannot|is) ", text)
            if is_reason and re.fullmatch(r"[^\n]{5,80}\.", text):
                found.add(Sentence(text, 7, 8) if "{" in text else text)
    return found


@pytest.fixture
def session(app, admin):
    """A request of a page of an administrator."""
    with app.test_request_context():
        g.principal = Principal(admin.key.user_id, frozenset(Capability))
        yield


def noted(specs, key, error):
    form = Form(specs, key)
    form.note(error)
    return form


def test_errors_name_no_parameters(session):
    for name, _, specs, key in forms():
        for code in documented(operations()[name].view, "codes", {}):
            details = {each[1]: "x" for each in Formatter().parse(ERRORS[code][1]) if each[1]}
            error = ShopError(code, **details)
            # A form always sends its body, and other errors have a page of their own.
            if error.status in {400, 401, 409, 413, 422} and not code.endswith("_data"):
                (text,) = noted(specs, key, error).errors.values()
                assert not API_NAME.search(text), (name, code, text)


def test_an_error_of_a_field_that_the_form_lacks_names_it(session):
    for name, schema, specs, key in forms():
        names = {each.name for each in specs}
        for param in params(schema, f"{key}."):
            error = InvalidOrderItems({param: "must not be negative."})
            ((place, text),) = noted(specs, key, error).errors.items()
            last = param.rpartition(".")[2]
            assert place in names | {""}
            assert not API_NAME.search(text), (name, param, text)
            if place.rpartition(".")[2] != last:
                words = last.replace("_", " ").capitalize()
                assert text == f"{words}: Must not be negative.", (name, param)


@pytest.mark.one_database
def test_reasons_name_no_parameters(session):
    each_reason = reasons()
    for name, _, specs, key in forms():
        for reason in each_reason:
            form = noted(specs, key, InvalidOrderItems({f"{key}.line_items[0]": reason}))
            ((_, text),) = form.errors.items()
            assert not API_NAME.search(text), (name, reason, text)


@pytest.mark.parametrize(
    ("language", "reasons"),
    [
        ("en", "The coupon expired on 7. The coupon cannot be combined with the coupon {}."),
        (
            "de",
            "Der Gutschein ist am 7 abgelaufen. Der Gutschein ist nicht mit dem Gutschein {} kombinierbar.",
        ),
    ],
)
@pytest.mark.parametrize("code", ["big_spring_sale", "usage_limit", "product_id", "is required."])
def test_messages_keep_the_codes_of_coupons(session, language, reasons, code):
    values = {"expired": {"date": "7"}, "individual_use": {"code": code}}
    found = [Reason(each, Sentence(REASONS[each], **values[each])) for each in values]
    error = CouponRefused("a_b `c_d`", found, "order.coupon_lines[0].code")
    (specs,) = (specs for name, _, specs, _ in forms() if name == "create_order")
    g.admin_language = language
    (shown,) = noted(specs, "order", error).errors.values()
    assert "a_b `c_d`" in shown
    assert shown.endswith(reasons.format(code))
    assert shown.endswith(html.of_api(error.sentence()))
    assert str(error).endswith(f"combined with the coupon {code}.")


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("needs the metadata erp_id of blue_shirt.", "needs the metadata erp_id of blue_shirt."),
        ("knows no 'my customer_id of' it.", "knows no 'my customer_id of' it."),
        (
            "needs `payment_method` or a customer_id.",
            "needs “Payment method” or a “Customer number”.",
        ),
        ("must be one of erp_id, a_b.", "must be one of erp_id, a_b."),
        ("requires metadata_key.", "requires “Metadata key”."),
    ],
)
def test_only_names_of_the_api_become_words(session, reason, text):
    (specs,) = (specs for name, _, specs, _ in forms() if name == "create_order")
    form = noted(specs, "order", ShopError("shop_api_cannot_create_order", reason=reason))
    assert form.errors == {"": f"The order cannot be created: {text}"}


LATE = "2020-01-01T00:00"
REQUIRED = [
    ("/coupons/new", {"code": "", "amount": "x", "campaign_id": "99"}, {"code", "amount", "campaign_id"}),
    ("/coupons/new", {"code": "taken", "amount": "x", "tags": "-1", "campaign_id": "99"},
     {"code", "amount", "tags", "campaign_id"}),
    ("/customers/new", {"email": "", "username": "grace"}, {"email", "username"}),
    ("/customers/new", {"email": "x", "username": "a/b"}, {"email", "username"}),
    ("/customers/new", {"email": "grace@example.com", "username": "grace"}, {"email", "username"}),
    ("/batches/new", {"count": "", "pattern": "-"}, {"count", "pattern"}),
    ("/batches/new", {"count": "x", "coupon.amount": "x", "coupon.campaign_id": "99"},
     {"count", "coupon.amount", "coupon.campaign_id"}),
    ("/campaigns/new", {"name": "", "starts_at": "2031-01-02T00:00", "ends_at": "2031-01-01T00:00"},
     {"name", "ends_at"}),
    ("/webhooks/new", {"delivery_url": "", "topics": "coupon.other"}, {"delivery_url", "topics"}),
    ("/webhooks/new", {"delivery_url": "ftp://x", "topics": "coupon.other"}, {"delivery_url", "topics"}),
    ("/webhooks/new", {"topics": "", "delivery_url": "http://127.0.0.1:80/"}, {"delivery_url", "topics"}),
    ("/orders/new", {"customer_id": "99", "line_items.-1.name": "Cup", "line_items.-1.quantity": "0",
                     "line_items.-1.price": "1"}, {"customer_id", "line_items.-1.quantity"}),
    ("/invitations/new", {"login": "", "expires_at": LATE}, {"login", "expires_at"}),
    ("/invitations/new", {"login": "a/b", "expires_at": LATE}, {"login", "expires_at"}),
]  # fmt: skip
"""Forms with a wrong value of a required field and others: the fields with an error."""


@pytest.mark.both_databases
def test_a_form_shows_all_errors_behind_a_wrong_required_value_at_once(app, admin, browser):
    admin.post("/coupons", {"coupon": {"code": "taken"}})
    customer = {"email": "grace@example.com", "username": "grace"}
    assert admin.post("/customers", {"customer": customer}).status_code == 201

    def number_of_rows():
        with app.app_context():
            counts = {name: select(func.count()).select_from(each) for name, each in tables.items()}
            return {name: fetch(count)[0][0] for name, count in counts.items()}

    tables = db.metadata.tables
    before = number_of_rows()
    for path, values, fields in REQUIRED:
        page = browser.submit(path, "_form", **values)
        assert page.status == 400, (path, values)
        found = {*re.findall(r'href="#field-([^"]+)"', page.html)}
        assert found == {each.replace(".", "-") for each in fields}, (path, values)
    assert number_of_rows() == before


@pytest.mark.parametrize(
    ("path", "body", "name"),
    [
        ("/orders", {"order": {"line_items": [{"name": "Tea", "price": "5"}]}}, "note"),
        ("/customers", {"customer": {"email": "ada@example.com"}}, "first_name"),
        ("/campaigns", {"campaign": {"name": "Spring"}}, "name"),
    ],
)
def test_what_was_typed_outlives_rights_and_records(admin, browser, new_browser, path, body, name):
    ((_, record),) = admin.post(path, body).json.items()
    path = f"{path}/{record['id']}"
    form = browser.get(f"{path}/edit").form("_shown") | {name: "Grace"}
    other = new_browser()
    change = {"key": {"permission": "read"}}
    assert admin.put(f"/keys/{other.key.key_id}", change).status_code == 200
    facts = f"What you typed {html.words(name)} Grace shop_api_"  # and no field that is unchanged
    page = other.post(f"{path}/edit", form)
    assert (page.status, facts in page.text) == (401, True), page.text
    page = other.post(f"{path}/edit", form | {name: "<script>alert(1)"})
    assert "&lt;script&gt;alert(1)" in page.html
    assert admin.delete(path).status_code == 200
    page = browser.post(f"{path}/edit", form)
    assert page.status in {400, 404}
    assert facts in page.text or 'value="Grace"' in page.html


def test_only_a_form_of_a_page_shows_what_was_typed(browser):
    def kept(shown, path="/orders/1/edit", site="same-origin"):
        form = {"note": "Grace", "_shown": shown}
        page = browser.post(path, form, headers={"Sec-Fetch-Site": site})
        return page.status, "Grace" in page.text

    shown = '{"note": ""}'
    assert kept(shown) == (404, True)
    for other in ("[", "3", '["note"]', '{"note": []}', '{"a": ""}', "[" * 100_000):
        assert kept(other)[1] is (other == '{"note": []}'), other
    assert kept(shown, site="same-site") == (403, False)
    assert kept(shown, path="/nothing", site="same-site") == (404, False)
