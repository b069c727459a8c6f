"""A page takes at most eight statements more than the request to the API that shows the same."""

from functools import partial

import pytest
from sqlalchemy import event

from app.db.session import db


@pytest.fixture
def count(app):
    """Return a function: the number of statements of a call."""

    def run(call):
        with app.app_context():
            engines = set(db.engines.values())
        seen = []

        def note(connection, cursor, statement, *_):
            if not statement.startswith(("BEGIN", "COMMIT")):
                seen.append(statement)

        for engine in engines:
            event.listen(engine, "before_cursor_execute", note)
        try:
            call()
        finally:
            for engine in engines:
                event.remove(engine, "before_cursor_execute", note)
        return len(seen)

    return run


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [1, 3])
def test_statements_of_pages(admin, browser, count, number):
    items = [{"name": "Tea", "price": "5", "quantity": 1}]
    hook = {"topics": ["order.*"], "delivery_url": "https://erp.example/"}
    for each in range(number):
        person = {"email": f"a{each}@example.com", "first_name": "Ada"}
        customer = admin.post("/customers", {"customer": person}).json["customer"]["id"]
        named = admin.post("/campaigns", {"campaign": {"name": f"Mailing {each}"}})
        campaign = named.json["campaign"]["id"]
        coupon = {"code": f"code-{each}", "campaign_id": campaign}
        coupon = admin.post("/coupons", {"coupon": coupon}).json["coupon"]["id"]
        generated = {"count": 1, "coupon": {"campaign_id": campaign}}
        admin.post("/coupons/generate", {"generate": generated})
        order = {"customer_id": customer, "line_items": items}
        order = admin.post("/orders", {"order": order}).json["order"]["id"]
        created = admin.post("/webhooks", {"webhook": hook | {"name": f"ERP {each}"}})
        webhook = created.json["webhook"]["id"]
    a_coupon, an_order, a_customer = (
        f"/coupons/{coupon}",
        f"/orders/{order}",
        f"/customers/{customer}",
    )
    a_campaign, of_campaign = f"/campaigns/{campaign}", f"?campaign={campaign}"
    a_webhook, a_key = f"/webhooks/{webhook}", f"/keys/{admin.key.key_id}"
    pages = {
        "/coupons": ["/coupons"],
        a_coupon: [a_coupon, f"/redemptions?coupon_id={coupon}", f"/reports{a_coupon}"],
        "/coupons?state=trash": ["/coupons/trash"],
        f"{a_coupon}/edit": [a_coupon],
        f"{a_coupon}/count": [a_coupon],
        f"{a_coupon}/redeem": [a_coupon],
        f"{a_coupon}/try": [a_coupon],
        "/campaigns": ["/campaigns"],
        a_campaign: [a_campaign, f"/coupons/count{of_campaign}", f"/reports/coupons{of_campaign}",
                     f"/coupons/batches{of_campaign}"],
        f"{a_campaign}/edit": [a_campaign],
        f"/coupons{of_campaign}": [f"/coupons{of_campaign}"],
        "/batches": ["/coupons/batches"],
        "/batches/new": [],
        "/coupons/new": [],
        "/data": [],
        "/sessions": [],
        "/": ["/reports/sales", "/reports/coupons", "/orders"],
        "/orders": ["/orders"],
        "/orders?state=trash": ["/orders/trash"],
        an_order: [an_order],
        f"{an_order}/refund": [an_order],
        "/customers": ["/customers"],
        a_customer: [a_customer, a_customer, f"/orders?customer_id={customer}", "/redemptions",
                     f"{a_customer}/downloads", f"{a_customer}/claim"],
        f"{a_customer}/edit": [a_customer],
        "/webhooks": ["/webhooks"],
        a_webhook: [a_webhook, f"{a_webhook}/deliveries"],
        "/events": ["/events"],
        "/keys": ["/keys"],
        a_key: [a_key],
        "/refusals": ["/reports/refusals"],
        "/search?q=ada": ["/orders?q=ada", "/customers?q=ada", "/coupons?q=ada"],
    }  # fmt: skip
    for page, paths in pages.items():
        browser.get(page)  # what is read once a minute
        of_page = count(partial(browser.get, page))
        of_api = sum(count(partial(admin.get, path)) for path in paths)
        assert of_page <= of_api + 8, (page, of_page, of_api)
