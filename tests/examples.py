"""How many examples a property is tried on: half of them for every change, all of them every night."""

import os

NEW = os.environ.get("SPINNEY_EXAMPLES") == "new"
"""Other examples are searched for than the day before."""


def examples(most: int) -> int:
    """Return how many of at most so many examples are tried; a change is judged by the same ones each time."""
    return most if NEW else most // 2
