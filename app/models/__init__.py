"""Tables, one noun per file."""

from app.models.admin_session import ADMIN_SESSIONS, SIGN_IN_LINKS
from app.models.api_key import API_KEYS, ApiKey
from app.models.campaign import CAMPAIGNS, Campaign
from app.models.coupon import COUPONS, Coupon
from app.models.coupon_batch import COUPON_BATCHES, CouponBatch
from app.models.coupon_refusal import COUPON_REFUSALS
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
    IdempotencyRecord,
)
from app.models.import_run import IMPORT_ERRORS, IMPORT_PARTS, IMPORT_RUNS, ImportRun
from app.models.imported_record import IMPORT_SOURCES, IMPORTED_RECORDS, ImportedRecord
from app.models.metadata import (
    COUPON_METADATA,
    CUSTOMER_METADATA,
    ITEM_METADATA,
    ORDER_METADATA,
    REFUND_METADATA,
)
from app.models.oauth_nonce import OAUTH_NONCES, OAuthNonce
from app.models.order import (
    ITEM_IDS,
    ORDER_PRODUCTS,
    ORDER_SUMS,
    ORDERS,
    Order,
    OrderProduct,
    OrderSum,
)
from app.models.order_note import ORDER_NOTES, OrderNote
from app.models.order_refund import ORDER_REFUNDS, OrderRefund
from app.models.redemption import REDEMPTIONS, Redemption
from app.models.row_count import ROW_COUNTS, RowCount
from app.models.upload import Upload
from app.models.user import (
    MERGED_ACCOUNTS,
    USER_ROLES,
    USER_TAGS,
    USERS,
    MergedAccount,
    User,
    UserRole,
    UserTag,
)
from app.models.webhook import WEBHOOKS, Webhook
from app.models.webhook_delivery import DELIVERY_COUNTS, WEBHOOK_DELIVERIES, WebhookDelivery
