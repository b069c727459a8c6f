"""The tables of the models, for statements that need no objects."""

from __future__ import annotations

from typing import cast

from sqlalchemy import Table

from app.models import (
    ApiKey,
    Coupon,
    CouponBatch,
    DeliveryCount,
    DemoRun,
    DownloadPermission,
    Event,
    EventFeed,
    IdempotencyRecord,
    ImportedRecord,
    ImportRun,
    ImportSource,
    OAuthNonce,
    Order,
    OrderNote,
    Redemption,
    RowCount,
    User,
    UserRole,
    Webhook,
    WebhookDelivery,
)

API_KEYS = cast("Table", ApiKey.__table__)
COUPONS = cast("Table", Coupon.__table__)
COUPON_BATCHES = cast("Table", CouponBatch.__table__)
DELIVERY_COUNTS = cast("Table", DeliveryCount.__table__)
DEMO_RUNS = cast("Table", DemoRun.__table__)
DOWNLOADS = cast("Table", DownloadPermission.__table__)
EVENTS = cast("Table", Event.__table__)
EVENT_FEED = cast("Table", EventFeed.__table__)
IDEMPOTENCY_RECORDS = cast("Table", IdempotencyRecord.__table__)
IMPORTED_RECORDS = cast("Table", ImportedRecord.__table__)
IMPORT_RUNS = cast("Table", ImportRun.__table__)
IMPORT_SOURCES = cast("Table", ImportSource.__table__)
OAUTH_NONCES = cast("Table", OAuthNonce.__table__)
ORDERS = cast("Table", Order.__table__)
ORDER_NOTES = cast("Table", OrderNote.__table__)
REDEMPTIONS = cast("Table", Redemption.__table__)
ROW_COUNTS = cast("Table", RowCount.__table__)
USERS = cast("Table", User.__table__)
USER_ROLES = cast("Table", UserRole.__table__)
WEBHOOKS = cast("Table", Webhook.__table__)
WEBHOOK_DELIVERIES = cast("Table", WebhookDelivery.__table__)
