"""Coupons: writes, queries, evaluation, refused codes and batches."""
