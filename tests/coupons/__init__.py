"""Tests of coupons."""
