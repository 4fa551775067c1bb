"""Hashes that say whether a pod still comes from the template in force.

Ours are taken over canonical JSON of what the user wrote, so neither a library nor an operator upgrade changes them.
They begin with ``s1``: Grove's never contain a 1, so one glance (and :func:`is_ours`) tells them apart.

Taking over from Grove rolls no pod. Grove's hashes cannot be computed again, so when Grove had finished with the
generation in force, what it recorded *is* the hash of the present templates. :func:`adoption` pairs our hash of each
template with the one on record; :func:`template_hashes` answers with the record as long as the template is the same.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from spinney.api import labels as marks
from spinney.api.grove import PodClique, PodCliqueSet, PodCliqueTemplateSpec
from spinney.api.struct import JSON
from spinney.backends import additions
from spinney.operator.desired import names

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"  # no vowels and no look-alikes, as Kubernetes picks for generated names
OURS = "s1"
LENGTH = 10


@dataclass(frozen=True)
class TemplateHashes:
    """The hash of a PodCliqueSet's templates as a whole, and of each clique's by its template name."""

    generation: str
    cliques: Mapping[str, str]


def digest(value: Any, length: int = LENGTH) -> str:
    """Return a short, label-safe name for a JSON value; equal values have equal names, on any machine, forever."""
    canonical = msgspec.json.encode(value, order="deterministic")
    number = int.from_bytes(hashlib.sha256(canonical).digest(), "big")
    letters = []
    for _ in range(length):
        number, letter = divmod(number, len(ALPHABET))
        letters.append(ALPHABET[letter])
    return "".join(letters)


def is_ours(recorded: str) -> bool:
    """Tell whether a recorded hash was taken by us and not by Grove."""
    return recorded.startswith(OURS)


def template_hashes(pcs: PodCliqueSet) -> TemplateHashes:
    """Return the hashes in force: the adopted record of a template Grove hashed, ours of any other."""
    adopted = _adopted(pcs.metadata.annotations)
    own = _own_hashes(pcs)
    return TemplateHashes(
        generation=adopted.get(own.generation, own.generation),
        cliques={clique: adopted.get(f"{clique}/{value}", value) for clique, value in own.cliques.items()},
    )


def adoption(pcs: PodCliqueSet, cliques: Iterable[PodClique]) -> str | None:
    """Return the value for the annotation that adopts Grove's hashes, or ``None`` when there is nothing to adopt.

    Only a generation that Grove had fully synced is adopted: a change made since is a change, and rolls as one.
    """
    status = pcs.status
    recorded = status.current_generation_hash
    if not recorded or is_ours(recorded) or additions.ADOPTED_HASHES in pcs.metadata.annotations:
        return None
    if status.observed_generation != pcs.metadata.generation:
        return None
    own = _own_hashes(pcs)
    pairs = {own.generation: recorded}
    for clique in cliques:
        theirs = clique.metadata.labels.get(marks.POD_TEMPLATE_HASH)
        template = names.template_name(clique.metadata.name, clique.metadata.labels)
        if template in own.cliques and theirs is not None and not is_ours(theirs):
            pairs.setdefault(f"{template}/{own.cliques[template]}", theirs)
    return json.dumps(pairs, sort_keys=True, separators=(",", ":"))


def _own_hashes(pcs: PodCliqueSet) -> TemplateHashes:
    template = pcs.spec.template
    contents = [_content(clique, template.priority_class_name or "") for clique in template.cliques]
    return TemplateHashes(
        generation=OURS + digest(contents),
        cliques={c.name: OURS + digest(content) for c, content in zip(template.cliques, contents, strict=True)},
    )


def _content(clique: PodCliqueTemplateSpec, priority_class_name: str) -> JSON:
    """Return what of a clique's template reaches its pods; replicas, minimums and topology do not."""
    return {
        "labels": dict(clique.labels),
        "annotations": dict(clique.annotations),
        "podSpec": clique.spec.pod_spec,
        "priorityClassName": priority_class_name,
    }


def _adopted(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """Return what is on record; nothing if somebody wrote something else there, so that pods roll once."""
    try:
        return msgspec.json.decode(annotations.get(additions.ADOPTED_HASHES, "{}"), type=dict[str, str])
    except msgspec.DecodeError:
        return {}
