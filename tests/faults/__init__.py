"""Kills in the middle of writes, and what must be left of them (docs/operations.md, Durability).

``python -m tests.faults --help`` says how to run a campaign; tests/test_faults.py runs a short one.
"""
