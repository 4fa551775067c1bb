"""What is taken for a fault of code that others wrote and that is called here."""

from typing import Final

RAISED: Final = (Exception, SystemExit)
"""What a plugin or a backend may raise: also the end of the program, which is not for it to decide."""
