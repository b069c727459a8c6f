"""Inserting many rows at once."""
