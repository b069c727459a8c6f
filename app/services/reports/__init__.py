"""Reports, computed from the records when they are requested (reports).

A report raises ShopError if the capability is missing or a statement takes too long, and
InvalidParams if the period has too many intervals.
"""
