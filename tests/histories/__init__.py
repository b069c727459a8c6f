"""Recorded histories of concurrent clients, checked operation by operation (docs/reliability.md).

``python -m tests.histories --help`` describes how to run a campaign.
"""
