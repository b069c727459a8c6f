"""Events: the outbox, the hooks of plugins, the sequence, the feed and retention (events 1)."""
