"""Tables, one noun per file."""

from app.models.api_key import ApiKey
from app.models.coupon import Coupon
from app.models.coupon_batch import CouponBatch
from app.models.demo_run import DemoRun
from app.models.download import DownloadPermission
from app.models.event import Event, EventFeed
from app.models.idempotency_record import IdempotencyRecord
from app.models.import_run import ImportRun
from app.models.imported_record import ImportedRecord, ImportSource
from app.models.oauth_nonce import OAuthNonce
from app.models.order import Order
from app.models.order_note import OrderNote
from app.models.redemption import Redemption
from app.models.row_count import RowCount
from app.models.user import User, UserRole
from app.models.webhook import Webhook
from app.models.webhook_delivery import DeliveryCount, WebhookDelivery

__all__ = [
    "ApiKey",
    "Coupon",
    "CouponBatch",
    "DeliveryCount",
    "DemoRun",
    "DownloadPermission",
    "Event",
    "EventFeed",
    "IdempotencyRecord",
    "ImportRun",
    "ImportSource",
    "ImportedRecord",
    "OAuthNonce",
    "Order",
    "OrderNote",
    "Redemption",
    "RowCount",
    "User",
    "UserRole",
    "Webhook",
    "WebhookDelivery",
]
