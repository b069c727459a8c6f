"""The steps of an import."""
