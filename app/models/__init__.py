"""The tables, one file a noun."""

from app.models.api_key import ApiKey
from app.models.coupon import Coupon
from app.models.demo_run import DemoRun
from app.models.download import DownloadPermission
from app.models.idempotency_record import IdempotencyRecord
from app.models.oauth_nonce import OAuthNonce
from app.models.order import Order
from app.models.order_note import OrderNote
from app.models.redemption import Redemption
from app.models.row_count import RowCount
from app.models.user import User, UserRole

__all__ = [
    "ApiKey",
    "Coupon",
    "DemoRun",
    "DownloadPermission",
    "IdempotencyRecord",
    "OAuthNonce",
    "Order",
    "OrderNote",
    "Redemption",
    "RowCount",
    "User",
    "UserRole",
]
