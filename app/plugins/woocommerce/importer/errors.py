"""The error of a source that cannot be imported."""


class SourceError(Exception):
    """A source cannot be read. The message is shown to the operator."""
