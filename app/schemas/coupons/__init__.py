"""Schemas of coupons, their batches, and carts."""
