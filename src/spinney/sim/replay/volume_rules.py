"""Whether jobs of a replay reach the volumes they claim, and no volume has two claims, by the trace and what happened.

Looked at are the node affinity of volumes that the recording has, and for those that are provisioned in the replay the
topologies that their class allows. Sizes, access modes and zone labels are not.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from spinney.api.core import Node
from spinney.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from spinney.cluster.filters.storage import class_name
from spinney.kube.keys import Key, key_of
from spinney.sim.replay.history import JobHappening
from spinney.sim.replay.recorded_rules import matches_node
from spinney.sim.replay.trace import ClusterChange, Job


class VolumeRules:
    """Volumes and claims as they are at a moment. Mutable: it is moved on through the changes of a trace."""

    def __init__(self, changes: Sequence[ClusterChange]) -> None:
        kinds = Node | PersistentVolume | PersistentVolumeClaim | StorageClass
        self._changes = [each for each in changes if isinstance(each.found, kinds)]
        self._passed = 0
        self._nodes: dict[str, Node] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._classes: dict[str, StorageClass] = {}
        self._claims: dict[Key, PersistentVolumeClaim] = {}
        """Claims as they came last, those that are gone included: jobs that use them keep them."""
        self._over: set[Key] = set()
        """Claims that are gone or were made anew, while jobs that name them keep their volumes."""
        self._users: Counter[Key] = Counter()
        """How many jobs that have come and not ended name a claim."""
        self._holder: dict[str, Key] = {}
        self._held: dict[Key, str] = {}
        """The same the other way round."""

    def problems(self, job: Job, event: JobHappening) -> Iterator[str]:
        """Take in what happened, and yield what is wrong with the volumes of a job that starts."""
        recorded = job.recorded
        if recorded is None or not any(pod.volumes for pod in recorded.pods):
            return
        self._move_to(event.at)
        match event.what:
            case "submitted":
                self._users.update(_claims_of(job))
            case "ended" | "forgotten":
                self._users.subtract(_claims_of(job))
                for key in _claims_of(job):
                    self._free(key)
            case "evicted" | "failed":
                for pod in recorded.pods:
                    for use in pod.volumes:
                        if use.ephemeral:
                            self._let_go(Key(recorded.gang.namespace, use.name))
            case "started":
                for place, node in enumerate(event.nodes[: job.pods]):
                    bound = event.volumes[place] if event.volumes else {}
                    for key in recorded.volumes_of(place):
                        if key not in bound and recorded.runs_from_the_beginning:
                            continue
                        yield from self._wrong(key, bound.get(key, ""), node)

    def _wrong(self, key: Key, name: str, node: str) -> Iterator[str]:
        claim = self._claims.get(key)
        if not name:
            yield f"claim {key} has no volume"
            return
        if claim is not None and claim.bound and claim.spec.volume_name != name:
            yield f"claim {key} has volume {name}, and not its own, {claim.spec.volume_name}"
        holder, new = self._holder.setdefault(name, key), key not in self._held
        if holder != key:
            yield f"claim {key} has volume {name}, which claim {holder} has"
        else:
            self._held[key] = name
        volume, found = self._volumes.get(name), self._nodes.get(node)
        if found is None:
            return
        if volume is not None:
            affinity = volume.spec.node_affinity
            if affinity is not None and affinity.required is not None:
                terms = affinity.required.node_selector_terms
                if not any(matches_node(term, found) for term in terms):
                    yield f"a pod is on {node}, which does not reach volume {name} of claim {key}"
        elif new and claim is not None and not self._may_be_made(claim, found):
            yield f"a pod is on {node}, where the class of claim {key} makes no volumes"

    def _may_be_made(self, claim: PersistentVolumeClaim, node: Node) -> bool:
        made_by = self._classes.get(class_name(claim))
        if made_by is None:
            return False
        topologies = made_by.allowed_topologies
        labels = node.metadata.labels
        return not topologies or any(
            all(labels.get(each.key) in each.values for each in term.match_label_expressions) for term in topologies
        )

    def _free(self, key: Key) -> None:
        """Have the volume of a claim be free if neither the cluster nor a job has the claim any more."""
        if key in self._over and self._users[key] <= 0:
            self._let_go(key)

    def _let_go(self, key: Key) -> None:
        self._over.discard(key)
        name = self._held.pop(key, None)
        if name is not None:
            self._holder.pop(name, None)

    def _move_to(self, moment: float) -> None:
        while self._passed < len(self._changes) and self._changes[self._passed].at <= moment:
            change = self._changes[self._passed]
            self._passed += 1
            match change.found, change.gone:
                case Node() as node, _:
                    self._nodes[node.metadata.name] = node
                case PersistentVolume() as volume, False:
                    self._volumes[volume.metadata.name] = volume
                case StorageClass() as made_by, False:
                    self._classes[made_by.metadata.name] = made_by
                case PersistentVolumeClaim() as claim, False:
                    self._put_claim(key_of(claim), claim)
                case PersistentVolumeClaim() as claim, True:
                    self._over.add(key_of(claim))
                    self._free(key_of(claim))

    def _put_claim(self, key: Key, claim: PersistentVolumeClaim) -> None:
        before = self._claims.get(key)
        self._claims[key] = claim
        if before is not None and before.metadata.uid != claim.metadata.uid:
            self._over.add(key)
            self._free(key)
        if claim.bound and self._held.get(key) != claim.spec.volume_name:  # by its cluster, whatever uses it
            self._let_go(key)


def _claims_of(job: Job) -> set[Key]:
    recorded = job.recorded
    if recorded is None:
        return set()
    return {key for place in range(len(recorded.pods)) for key in recorded.volumes_of(place)}
