"""Databases of generated WooCommerce shops: as dumps of any size, and as rows for a server.

``python -m tests.dumps --customers 1000000 shop.sql.gz`` writes a dump.
"""
