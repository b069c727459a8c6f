"""The fixtures of this folder."""

from tests.coupons.bulk import bulk
from tests.coupons.lists import pager, shop

__all__ = ["bulk", "pager", "shop"]
