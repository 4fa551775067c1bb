"""Chunks of a stream of lines that know their lines.

A server cuts what it sends where it likes, so a client looks for the ends of lines. A client in the server's process
is given the very lines that were joined: it need neither look for them nor copy them, and several clients that are sent
the same line can tell so without comparing it.
"""

from collections.abc import Sequence


class WholeLines(bytes):
    """Lines joined to a chunk, each with its newline."""

    lines: Sequence[bytes]

    @classmethod
    def of(cls, lines: Sequence[bytes]) -> "WholeLines":
        """Return the chunk that consists of these lines."""
        chunk = cls(b"".join(lines))
        chunk.lines = lines
        return chunk
