"""Tests of the service over HTTP, on SQLite and PostgreSQL."""
