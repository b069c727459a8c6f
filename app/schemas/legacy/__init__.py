"""The wire format of the legacy API (decisions 12 and 14)."""
