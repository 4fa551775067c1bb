"""Tables for people and for docs/performance/traces.md."""

import textwrap
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[2] / "docs" / "performance" / "traces.md"
_WIDTH: Final = 120


class Table:
    """A caption, headings and rows. Mutable: rows are added as they are measured. ``name`` is its place in the page."""

    def __init__(self, name: str, caption: str, headings: list[str]) -> None:
        self.name = name
        self.caption = caption
        self.headings = headings
        self.rows: list[list[str]] = []

    def add(self, *cells: object) -> None:
        """Add a row and print it."""
        self.rows.append([str(cell) for cell in cells])
        print(" | ".join(self.rows[-1]), flush=True)

    def __str__(self) -> str:
        lines = [self.headings, ["---"] * len(self.headings), *self.rows]
        caption = textwrap.fill(self.caption, _WIDTH, break_on_hyphens=False)
        return "\n".join([caption, "", *(f"| {' | '.join(line)} |" for line in lines)])


def write(table: Table) -> None:
    """Put a table into its place in the page, instead of the one before; what is written around it stays."""
    begin, end = f"<!-- traces: {table.name} -->", f"<!-- end of traces: {table.name} -->"
    before, _, rest = PAGE.read_text().partition(begin)
    if end not in rest:
        print(f"{PAGE}: no place for {table.name}; expected {begin} and {end}")
        return
    PAGE.write_text(f"{before}{begin}\n\n{table}\n\n{end}{rest.partition(end)[2]}")
