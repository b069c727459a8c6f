"""The demo shop."""
