"""The HTTP layer, based on flask-smorest."""
