"""Persons: who is one, what the shop knows of a person, and what remains after an erasure."""
