"""Customers: writes, queries, statistics and roles."""
