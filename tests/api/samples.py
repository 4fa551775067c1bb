"""Objects that tests of this room share: manifests on disk, and a small valid PodCliqueSet to change."""

from pathlib import Path
from typing import Any

from spinney.api.field_error import FieldError
from spinney.api.grove import PodCliqueSet
from spinney.api.schema.defaults import default_pod_clique_set
from spinney.api.struct import JSON, convert
from spinney.api.topology_binding import ClusterTopologyBinding

DATA = Path(__file__).parent / "data"


def a_clique(name: str = "worker", **spec: Any) -> JSON:
    """Build a clique of a PodCliqueSet; keywords go into its spec in the API's spelling."""
    return {
        "name": name,
        "spec": {
            "roleName": name,
            "replicas": 2,
            "podSpec": {"containers": [{"name": "main", "image": "busybox"}]},
            **spec,
        },
    }


def a_set(*cliques: JSON, groups: list[JSON] | None = None, **template: Any) -> JSON:
    """Build a PodCliqueSet; keywords go into its template."""
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "serve", "namespace": "models"},
        "spec": {
            "replicas": 1,
            "template": {
                "cliques": list(cliques) or [a_clique()],
                **({"podCliqueScalingGroups": groups} if groups else {}),
                **template,
            },
        },
    }


def defaulted(manifest: JSON) -> PodCliqueSet:
    """Decode a PodCliqueSet and fill in its defaults."""
    return default_pod_clique_set(convert(PodCliqueSet, manifest))


def a_binding(name: str = "cluster", *, domains: tuple[str, ...] = ("zone", "block", "rack", "host")) -> JSON:
    """Build a ClusterTopologyBinding with these domains, broad to narrow."""
    return {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "ClusterTopologyBinding",
        "metadata": {"name": name},
        "spec": {"levels": [{"domain": domain, "key": f"example.com/{domain}"} for domain in domains]},
    }


def binding(name: str = "cluster") -> ClusterTopologyBinding:
    """Return a decoded ClusterTopologyBinding."""
    return convert(ClusterTopologyBinding, a_binding(name))


def found(errors: list[FieldError]) -> list[tuple[str, str]]:
    """Return path and kind of each fault, in order."""
    return [(error.path, error.reason.removeprefix("FieldValue")) for error in errors]
