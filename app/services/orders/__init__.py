"""Orders: writes, queries, items, uses of coupons, refunds, notes and downloads."""
