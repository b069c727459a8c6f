"""Authentication and authorization: API keys, credentials and capabilities."""
