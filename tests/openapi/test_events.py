"""The schema of each event type: of events in the feed, and of deliveries (events 1 and 2)."""

from urllib.parse import urlsplit

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from app.catalog import EVENT_TYPES, EXTENSION
from app.conversions.webhooks import is_delivered
from app.db.session import run_in_transaction
from app.schemas.examples.events import event_data
from app.services.maintenance.import_runs import record_import
from tests.events.feed import feed  # noqa: F401  # a fixture
from tests.metadata.calls import created, updated
from tests.openapi.test_versions import document_of

pytestmark = pytest.mark.one_database

MADE_ELSEWHERE = {
    "webhook.disabled",
    "invitation.created",
    "invitation.accepted",
    "person.erased",
}


FORMATS = FormatChecker(["date-time"])


@FORMATS.checks("uri")
def is_uri(value):
    return not isinstance(value, str) or bool(urlsplit(value).scheme)


def errors_of(document, value, schema):
    """Why a value does not match a schema of a document."""
    whole = {**schema, "components": document["components"]}
    validator = Draft202012Validator(whole, format_checker=FORMATS)
    return [error.message for error in validator.iter_errors(value)]


def make_events(app, admin):
    """Make an event of each built-in type, except those of webhooks and invitations."""
    campaign = created(admin, "campaign", name="Spring")
    updated(admin, "campaign", campaign["id"], budget="5.00")
    assert admin.delete(f"/campaigns/{campaign['id']}").status_code == 200
    coupon = created(admin, "coupon", code="ten", amount="1.00", metadata={"a": 1})
    updated(admin, "coupon", coupon["id"], amount="2.00")
    customer = created(admin, "customer", email="ada@example.com")
    updated(admin, "customer", customer["id"], first_name="Ada")
    line = {"name": "Mug", "price": "4.00"}
    order = created(
        admin,
        "order",
        customer_id=customer["id"],
        line_items=[line],
        coupon_lines=[{"code": "ten"}],
    )
    created(admin, "order", line_items=[line])  # of a guest
    updated(admin, "order", order["id"], status="completed")
    path = f"/orders/{order['id']}"
    response = admin.post(f"{path}/notes", {"order_note": {"note": "Hello"}})
    note = f"{path}/notes/{response.get_json()['order_note']['id']}"
    assert admin.put(note, {"order_note": {"note": "Bye"}}).status_code == 200
    assert admin.delete(note).status_code == 200
    response = admin.post(f"{path}/refunds", {"order_refund": {"amount": "1.00"}})
    refund = f"{path}/refunds/{response.get_json()['order_refund']['id']}"
    assert admin.put(refund, {"order_refund": {"reason": "late"}}).status_code == 200
    assert admin.delete(refund).status_code == 200
    updated(admin, "order", order["id"], status="cancelled")
    for kind, record in (("orders", order), ("coupons", coupon)):
        assert admin.delete(f"/{kind}/{record['id']}").status_code == 200
        assert admin.post(f"/{kind}/{record['id']}/restore").status_code == 200
    other = created(admin, "customer", email="ada.lovelace@example.com")
    body = {"merge": {"customer_id": other["id"]}}
    assert admin.post(f"/customers/{customer['id']}/merge", body).status_code == 200
    assert admin.delete(f"/customers/{customer['id']}").status_code == 200
    key = admin.post("/keys", {"key": {}}).get_json()["key"]
    assert admin.put(f"/keys/{key['id']}", {"key": {"resources": ["events"]}}).status_code == 200
    assert admin.post(f"/keys/{key['id']}/rotate").status_code == 200
    assert admin.delete(f"/keys/{key['id']}").status_code == 200
    assert admin.post("/coupons/generate", {"generate": {"count": 2}}).status_code == 201
    with app.app_context():
        run_in_transaction(
            lambda session: record_import(session, "demo", {"customers": 3}, created=3)
        )


def test_events_of_the_feed_match_their_schemas(app, admin, feed):  # noqa: F811  # a fixture
    document = document_of(app)
    make_events(app, admin)
    events = feed()
    missing = EVENT_TYPES.keys() - {event["type"] for event in events}
    assert missing == MADE_ELSEWHERE, "make_events leads to each other type"
    for event in events:
        schema = {"$ref": "#/components/schemas/Event"}
        assert errors_of(document, event, schema) == [], event["type"]
        if not is_delivered(event["type"]):
            continue
        # What a receiver gets has the same data.
        body = {"type": event["type"], "timestamp": event["created_at"], "data": event["data"]}
        (content,) = content_of(document, event["type"])
        assert errors_of(document, body, content["schema"]) == [], event["type"]
        wrong = {**body, "data": {"unknown": {}}}
        assert errors_of(document, wrong, content["schema"]) != []


def content_of(document, name):
    assert document["webhooks"][name] == {"$ref": f"#/components/pathItems/{name}"}
    operation = document["components"]["pathItems"][name]["post"]
    return operation["requestBody"]["content"].values()


def test_every_delivery_has_an_example_that_matches(app):
    document = document_of(app)
    assert set(document["webhooks"]) == {*filter(is_delivered, EVENT_TYPES), "ping"}
    for name, item in document["components"]["pathItems"].items():
        (content,) = content_of(document, name)
        assert content["example"]["type"] == name
        assert item["post"]["tags"] == ["Webhook deliveries"]
        if name not in {"webhook.disabled", "ping"}:
            assert content["example"]["data"] == event_data(name)
        assert errors_of(document, content["example"], content["schema"]) == [], name


def test_constants_are_enums_too(app):
    """Some generators know only one of both."""
    schemas = document_of(app)["components"]["schemas"]
    for name in ("CouponCreatedEvent", "CouponCreatedPayload", "PingPayload"):
        constant = schemas[name]["properties"]["type"]
        assert constant["enum"] == [constant["const"]]


def test_types_of_plugins_are_in_the_union(make_app):
    app = make_app()
    app.extensions[EXTENSION].add_event_type("gift_card.sent", "A gift card was sent.")
    document = document_of(app)
    union = document["components"]["schemas"]["Event"]
    reference = "#/components/schemas/PluginEvent"
    assert union["discriminator"]["mapping"]["gift_card.sent"] == reference
    event = {
        "id": 1, "type": "gift_card.sent", "resource": "gift_card", "resource_id": 1,
        "created_at": "2026-11-20T09:38:00Z", "data": {"gift_card": {"id": 1}},
        "request_id": None, "user_id": None,
    }  # fmt: skip
    assert errors_of(document, event, {"$ref": "#/components/schemas/Event"}) == []
    assert errors_of(document, {**event, "type": "gift_card.lost"}, {"$ref": reference}) != []
    assert (
        document["components"]["pathItems"]["gift_card.sent"]["post"]["summary"]
        == "A gift card was sent"
    )


@pytest.mark.slow
def test_version_30_has_no_webhooks(app_with):
    document = document_of(app_with(SHOP_OPENAPI_VERSION="3.0.3"))
    assert "webhooks" not in document
    assert len(document["components"]["schemas"]["Event"]["oneOf"]) == len(EVENT_TYPES)
    schema = document["components"]["schemas"]["CouponCreatedEvent"]["properties"]["type"]
    assert schema == {"description": "What happened.", "type": "string", "enum": ["coupon.created"]}


def test_legacy_documents_have_no_events(app, admin):
    for version in ("v2", "v3"):
        document = admin.get(f"/wc-api/{version}/openapi.json").get_json()
        assert "webhooks" not in document
        assert "Event" not in document["components"]["schemas"]
