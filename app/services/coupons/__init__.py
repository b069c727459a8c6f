"""Coupons: writes, queries, evaluation, trash and batches."""
