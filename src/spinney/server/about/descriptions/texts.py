"""The form of the texts about a type: by field, and one of the type itself."""

from collections.abc import Mapping
from typing import Final

Texts = Mapping[str, str]
ITSELF: Final = ""  # the key of the text about the type
