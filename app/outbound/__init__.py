"""Requests to receivers of webhooks: allowed addresses, the HTTP client and signatures."""
