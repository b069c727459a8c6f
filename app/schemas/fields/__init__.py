"""Fields of schemas: input, output and query parameters."""
