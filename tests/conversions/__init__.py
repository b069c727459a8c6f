"""Tests of conversions."""
