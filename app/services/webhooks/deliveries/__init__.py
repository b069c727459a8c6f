"""Deliveries of webhooks: queue, requests, results and retries (events 2)."""
