"""Schemas of webhooks and their deliveries."""
