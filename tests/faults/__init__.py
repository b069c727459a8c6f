"""Kills during writes, followed by a comparison of the data (docs/operations.md, Durability).

``python -m tests.faults --help`` describes how to run a campaign. tests/server/test_faults.py runs a short
one.
"""
