"""The tables, one file a noun."""

from app.models.answer import KeptAnswer
from app.models.api_key import ApiKey
from app.models.coupon import Coupon
from app.models.demo_run import DemoRun
from app.models.download import DownloadPermission
from app.models.oauth_nonce import OAuthNonce
from app.models.order import Order
from app.models.tally import Tally
from app.models.user import User, UserRole

__all__ = [
    "ApiKey",
    "Coupon",
    "DemoRun",
    "DownloadPermission",
    "KeptAnswer",
    "OAuthNonce",
    "Order",
    "Tally",
    "User",
    "UserRole",
]
