"""Links of the pages to files outside ``docs`` lead to the repository: a hook of ``make docs-site``."""

import re
from typing import Any


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """Return a page whose links out of the documentation name the repository; those to other pages stay."""
    source: str = page.file.src_uri
    prefix = r"\]\(" + r"\.\./" * (source.count("/") + 1)
    outside = re.compile(prefix + r"([^)]+)\)")
    return outside.sub(lambda found: f"]({config['repo_url']}/blob/main/{found[1]})", markdown)
