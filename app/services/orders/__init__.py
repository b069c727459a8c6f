"""Orders: writes, queries, items, coupons, notes, downloads and trash."""
