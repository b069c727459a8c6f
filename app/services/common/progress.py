"""How a long operation tells its caller what is done."""

from collections.abc import Callable
from contextlib import AbstractContextManager

NoteProgress = Callable[[int], None]
"""Function to call with the number of records, or of bytes, that are done."""

Progress = Callable[[str, int], AbstractContextManager[NoteProgress]]
"""Function that begins a step with a name and a total, and returns a function for what is done."""
