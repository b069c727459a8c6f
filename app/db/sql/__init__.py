"""SQL with the same meaning on SQLite and PostgreSQL: column types, functions and index hints."""
