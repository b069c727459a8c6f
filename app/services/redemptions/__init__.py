"""Redemptions: reserving, confirming and releasing uses of coupons (redemptions 4)."""
