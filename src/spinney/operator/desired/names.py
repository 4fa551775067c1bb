"""The names of everything the operator generates, and the one way back from a PodClique's name to its template.

Names are Grove's (``i`` is the replica index of the PodCliqueSet, ``j`` of the scaling group, ``k`` of the pod). The
name of a scaled gang is re-based: with ``minAvailable`` 3, replica 3 of the group has gang ``...-0``.
"""

from collections.abc import Mapping

from spinney.api import labels as marks


def headless_service(pcs: str, i: int) -> str:
    """Return the name of the Service that gives the pods of one replica their host names."""
    return f"{pcs}-{i}"


def base_gang(pcs: str, i: int) -> str:
    """Return the name of the gang that holds the minimum of one replica."""
    return f"{pcs}-{i}"


def standalone_clique(pcs: str, i: int, clique: str) -> str:
    """Return the name of a PodClique that belongs to no scaling group."""
    return f"{pcs}-{i}-{clique}"


def scaling_group(pcs: str, i: int, group: str) -> str:
    """Return the name of a PodCliqueScalingGroup."""
    return f"{pcs}-{i}-{group}"


def scaling_group_replica(scaling_group_name: str, j: int) -> str:
    """Return the common stem of one scaling group replica: prefix of its PodCliques, name of its topology group."""
    return f"{scaling_group_name}-{j}"


def member_clique(scaling_group_name: str, j: int, clique: str) -> str:
    """Return the name of a PodClique inside a scaling group."""
    return f"{scaling_group_name}-{j}-{clique}"


def scaled_gang(scaling_group_name: str, j: int, min_available: int) -> str:
    """Return the name of the gang of a scaling group replica beyond the minimum."""
    return f"{scaling_group_name}-{j - min_available}"


def member_gang(pcs: str, i: int, scaling_group_name: str, j: int, min_available: int) -> str:
    """Return the gang that replica ``j`` of a scaling group belongs to."""
    return base_gang(pcs, i) if j < min_available else scaled_gang(scaling_group_name, j, min_available)


def pod_hostname(clique_name: str, k: int) -> str:
    """Return the host name of pod ``k`` of a PodClique."""
    return f"{clique_name}-{k}"


def service_domain(pcs: str, i: int, namespace: str) -> str:
    """Return the DNS name of the headless service, as pods see it in GROVE_HEADLESS_SERVICE."""
    return f"{headless_service(pcs, i)}.{namespace}.svc.cluster.local"


def service_account(pcs: str) -> str:
    """Return the ServiceAccount with which init containers watch the pods they wait for."""
    return pcs


def role(pcs: str) -> str:
    """Return the name of the Role and of the RoleBinding of that ServiceAccount."""
    return f"grove.io:pcs:{pcs}"


def token_secret(pcs: str) -> str:
    """Return the Secret that carries the ServiceAccount's token."""
    return f"{pcs}-ic-sat"


def claim_for_all(owner: str, template: str) -> str:
    """Return the ResourceClaim that all replicas of ``owner`` share."""
    return f"{owner}-all-{template}"


def claim_for_replica(owner: str, index: int, template: str) -> str:
    """Return the ResourceClaim of one replica of ``owner``."""
    return f"{owner}-{index}-{template}"


def compute_domain(pcs: str, i: int, group: str) -> str:
    """Return the ComputeDomain (and its claim template) of one multi-node NVLink group."""
    return f"{pcs}-{i}-{group}"


def config_name(scaling_group_name: str, labels: Mapping[str, str]) -> str:
    """Return what a PodCliqueScalingGroup is called in its set, from its name and labels."""
    return scaling_group_name.removeprefix(f"{labels.get(marks.PART_OF)}-{labels.get(marks.REPLICA_INDEX)}-")


class UnknownPodClique(LookupError):
    """A PodClique's labels do not say which template it was made from."""


def template_name(clique_name: str, labels: Mapping[str, str]) -> str:
    """Return the name of the template a PodClique was made from, exactly, from its name and labels.

    The labels give the whole prefix, so overlapping names (``worker`` and ``decode-worker``) cannot be confused.
    """
    group = labels.get(marks.SCALING_GROUP)
    if group is not None:
        prefix = f"{group}-{labels.get(marks.SCALING_GROUP_REPLICA_INDEX)}-"
    else:
        prefix = f"{labels.get(marks.PART_OF)}-{labels.get(marks.REPLICA_INDEX)}-"
    if not clique_name.startswith(prefix) or clique_name == prefix:
        raise UnknownPodClique(
            f"PodClique {clique_name}: its labels say that its name begins with {prefix!r}, which it does not; "
            "restore the labels or delete the object, so that the operator makes it anew"
        )
    return clique_name.removeprefix(prefix)
