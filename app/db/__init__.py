"""Everything that knows SQL: sessions, types, functions and search."""
