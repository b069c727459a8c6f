"""Everything that knows identities: API keys, credentials and capabilities."""
