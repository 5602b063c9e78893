"""What can go wrong with a file."""


class ExportError(ValueError):
    """Raised where a source cannot be read or a file not be written; the message is one line for its user."""
