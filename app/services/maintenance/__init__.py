"""Maintenance of a shop: removal of expired records, and copies of the database."""
