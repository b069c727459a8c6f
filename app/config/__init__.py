"""The configuration: every setting, their types, loading, and the server secret."""

VERSION = "1.1.0"
"""API version, ``info.version`` in the OpenAPI document (decisions 9)."""

PLUGINS = "shop_api.plugins"
"""Group of the entry points of plugins."""
