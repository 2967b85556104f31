"""What the command line's exit codes mean."""

from enum import IntEnum


class Exit(IntEnum):
    """0 and 1 are answers, 2 and above mean that there is none."""

    FOUND = 0
    NOTHING = 1
    USAGE = 2
    INTERRUPTED = 130
