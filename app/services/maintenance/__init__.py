"""Maintenance of a shop: cleaning up, trash, stored sums and texts, copies, figures and demo."""
