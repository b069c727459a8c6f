"""The tables, one file a noun."""

from app.models.api_key import ApiKey
from app.models.coupon import Coupon
from app.models.user import User, UserRole

__all__ = ["ApiKey", "Coupon", "User", "UserRole"]
