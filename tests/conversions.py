"""Inputs and helpers for the tests of the conversions: text, numbers, e-mail addresses, dates."""

import sys

from hypothesis import strategies as st

# What a JSON body holds once it is read: no float, numbers with a point are exact.
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**64), 2**64)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.from_regex(r"\A\s*[+-]?[0-9]*\.?[0-9]*(e[+-]?[0-9]{1,4})?.?\Z")
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5
)
# Text in which tags, white space, control characters and surprising letters are likely.
markup = (
    st.text(st.sampled_from("<>/!-abB =\"'\t\n\r\x01\x7f\x85\xa0\u2028éÉİKßΣ\u0301")) | st.text()
)


def outcome(clean, *args):
    """What a function returned, or ValueError; anything else that it raises is a failure."""
    try:
        return clean(*args)
    except ValueError:
        return ValueError


def steps(function, value):
    """How many lines of Python run for a value."""
    lines = 0

    def trace(frame, event, arg):
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        outcome(function, value)
    finally:
        sys.settrace(before)
    return lines
