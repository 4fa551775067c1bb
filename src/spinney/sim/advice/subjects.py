"""What a question is about: a pod, a gang of any family, a set, a clique or a queue, named with or without its kind."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from spinney.api import coscheduling, kai, volcano, workload_v1alpha1, workload_v1alpha2, workload_v1beta1
from spinney.api.core import NODE, POD
from spinney.api.grove import POD_CLIQUE, POD_CLIQUE_SET
from spinney.api.labels import REPLICA_SET_HASH, SCALING_GROUP
from spinney.api.podgang import POD_GANG
from spinney.api.resource import Resource
from spinney.sim.advice.cut_names import is_meant

if TYPE_CHECKING:  # shells that complete a name read no snapshot, and do not wait for what one takes
    from spinney.api.core import Pod
    from spinney.sim.snapshots.snapshot import ClusterSnapshot

POD_GROUPS: Final = (
    kai.POD_GROUP,
    coscheduling.POD_GROUP,
    volcano.POD_GROUP,
    workload_v1beta1.POD_GROUP,
    workload_v1alpha2.POD_GROUP,
    workload_v1alpha1.WORKLOAD,
)
_WORDS: Final[Mapping[str, tuple[Resource, ...]]] = {
    "pod": (POD,),
    "podgang": (POD_GANG,),
    "pcs": (POD_CLIQUE_SET,),
    "pclq": (POD_CLIQUE,),
    "pcsg": (POD_CLIQUE,),
    "podgroup": POD_GROUPS,
    "queue": (kai.QUEUE,),
}
_CALLED: Final = {
    "pod": ("po", "pods"),
    "podgang": ("gang", "gangs", "podgangs"),
    "pcs": ("podcliqueset", "podcliquesets"),
    "pclq": ("podclique", "podcliques"),
    "pcsg": ("podcliquescalinggroup", "podcliquescalinggroups"),
    "podgroup": ("podgroups", "workload", "workloads"),
    "queue": ("queues",),
}
_OTHER_WORDS: Final = {other: word for word, others in _CALLED.items() for other in others}
_SHORT: Final = {
    "deploy": "deployment",
    "sts": "statefulset",
    "rs": "replicaset",
    "cj": "cronjob",
    "lws": "leaderworkerset",
}
"""How kubectl abbreviates workloads."""
_COHORT: Final = "cohort/"
"""How the names of Kueue's cohorts begin among queues."""
_EITHER: Final = {"pg": ("podgang", "podgroup")}
"""Both PodGangs and PodGroups call themselves ``pg``."""
_LISTED_BY: Final[Mapping[tuple[str, ...], str]] = {
    ("pod",): "'kubectl get pods -A' lists",
    ("pclq",): "'kubectl get podcliques -A' lists",
    ("pcsg",): "'kubectl get podcliquescalinggroups -A' lists",
    ("queue",): "'spinney queues' lists",
}
_SUGGESTED: Final = 3
"""Names that are suggested for one that is not there."""
_TELLING: Final = 3
"""Characters that say more than chance would: one or two are in the suffix of many a pod."""
_ALL_LISTED_BY: Final = "'spinney get gangs -A' and 'spinney get sets -A' list"


@dataclass(frozen=True, order=True)
class AdviceSubject:
    """One object that is asked about."""

    word: str
    """How the kind is written on a command line: ``pod``, ``podgang``, ``pcs``, ``pclq``, ``pcsg``, ``podgroup``,
    ``queue``.

    Any other is the kind of a workload that several gangs were made for.
    """
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.word}/{self.name}" + (f" in namespace {self.namespace}" if self.namespace else "")


class UnknownSubject(ValueError):
    """A kind nobody can ask about."""


class NoSuchSubject(LookupError):
    """Nothing of that name is there."""


class AmbiguousSubject(LookupError):
    """Several objects have that name; ``candidates`` are what to ask for instead."""

    def __init__(self, name: str, candidates: list[AdviceSubject]) -> None:
        listed = ", ".join(map(str, candidates))
        super().__init__(f"{name!r} could be {listed}; write KIND/NAME, and -n for the namespace")
        self.candidates = candidates


def kinds_called(word: str) -> tuple[Resource, ...]:
    """Return the kinds that a word such as ``gang`` stands for, all for none; raises :class:`UnknownSubject`."""
    words = _words(_word(word)) if word else tuple(_WORDS)
    return tuple(resource for each in words for resource in _WORDS[each])


def written_out(kind: str) -> str:
    """Return the word for a kind of workload that kubectl abbreviates, such as ``sts``; any other stays as it is."""
    return _SHORT.get(kind.lower(), kind)


def may_be_queue(text: str) -> bool:
    """Tell whether ``text`` may name a queue: it says so, or it says no kind."""
    kind, slash, _ = text.rpartition("/")
    return not slash or text.startswith(_COHORT) or _OTHER_WORDS.get(kind.lower(), kind.lower()) == "queue"


def find(
    snapshot: "ClusterSnapshot", text: str, namespace: str | None = None, *, queues: Iterable[str] = ()
) -> AdviceSubject:
    """Return what ``text`` (``pod/NAME`` or ``NAME``) names; without a namespace all are looked through.

    ``queues`` are further queues that can be asked about: those that gangs name and that have no object.
    Raises :class:`UnknownSubject`, :class:`NoSuchSubject` or :class:`AmbiguousSubject`.
    """
    _must_be_named(text)
    kind, _, own = text.rpartition("/")
    kind = written_out(kind)
    if kind and kind.lower() not in {*_WORDS, *_OTHER_WORDS}:
        found = _made_for(snapshot, kind, own, namespace) or _pod_of(snapshot, kind, own, namespace)
        if found is not None:
            return found
    if _is_workload(kind):
        raise NoSuchSubject(_has_no_pods(snapshot, text, kind, own, namespace))
    word, name = _parse(text)
    words = _words(word) if word else tuple(_WORDS)
    known = dict.fromkeys(_candidates(snapshot, words))
    if "queue" in words:
        known |= dict.fromkeys(AdviceSubject("queue", "", queue) for queue in queues)
    named = [each for each in known if is_meant(each.name, name)]
    here = [each for each in named if namespace is None or each.namespace in ("", namespace)]
    if not here and not word:
        workload = _made_for(snapshot, "", name, namespace) or _pod_of(snapshot, "", name, namespace)
        if workload is not None:
            return workload
    if not here and "queue" in words:
        here = [each for each in dict.fromkeys(_led_to(snapshot, name, namespace)) if each in known]
    if not here and not word and (said := _said_by_kueue(snapshot, text, "", name, namespace)):
        raise NoSuchSubject(said)
    if not here:
        raise NoSuchSubject(_not_found(snapshot, text, words, known, namespace=namespace, elsewhere=named))
    # A backend names the PodGroup it makes after its PodGang: the gang is what people mean.
    gangs = {(each.namespace, each.name) for each in here if each.word == "podgang"}
    distinct = [each for each in here if each.word != "podgroup" or (each.namespace, each.name) not in gangs]
    if len(distinct) > 1:
        raise AmbiguousSubject(name, distinct)
    return distinct[0]


def _has_no_pods(snapshot: "ClusterSnapshot", text: str, kind: str, name: str, namespace: str | None) -> str:
    """Return why nothing can be told of a workload that has no pods here: where else it is, or what it may wait for."""
    if said := _said_by_kueue(snapshot, text, kind, name, namespace):
        return said
    from spinney.explain.amounts import first_few  # noqa: PLC0415 - shells that complete a name do not wait for it

    every = _with_pods(snapshot)
    below = [f"{each.word}/{each.name}" for each in every if _may_be_of(each, name, namespace)]
    if below:  # what its pods are made from need not say so itself, as a Job of a JobSet
        return f"no pod says that it is of {text}; ask about what may be a part of it: {first_few(below)}"
    known = [each for each in every if each.word == kind.lower().split(".")[0].removesuffix("s")]
    if elsewhere := [each for each in known if each.name == name]:
        where = ", ".join(str(each).partition(" ")[2] for each in elsewhere)
        return f"{text} has no pods in namespace {namespace}, but {where}: pass -n {elsewhere[0].namespace}"
    near = _near(name, sorted(each.name for each in known if namespace in (None, each.namespace)))
    meant = f" (did you mean {' or '.join(near)}?)" if near else ""
    return (
        f"{text} has no pods: it does not exist{meant}, asks for none, or is suspended, or its controller does not "
        "run; 'kubectl describe' shows what it waits for, and 'spinney simulate -f' whether its gang would start"
    )


def _may_be_of(found: AdviceSubject, name: str, namespace: str | None) -> bool:
    """Tell whether something is called as controllers call what they make for a workload."""
    return found.name.startswith(f"{name}-") and namespace in (None, found.namespace)


def _with_pods(snapshot: "ClusterSnapshot") -> list[AdviceSubject]:
    """Return the workloads of users' kinds that pods were made from."""
    from spinney.api.podgang import PodGang  # noqa: PLC0415 - only where nothing else was found
    from spinney.gangs.source_workloads import workload  # noqa: PLC0415
    from spinney.sim.remedies.change import Makers  # noqa: PLC0415

    found = [
        AdviceSubject(made.kind.lower(), gang.metadata.namespace or "", made.name)
        for gang in snapshot.of(POD_GANG, PodGang)
        if (made := workload(gang)) is not None
    ]
    found += [
        AdviceSubject(maker.kind.lower(), maker.namespace or "", maker.name)
        for maker in Makers(snapshot).each_of(snapshot.pods)
        if maker.kind not in (POD_CLIQUE_SET.kind, NODE.kind)
    ]
    return sorted(set(found))


def _said_by_kueue(snapshot: "ClusterSnapshot", text: str, kind: str, name: str, namespace: str | None) -> str:
    """Return that Kueue has not admitted a workload, and what it says; empty if it is not Kueue's, or admitted."""
    from spinney.api.kueue import WORKLOAD, Workload  # noqa: PLC0415 - shells that complete a name do not wait for it
    from spinney.sim.overview.gates import kueue_says_of  # noqa: PLC0415

    said = kueue_says_of(snapshot.of(WORKLOAD, Workload), kind, name, namespace)
    return f"{text} has no pods yet: Kueue has not admitted it: {said}" if said else ""


def _led_to(snapshot: "ClusterSnapshot", name: str, namespace: str | None) -> Iterator[AdviceSubject]:
    """Yield the queue to which a LocalQueue of Kueue's leads: users know that one alone."""
    from spinney.api.kueue import LOCAL_QUEUE, LocalQueue  # noqa: PLC0415 - shells that complete a name do not wait

    for each in snapshot.of(LOCAL_QUEUE, LocalQueue):
        if each.metadata.name == name and namespace in (None, each.metadata.namespace) and each.spec.cluster_queue:
            yield AdviceSubject("queue", "", each.spec.cluster_queue)


def _made_for(snapshot: "ClusterSnapshot", kind: str, name: str, namespace: str | None) -> AdviceSubject | None:
    """Return the gang that was made for a workload of a user's kind, such as ``job/train``; ``None`` if none was.

    Where several were made for it, as for each replica of a LeaderWorkerSet, it is asked about itself. Without a kind
    any workload of that name is meant.
    """
    from spinney.api.podgang import PodGang  # noqa: PLC0415 - shells that complete a name do not wait for it
    from spinney.gangs.source_workloads import made_for  # noqa: PLC0415

    gangs: dict[AdviceSubject, list[AdviceSubject]] = {}
    for gang in snapshot.of(POD_GANG, PodGang):
        here, made = gang.metadata.namespace or "", made_for(gang, kind, name)
        if made is not None and namespace in (None, here):
            whole = AdviceSubject(made.kind.lower(), here, name)
            gangs.setdefault(whole, []).append(AdviceSubject("podgang", here, gang.metadata.name))
    if len(gangs) > 1:
        raise AmbiguousSubject(f"{kind}/{name}" if kind else name, sorted(gangs))
    for whole, parts in gangs.items():
        return parts[0] if len(parts) == 1 else whole
    return None


def _pod_of(snapshot: "ClusterSnapshot", word: str, name: str, namespace: str | None) -> AdviceSubject | None:
    """Return a pod of a workload for which no gang was made, such as ``deployment/web``: the first that has no node."""
    kind = word.lower().split(".")[0].removesuffix("s")
    found = [
        (bool(pod.spec.node_name), AdviceSubject("pod", pod.metadata.namespace or "", pod.metadata.name))
        for pod in snapshot.pods
        if namespace in (None, pod.metadata.namespace) and _belongs(pod, kind, name)
    ]
    return min(found)[1] if found else None


def _belongs(pod: "Pod", kind: str, name: str) -> bool:
    """Tell whether a workload controls a pod; a Deployment does so through the ReplicaSet that it names."""
    owner = pod.metadata.controller
    if owner is None or owner.kind == NODE.kind:
        return False
    if owner.name == name and kind in ("", owner.kind.lower()):
        return True
    of_template = f"{name}-{pod.metadata.labels.get(REPLICA_SET_HASH)}"
    return kind in ("", "deployment") and owner.kind == "ReplicaSet" and owner.name == of_template


def _is_workload(word: str) -> bool:
    """Tell whether a word means a kind of workload that gangs are made for, such as ``job``."""
    lowered = word.lower().split(".")[0]
    if not word or lowered in {*_WORDS, *_OTHER_WORDS, *_EITHER}:
        return False
    kinds = _workload_kinds()
    return lowered in kinds or lowered.removesuffix("s") in kinds


def _workload_kinds() -> set[str]:
    """Return the kinds of workloads that the grouper's own rules know, in lower case."""
    from spinney.grouping.loading import built_in  # noqa: PLC0415 - only where nothing else was found

    return {kind.rpartition("/")[2].lower() for kind in built_in().watched()}


def _must_be_named(text: str) -> None:
    """Refuse what has no name, or a slash and no kind before it."""
    before, slash, name = text.rpartition("/")
    if not name:
        raise UnknownSubject(
            f"{text!r} names nothing; write NAME or KIND/NAME, such as {before.strip('/') or 'pod'}/train"
        )
    if slash and not before.strip("/"):
        raise UnknownSubject(f"{text!r} has no kind before the slash; write {name}, or KIND/{name}")


def _parse(text: str) -> tuple[str, str]:
    if text.startswith(_COHORT):
        return "queue", text
    word, slash, name = text.partition("/")
    return (_word(word), name) if slash else ("", text)


def _word(written: str) -> str:
    lowered = written.lower().split(".")[0]
    found = _OTHER_WORDS.get(lowered, lowered)
    if found in _WORDS or found in _EITHER:
        return found
    near = get_close_matches(lowered, [*_WORDS, *_OTHER_WORDS, *_SHORT, *sorted(_workload_kinds())], 1)
    hint = f"; did you mean {near[0]}?" if near else "."
    known = f"{', '.join(_WORDS)}, and workloads such as job or deployment"
    raise UnknownSubject(f"{written!r} is no kind that can be asked about{hint} Known are {known}.")


def _words(word: str) -> tuple[str, ...]:
    return _EITHER.get(word, (word,))


def _candidates(snapshot: "ClusterSnapshot", words: tuple[str, ...]) -> Iterator[AdviceSubject]:
    for word in words:
        for resource in _WORDS[word]:
            for found in snapshot.objects.get(resource, ()):
                metadata = found.metadata
                # A scaling group is known by its cliques: it need not be read itself.
                name = metadata.labels.get(SCALING_GROUP, "") if word == "pcsg" else metadata.name
                if name:
                    yield AdviceSubject(word, metadata.namespace or "", name)


def _not_found(
    snapshot: "ClusterSnapshot",
    text: str,
    words: tuple[str, ...],
    known: Iterable[AdviceSubject],
    *,
    namespace: str | None,
    elsewhere: list[AdviceSubject],
) -> str:
    where = f" in namespace {namespace}" if namespace and words != ("queue",) else ""
    message = f"nothing called {text!r} was found{where}"
    if elsewhere:
        return f"{message}; there is {', '.join(map(str, elsewhere))}: pass -n {elsewhere[0].namespace}"
    if len(words) == len(_WORDS):  # without a kind, a workload may be meant
        known = (*known, *_with_pods(snapshot))
        if there := [each for each in known if each.name == text]:
            return f"{message}; there is {', '.join(map(str, there))}: pass -n {there[0].namespace}"
    names = sorted({each.name for each in known if namespace is None or each.namespace in ("", namespace)})
    if near := _near(text.rpartition("/")[2], names):
        return f"{message}; did you mean {' or '.join(near)}?"
    unlisted = [str(each) for word in words for each in _WORDS[word] if not snapshot.sees(each)]
    if unlisted and len(words) == 1:
        return f"{message}; not served or not allowed here: {', '.join(unlisted)}"
    return f"{message}; {_LISTED_BY.get(words, _ALL_LISTED_BY)} what there is"


def _near(name: str, names: list[str]) -> list[str]:
    """Return a few names that may have been meant: those that are spelt almost so, and those it is a part of."""
    parts = [each for each in names if name in each] if len(name) >= _TELLING else []
    parts.sort(key=lambda each: (not each.startswith(name), len(each)))
    return list(dict.fromkeys((*get_close_matches(name, names, _SUGGESTED), *parts)))[:_SUGGESTED]
