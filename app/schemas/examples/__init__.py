"""Examples in the OpenAPI document. Tests send the requests and compare the responses."""
