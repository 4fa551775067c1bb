"""How an object is named inside its kind: namespace and name."""

from typing import NamedTuple


class Key(NamedTuple):
    """The namespace and name of an object; the namespace is empty for cluster-scoped kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
