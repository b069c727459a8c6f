"""The endpoints. A view loads a schema, calls a service and returns a response."""
