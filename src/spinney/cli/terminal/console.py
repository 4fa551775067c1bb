"""Where tables and pictures are printed: rich's console, with control characters shown instead of sent."""

from typing import Any

from rich.console import Console
from rich.text import Text

from spinney.cli.terminal.printable import printable


class ReadableConsole(Console):
    """Prints plain text, cells of tables included, so that it does nothing to a terminal but be read."""

    def render_str(self, text: str, *args: Any, **kwargs: Any) -> Text:
        """Return a text to be drawn; everything that is not a ``Text`` yet comes through here."""
        return super().render_str(printable(text), *args, **kwargs)
