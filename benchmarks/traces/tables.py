"""Tables for people and for docs/performance.md."""

from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[2] / "docs" / "performance.md"


class Table:
    """A caption, headings and rows. Mutable: rows are added as they are measured."""

    def __init__(self, caption: str, headings: list[str]) -> None:
        self.caption = caption
        self.headings = headings
        self.rows: list[list[str]] = []

    def add(self, *cells: object) -> None:
        """Add a row and print it."""
        self.rows.append([str(cell) for cell in cells])
        print(" | ".join(self.rows[-1]), flush=True)

    def __str__(self) -> str:
        lines = [self.headings, ["---"] * len(self.headings), *self.rows]
        return "\n".join([self.caption, "", *(f"| {' | '.join(line)} |" for line in lines)])


def write(part: str, tables: list[Table]) -> None:
    """Put the tables of a part into the page, in the place of those before."""
    begin, end = f"<!-- traces: {part} -->", f"<!-- end of traces: {part} -->"
    text = PAGE.read_text()
    before, _, rest = text.partition(begin)
    if end not in rest:
        raise SystemExit(f"{PAGE}: no place for {part}; expected {begin} and {end}")
    PAGE.write_text(f"{before}{begin}\n\n" + "\n\n".join(map(str, tables)) + f"\n\n{end}{rest.partition(end)[2]}")
