"""Schemas of redemptions."""
