"""What a terminal can do beside showing text."""

import os
from typing import TextIO


def takes_commands(stream: TextIO) -> bool:
    """Tell whether a stream is a terminal that moves its cursor and changes colours when told; a dumb one does not."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"
