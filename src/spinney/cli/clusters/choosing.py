"""Which cluster a command is about: what its options say, before anything is connected to."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

DEFAULT_NAMESPACE: Final = "default"
KUBECONFIG: Final = Path("~/.spinney/kubeconfig")
"""Where ``spinney up`` writes how to reach it."""


@dataclass(frozen=True)
class ClusterChoice:
    """What the options say: which kubeconfig, which context, which namespace, or which file in place of a cluster."""

    kubeconfig: Path | None = None
    context: str | None = None
    namespace: str | None = None
    file: Path | None = None
