"""Wrap the prose of the pages at 120 characters: paragraphs and list items that have a longer line, nothing else."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final

WIDTH: Final = 120
ROOT: Final = Path(__file__).parents[1]
_BEGINS: Final = re.compile(r"(\s*)([-*+] |\d+\. |> )?")
_ITEM: Final = re.compile(r"\s*([-*+] |\d+\. )")
_LEFT_ALONE: Final = ("|", "<", "[!", "#")


def wrapped(text: str) -> str:
    """Return a page with its long paragraphs wrapped; code, tables, headings and HTML stay as they are."""
    return "\n".join(line for part, prose in _parts(text.split("\n")) for line in (_paragraph(part) if prose else part))


def _parts(lines: list[str]) -> Iterator[tuple[list[str], bool]]:
    """Yield paragraphs, and every other line by itself, each with whether it is prose."""
    paragraph: list[str] = []
    code = False
    for line in lines:
        fence = line.lstrip().startswith("```")
        alone = code or fence or not line.strip() or line.lstrip().startswith(_LEFT_ALONE)
        if paragraph and (alone or _ITEM.match(line)):
            yield paragraph, True
            paragraph = []
        if fence:
            code = not code
        if alone:
            yield [line], False
        else:
            paragraph.append(line)
    if paragraph:
        yield paragraph, True


def _paragraph(lines: list[str]) -> list[str]:
    """Return a paragraph or list item, wrapped if a line of it is too long."""
    if all(len(line) <= WIDTH for line in lines):
        return lines
    begins = _BEGINS.match(lines[0])
    assert begins is not None
    indent, mark = begins[1], begins[2] or ""
    words = " ".join([lines[0][begins.end() :].strip(), *(line.strip() for line in lines[1:])])
    return textwrap.wrap(
        words,
        WIDTH,
        initial_indent=indent + mark,
        subsequent_indent=indent + (mark if mark == "> " else " " * len(mark)),
        break_long_words=False,
        break_on_hyphens=False,
    )


if __name__ == "__main__":
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/performance/*.md")]):
        text = page.read_text()
        if (made := wrapped(text)) != text:
            page.write_text(made)
            print(f"wrapped {page.relative_to(ROOT)}")
