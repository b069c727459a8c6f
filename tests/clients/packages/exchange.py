"""What a user of shop-api-client does. Run by tests/openapi/test_packages.py, and type-checked."""

import json
import os

from shop_api_client import RejectedError, connect, doc_url, follow_events, pages, verify_webhook
from shop_api_client.generated.api.coupons import create_coupon, list_coupons
from shop_api_client.generated.api.events import list_events
from shop_api_client.generated.models import (
    CouponCreate,
    CouponCreatedEvent,
    CouponCreateRequest,
    CouponResponse,
    ErrorResponse,
    OrderCreatedPayload,
)
from standardwebhooks import WebhookVerificationError

with connect() as shop:
    for number in range(5):
        body = CouponCreateRequest(coupon=CouponCreate(code=f"summer-{number}"))
        created = create_coupon.sync_detailed(client=shop, body=body)
        assert isinstance(created.parsed, CouponResponse), created
        # The proxy has lost the first response, and rejected the next request once.
        assert created.headers.get("Idempotent-Replayed") == ("true" if number == 0 else None)

    rejected = create_coupon.sync_detailed(client=shop, body=body)
    assert isinstance(rejected.parsed, ErrorResponse)
    assert rejected.parsed.errors[0].code == "shop_api_coupon_code_already_exists"
    page = "/docs/guides/errors.md#shop_api_coupon_code_already_exists"
    assert doc_url(rejected.headers) == page

    found = list(pages(list_coupons.sync_detailed, client=shop, q="summer", fields=""))
    assert [len(page.coupons) for page in found] == [2, 2, 1]
    codes = [coupon.code for page in found for coupon in page.coupons]
    assert sorted(codes) == [f"summer-{number}" for number in range(5)]

    events = list(follow_events(list_events.sync_detailed, client=shop, after=0, limit=2))
    new = [event for event in events if isinstance(event, CouponCreatedEvent)]
    assert [event.data.coupon.code for event in new] == [f"summer-{number}" for number in range(5)]

with connect(consumer_secret="cs_wrong") as stranger:
    try:
        list(pages(list_coupons.sync_detailed, client=stranger))
        status, described = 0, None
    except RejectedError as error:
        status, described = error.status, error.doc_url
    assert status == 401
    assert described == "/docs/guides/errors.md#shop_api_authentication_error"

headers, text, secret = json.loads(os.environ["DELIVERY"])
match verify_webhook(text.encode(), headers, secret):
    case OrderCreatedPayload(data=data):
        assert data.order.order_number == "ERP-1"
    case other:
        raise AssertionError(other)
try:
    verify_webhook(text.replace("ERP-1", "ERP-2"), headers, secret)
except WebhookVerificationError:
    pass
else:
    raise AssertionError("a wrong signature was accepted")
