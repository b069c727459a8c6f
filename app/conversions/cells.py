"""Text of cells in CSV files that spreadsheets open (migration 2)."""

from __future__ import annotations

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "'")
"""First characters of cells that spreadsheets interpret as formulas, and the prefix against it."""


def safe_cell(text: str) -> str:
    """Return a text that is safe to open in a spreadsheet."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
