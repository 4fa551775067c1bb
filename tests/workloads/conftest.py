"""Published workloads run on the stage of the end-to-end scenarios."""

from tests.e2e.conftest import cluster, cluster_name, reviews

__all__ = ["cluster", "cluster_name", "reviews"]
