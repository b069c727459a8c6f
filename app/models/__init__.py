"""Tables, one noun per file."""

from app.models.api_key import ADMIN_SESSIONS, API_KEYS, SIGN_IN_LINKS, ApiKey
from app.models.campaign import CAMPAIGNS, Campaign
from app.models.coupon import (
    COUPON_BATCHES,
    COUPON_REFUSALS,
    COUPONS,
    DELETED_COUPONS,
    Coupon,
    CouponBatch,
    DeletedCoupon,
)
from app.models.erasure import ERASED_ACCOUNTS, ERASURES, ErasedAccount, Erasure
from app.models.event import EVENT_FEED, EVENTS, Event, EventFeed
from app.models.idempotency_record import (
    IDEMPOTENCY_PERSONS,
    IDEMPOTENCY_RECORDS,
    IdempotencyRecord,
)
from app.models.import_run import (
    DEMO_RUNS,
    IMPORT_ERRORS,
    IMPORT_PARTS,
    IMPORT_RUNS,
    DemoRun,
    ImportRun,
    Upload,
)
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
    DOWNLOADS,
    ITEM_IDS,
    ORDER_NOTES,
    ORDER_PRODUCTS,
    ORDER_SUMS,
    ORDERS,
    DownloadPermission,
    Order,
    OrderNote,
    OrderProduct,
    OrderSum,
)
from app.models.order_refund import ORDER_REFUNDS, OrderRefund
from app.models.redemption import REDEMPTIONS, Redemption
from app.models.row_count import ROW_COUNTS, RowCount
from app.models.user import (
    CUSTOMER_TOTALS,
    MERGED_ACCOUNTS,
    STALE_TOTALS,
    TOTAL_STATUSES,
    USER_ROLES,
    USER_TAGS,
    USERS,
    CustomerTotal,
    MergedAccount,
    StaleTotal,
    TotalStatuses,
    User,
    UserRole,
    UserTag,
)
from app.models.webhook import WEBHOOKS, Webhook
from app.models.webhook_delivery import DELIVERY_COUNTS, WEBHOOK_DELIVERIES, WebhookDelivery
