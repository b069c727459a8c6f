"""Imports of files: their parts, their numbers and errors, and their states (people 7)."""
