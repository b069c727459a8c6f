"""Tests of the programs in ``qa/cluster``."""
