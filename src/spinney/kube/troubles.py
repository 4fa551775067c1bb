"""Troubles with an API server that last: told once, and that they are over."""


class Troubles:
    """What has gone wrong since all was well. Mutable."""

    def __init__(self) -> None:
        self._met: set[tuple[type[Exception], int | None]] = set()

    def is_new(self, error: Exception) -> bool:
        """Take in an error; tell whether it is the first of its sort since all was well."""
        sort = (type(error), getattr(error, "status", None))
        if sort in self._met:
            return False
        self._met.add(sort)
        return True

    def end(self) -> bool:
        """Take in that all is well; tell whether it was not before."""
        ended = bool(self._met)
        self._met.clear()
        return ended
