"""Customers: writes, queries, statistics, and what is removed with an account."""
