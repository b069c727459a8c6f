"""Tests of webhooks and their deliveries."""
