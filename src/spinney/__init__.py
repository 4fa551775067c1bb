"""Spinney: gang scheduling for AI workloads on Kubernetes.

The stable public surface is what this module and the packages named in ``docs/architecture.md`` export; everything
else may change between minor versions.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str

__all__ = ["__version__"]


def __getattr__(name: str) -> str:
    """Look the version up when it is asked for: reading it takes longer than everything else here."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - only here

        return version("spinney")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
