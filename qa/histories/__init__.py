"""Recorded histories of concurrent clients, checked operation by operation (docs/reliability.md).

``python -m qa.histories --help`` describes how to run a run.
"""
