"""Demonstrations on a cluster. Each is a function that returns the problems and the figures.

``tests/server/test_cluster.py`` runs short ones, and ``make cluster-test`` runs all of them.
"""
