"""Spinney: gang scheduling for AI workloads on Kubernetes.

The stable public surface is what this module and the packages named in ``docs/architecture.md`` export; everything
else may change between minor versions.
"""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("spinney")
