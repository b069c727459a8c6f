"""Wire formats of the legacy API that differ from those of the native API."""
