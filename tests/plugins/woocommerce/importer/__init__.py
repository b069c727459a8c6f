"""Tests of imports from WooCommerce."""
