"""Schemas of orders, their items and their notes."""
