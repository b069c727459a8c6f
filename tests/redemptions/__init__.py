"""Tests of redemptions."""
