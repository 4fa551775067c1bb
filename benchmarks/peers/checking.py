"""What must hold of a load that was placed, whoever placed it: judged from what the API server stored."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from benchmarks.load import cluster
from benchmarks.peers.families import GANG, Gang
from benchmarks.peers.hall import GPUS
from spinney.api.core import NODE, POD
from spinney.api.struct import JSON
from spinney.kube.client import Client


async def faults(client: Client, gangs: list[Gang]) -> list[str]:
    """Return gangs that are there in part or over several domains, and nodes that were promised too much."""
    nodes = {node["metadata"]["name"]: node for node in (await client.list(NODE)).items}
    pods = (await client.list(POD, cluster.NAMESPACE_NAME)).items
    return judged(pods, nodes, gangs)


def judged(pods: Sequence[JSON], nodes: dict[str, JSON], gangs: list[Gang]) -> list[str]:
    """Return the same of pods and nodes at hand."""
    places: dict[str, list[str]] = defaultdict(list)
    used: Counter[str] = Counter()
    for pod in pods:
        if node := pod["spec"].get("nodeName"):
            places[pod["metadata"].get("labels", {}).get(GANG, "")].append(node)
            used[node] += 1
    found = [f"node {node} has {GPUS} GPUs and {count} pods" for node, count in used.items() if count > GPUS]
    for gang in gangs:
        held = places[gang.name]
        if 0 < len(held) < gang.minimum:
            found.append(f"gang {gang.name} is there in part: {len(held)} of {gang.minimum} pods")
        if gang.level and len({nodes[node]["metadata"]["labels"][gang.level] for node in held}) > 1:
            found.append(f"gang {gang.name} is in several domains of {gang.level}")
    return found
