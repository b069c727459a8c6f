"""The source of an import: its tables, rows and layout."""
