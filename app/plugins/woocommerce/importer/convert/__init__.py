"""Conversion of the records of a source."""
