"""Tests of discounts and evaluation."""
