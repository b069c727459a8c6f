"""Webhooks: writes, queries, states, topics, pings and replays (events 2)."""
