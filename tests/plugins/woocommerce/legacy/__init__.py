"""Tests of the legacy API."""
