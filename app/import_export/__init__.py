"""Export of records to files, and import from them: NDJSON and CSV (migration 2)."""
