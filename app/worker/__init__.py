"""The worker: numbers events, delivers them to webhooks and removes expired records (events 2)."""
