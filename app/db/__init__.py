"""Database access: sessions, column types, SQL functions and search."""
