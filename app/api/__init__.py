"""Everything that knows HTTP and flask-smorest."""
