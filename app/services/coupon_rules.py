"""Rules that several writes of coupons check: capabilities, types and codes (spec 4.1)."""

from __future__ import annotations

from app.auth.principals import Capability, Principal
from app.catalog import current_catalog
from app.errors import ShopError
from app.services.coupon_queries import known_types
from app.text import CODE_MAX_LENGTH


def require_own(
    actor: Principal, author_id: int | None, code: str, own: Capability, others: Capability
) -> None:
    """Require a capability, and a second capability for coupons of other users.

    Raises:
        ShopError: with ``code``, if a capability is missing.
    """
    actor.require(code, *([own] if author_id == actor.user_id else [own, others]))


def require_known_type(name: str) -> None:
    """Raise ShopError if a coupon type does not exist."""
    if name not in current_catalog().coupon_types:
        raise ShopError("shop_api_invalid_coupon_type", types=known_types())


def require_storable(code: str, error_code: str) -> None:
    """Raise ShopError with ``error_code`` if a code is empty or too long (decisions 4 and 17)."""
    if not code:
        raise ShopError(error_code, reason="the code is empty.")
    if len(code) > CODE_MAX_LENGTH:
        raise ShopError(error_code, reason=f"the code is longer than {CODE_MAX_LENGTH} characters.")
