"""What must hold of a load that is placed, whoever places it: judged bind by bind, as a watch has shown them."""

from collections import Counter, defaultdict
from collections.abc import Mapping

from benchmarks.load import cluster
from benchmarks.peers.families import GANG, Gang
from benchmarks.peers.hall import GPUS
from spinney.api.core import NODE, POD
from spinney.kube.client import Client

Labels = Mapping[str, str]


async def faults(client: Client, places: Mapping[str, str], gangs: list[Gang]) -> list[str]:
    """Return what was wrong with the binds that a watch has shown, and where the API server stores anything else."""
    nodes = {node["metadata"]["name"]: node["metadata"]["labels"] for node in (await client.list(NODE)).items}
    pods = (await client.list(POD, cluster.NAMESPACE_NAME)).items
    gang_of = {pod["metadata"]["name"]: pod["metadata"].get("labels", {}).get(GANG, "") for pod in pods}
    stored = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}
    moved = [
        f"pod {pod} was bound to {node} and is on {stored.get(pod) or 'no node'}"
        for pod, node in places.items()
        if stored.get(pod) != node
    ]
    return judged(places, gang_of, nodes, gangs) + moved


def judged(
    places: Mapping[str, str], gang_of: Mapping[str, str], nodes: Mapping[str, Labels], gangs: list[Gang]
) -> list[str]:
    """Return nodes that were promised too much at any bind, gangs that left their domain, and those there in part."""
    levels = {gang.name: gang.level for gang in gangs}
    gpus = {gang.name: gang.gpus for gang in gangs}
    used: Counter[str] = Counter()
    bound: Counter[str] = Counter()
    domains: dict[str, set[str]] = defaultdict(set)
    for pod, node in places.items():
        gang = gang_of.get(pod, "")
        used[node] += gpus.get(gang, 1)
        bound[gang] += 1
        if level := levels.get(gang):
            domains[gang].add(nodes[node][level])
    found = [f"node {node} has {GPUS} GPUs and pods with {count}" for node, count in used.items() if count > GPUS]
    found += [
        f"gang {gang} is in several domains of {levels[gang]}: {', '.join(sorted(where))}"
        for gang, where in domains.items()
        if len(where) > 1
    ]
    found += [
        f"gang {gang.name} is there in part: {bound[gang.name]} of {gang.minimum} pods"
        for gang in gangs
        if 0 < bound[gang.name] < gang.minimum
    ]
    return found
