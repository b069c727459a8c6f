"""Campaigns: one limit for many codes (campaigns 2 and 7)."""
