"""Inputs and helpers for the tests of the conversions: text, numbers, e-mail addresses, dates."""

import gc
import sys

from hypothesis import strategies as st

# The values of a parsed JSON body. Numbers with a point are exact Decimals.
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
    """Return the result of a function, or ValueError. Other exceptions are failures."""
    try:
        return clean(*args)
    except ValueError:
        return ValueError


def steps(function, value):
    """Return the number of executed lines of Python for a value."""
    lines = 0

    def trace(frame, event, arg):
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    gc.disable()  # it would run the finalizers of what other tests left
    sys.settrace(trace)
    try:
        outcome(function, value)
    finally:
        sys.settrace(before)
        gc.enable()
    return lines
