"""Pure conversions of values, as parsed from JSON or a query string.

The functions return the converted value, or raise ValueError with a reason that a client can read.
They do not read the clock, the database or the request, and take linear time at most.
"""
