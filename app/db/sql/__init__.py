"""SQL that is the same on SQLite and PostgreSQL: column types, functions and index hints."""
