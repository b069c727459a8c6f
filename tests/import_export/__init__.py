"""Tests of exports and imports of files."""
