"""The configuration: every setting, their types, loading, and the server secret."""

VERSION = "1.0.0"
"""API version, ``info.version`` in the OpenAPI document (decisions 9)."""
