"""Reads from standbys of the database (scale 3)."""
