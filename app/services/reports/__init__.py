"""Reports, computed from the records when they are requested (reports)."""
