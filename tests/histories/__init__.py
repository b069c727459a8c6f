"""Tests of the programs in ``qa/histories``."""
