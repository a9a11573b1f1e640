"""The command line: one module a command."""


class UsageError(Exception):
    """A command was called wrongly, in a way that only a look at the recording shows. Exit status 2."""
