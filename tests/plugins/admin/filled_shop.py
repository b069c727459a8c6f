"""A shop with a record of each kind, in which each text that people can supply is given."""

import io

from sqlalchemy import func

from app.db.session import db, run_in_transaction
from app.models import WEBHOOK_DELIVERIES
from app.services.coupons.refusals import refusals_of


def address(text):
    names = ("first_name", "last_name", "company", "address_1", "address_2", "city", "state",
             "postcode")  # fmt: skip
    return dict.fromkeys(names, text)


def fill(app, admin, browser, text):
    """Create the records, and return their IDs by the variables of addresses.

    Args:
        text: returns the text of a kind of records, such as ``coupon``.
    """

    def create(path, key, **values):
        response = admin.post(path, {key: values})
        assert response.status_code == 201, response.json
        return next(iter(response.json.values()))["id"]

    def of(kind, *names):
        return dict.fromkeys(names, text(kind)) | {"metadata": {text(kind): text(kind)}}

    coupon = create("/coupons", "coupon", amount="5", **of("coupon", "code", "description"))
    billing, shipping = address(text("customer")), address(text("customer"))
    customer = create(
        "/customers", "customer", email="ada@example.com", username="ada", billing_address=billing,
        shipping_address=shipping, **of("customer", "first_name", "last_name"),
    )  # fmt: skip
    words = text("order")
    meta = [{"key": words, "label": words, "value": words}]
    file = {"name": words, "file": "https://shop.example/book.pdf"}
    book = {"product_id": 7, "download_id": "book", "download_name": words, "file": file}
    order = create(
        "/orders", "order", customer_id=customer, status="completed", billing_address=address(words),
        shipping_address=address(words), customer_user_agent=words, created_via=words,
        line_items=[{"name": words, "product_id": 7, "price": "40", "quantity": 2, "sku": words,
                     "meta": meta}],
        fee_lines=[{"title": words, "total": "1"}],
        shipping_lines=[{"method_id": "flat", "method_title": words, "total": "1"}],
        payment_details={"method_id": words, "method_title": words, "paid": True},
        download_permissions=[{**book, "download_url": "https://shop.example/x"}],
        **of("order", "note", "transaction_id"),
    )  # fmt: skip
    create(f"/orders/{order}/notes", "order_note", note=words)
    refund = create(f"/orders/{order}/refunds", "order_refund", amount="1", reason=words)
    use = create("/redemptions", "redemption", code=text("coupon"), reference=text("use"))
    campaign = create("/campaigns", "campaign", name=text("campaign"), tags=["spring"])
    prefix = text("batch").replace(" ", "-").lower()
    batch = create(
        "/coupons/generate",
        "generate",
        count=2,
        prefix=prefix,
        name=text("batch"),
        coupon={"campaign_id": campaign},
    )
    webhook = create("/webhooks", "webhook", name=text("webhook"), topics=["*"],
                     delivery_url="https://erp.example/hooks")  # fmt: skip
    key = create("/keys", "key", description=text("key"), permission="read")
    browser.submit("/invitations/new", "login", login="grace")
    browser.post(f"/keys/{key}/link")
    admin.post("/coupons/evaluate", {"cart": {"coupons": [text("refusal")], "items": []}})
    refusals_of(app).flush()
    name, cells = f"{text('upload')}.csv", f'code,type\n"{text("upload")}","{text("upload")}"\n'
    sent = browser.post(
        "/data/upload",
        {"kind": "coupons", "on_conflict": "fail", "file": (io.BytesIO(cells.encode()), name)},
        content_type="multipart/form-data",
    )  # fmt: skip
    events = admin.get("/events").json["events"]
    attempt = {"at": events[0]["created_at"], "status": 500, "error": text("delivery"),
               "duration_ms": 5}  # fmt: skip
    delivery = {
        "webhook_id": webhook, "event_id": events[0]["id"], "resource": "coupon",
        "resource_id": coupon, "state": "failed", "attempts": [attempt], "attempt_count": 1,
        "created_at": func.now(), "request_headers": {"X-Name": text("delivery")},
        "response_headers": {"X-Name": text("delivery")}, "response_body": text("delivery"),
    }  # fmt: skip
    with app.app_context():
        stored = WEBHOOK_DELIVERIES.insert().values(delivery).returning(WEBHOOK_DELIVERIES.c.id)
        delivery = run_in_transaction(lambda session: session.scalar(stored))
    return {
        "coupon_id": coupon, "customer_id": customer, "order_id": order, "refund_id": refund,
        "redemption_id": use, "batch_id": batch, "webhook_id": webhook, "key_id": key,
        "delivery_id": delivery, "event_id": events[0]["id"],
        "campaign_id": campaign, "import_id": sent.location.rpartition("/")[2], "kind": "orders",
    }  # fmt: skip


def replace_everywhere(app, word, text):
    """Replace a word in each text and each JSON value that a SQLite database stores."""
    in_json = text.replace("\\", "\\\\").replace('"', '\\"')
    with app.app_context(), db.engine.begin() as connection:
        for table in db.metadata.sorted_tables:
            for column in table.c:
                if column.computed is None:
                    connection.exec_driver_sql(
                        f'UPDATE "{table.name}" SET "{column.name}" = replace("{column.name}", ?1, '
                        f"""CASE WHEN "{column.name}" GLOB '[[{{\"]*' THEN ?2 ELSE ?3 END) """
                        f"""WHERE typeof("{column.name}") = 'text'""",
                        (word, in_json, text),
                    )
