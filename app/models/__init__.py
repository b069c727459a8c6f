"""Tables, one noun per file."""

from app.models.admin_session import (
    ADMIN_SESSIONS,
    SIGN_IN_LINKS,
    AdminSession,
    SignInLink,
)
from app.models.api_key import API_KEYS, ApiKey
from app.models.coupon import COUPONS, Coupon
from app.models.coupon_batch import COUPON_BATCHES, CouponBatch
from app.models.coupon_refusal import COUPON_REFUSALS, CouponRefusal
from app.models.customer_total import (
    CUSTOMER_TOTALS,
    STALE_TOTALS,
    TOTAL_STATUSES,
    CustomerTotal,
    StaleTotal,
    TotalStatuses,
)
from app.models.demo_run import DEMO_RUNS, DemoRun
from app.models.download import DOWNLOADS, DownloadPermission
from app.models.event import EVENT_FEED, EVENTS, Event, EventFeed
from app.models.idempotency_record import (
    IDEMPOTENCY_PERSONS,
    IDEMPOTENCY_RECORDS,
    IdempotencyPerson,
    IdempotencyRecord,
)
from app.models.import_run import IMPORT_RUNS, ImportRun
from app.models.imported_record import (
    IMPORT_SOURCES,
    IMPORTED_RECORDS,
    ImportedRecord,
    ImportSource,
)
from app.models.item_id import ITEM_IDS, ItemId
from app.models.metadata import (
    COUPON_METADATA,
    CUSTOMER_METADATA,
    ITEM_METADATA,
    ORDER_METADATA,
    REFUND_METADATA,
    CouponMetadata,
    CustomerMetadata,
    ItemMetadata,
    OrderMetadata,
    RefundMetadata,
)
from app.models.oauth_nonce import OAUTH_NONCES, OAuthNonce
from app.models.order import ORDERS, Order
from app.models.order_note import ORDER_NOTES, OrderNote
from app.models.order_product import ORDER_PRODUCTS, OrderProduct
from app.models.order_refund import ORDER_REFUNDS, OrderRefund
from app.models.order_sum import ORDER_SUMS, OrderSum
from app.models.redemption import REDEMPTIONS, Redemption
from app.models.row_count import ROW_COUNTS, RowCount
from app.models.upload import UPLOADS, Upload
from app.models.user import USER_ROLES, USERS, User, UserRole
from app.models.webhook import WEBHOOKS, Webhook
from app.models.webhook_delivery import (
    DELIVERY_COUNTS,
    WEBHOOK_DELIVERIES,
    DeliveryCount,
    WebhookDelivery,
)

__all__ = [
    "ADMIN_SESSIONS",
    "API_KEYS",
    "COUPONS",
    "COUPON_BATCHES",
    "COUPON_METADATA",
    "COUPON_REFUSALS",
    "CUSTOMER_METADATA",
    "CUSTOMER_TOTALS",
    "DELIVERY_COUNTS",
    "DEMO_RUNS",
    "DOWNLOADS",
    "EVENTS",
    "EVENT_FEED",
    "IDEMPOTENCY_PERSONS",
    "IDEMPOTENCY_RECORDS",
    "IMPORTED_RECORDS",
    "IMPORT_RUNS",
    "IMPORT_SOURCES",
    "ITEM_IDS",
    "ITEM_METADATA",
    "OAUTH_NONCES",
    "ORDERS",
    "ORDER_METADATA",
    "ORDER_NOTES",
    "ORDER_PRODUCTS",
    "ORDER_REFUNDS",
    "ORDER_SUMS",
    "REDEMPTIONS",
    "REFUND_METADATA",
    "ROW_COUNTS",
    "SIGN_IN_LINKS",
    "STALE_TOTALS",
    "TOTAL_STATUSES",
    "UPLOADS",
    "USERS",
    "USER_ROLES",
    "WEBHOOKS",
    "WEBHOOK_DELIVERIES",
    "AdminSession",
    "ApiKey",
    "Coupon",
    "CouponBatch",
    "CouponMetadata",
    "CouponRefusal",
    "CustomerMetadata",
    "CustomerTotal",
    "DeliveryCount",
    "DemoRun",
    "DownloadPermission",
    "Event",
    "EventFeed",
    "IdempotencyPerson",
    "IdempotencyRecord",
    "ImportRun",
    "ImportSource",
    "ImportedRecord",
    "ItemId",
    "ItemMetadata",
    "OAuthNonce",
    "Order",
    "OrderMetadata",
    "OrderNote",
    "OrderProduct",
    "OrderRefund",
    "OrderSum",
    "Redemption",
    "RefundMetadata",
    "RowCount",
    "SignInLink",
    "StaleTotal",
    "TotalStatuses",
    "Upload",
    "User",
    "UserRole",
    "Webhook",
    "WebhookDelivery",
]
