"""Tests of the deployed service."""
