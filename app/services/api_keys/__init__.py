"""API keys: writes, queries, rights and users (decisions 2)."""
