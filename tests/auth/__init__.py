"""Tests of credentials and permissions."""
