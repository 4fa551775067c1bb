"""What the kinds that people look up are for, in our own words: the texts that ``kubectl explain`` shows.

A text belongs to a type (``core.Pod``, in every version) or to a field of one. The types are the kinds themselves and
what stands one level below them; deeper ones have names and types only.
"""

from collections.abc import Mapping
from typing import Final

from spinney.server.about.descriptions import core, groups, pods
from spinney.server.about.descriptions.texts import ITSELF, Texts

OF_ALL: Final[Texts] = {  # of the fields that every object has
    "apiVersion": "The group and version in which this object is written, such as apps/v1.",
    "kind": "What sort of object this is.",
    "metadata": "Name, labels, owners and whatever else every object has.",
    "spec": "What is wanted.",
    "status": "What was last seen. Written by the system; a client only reads it.",
}
DESCRIBED: Final[Mapping[str, Texts]] = {**core.TYPES, **pods.TYPES, **groups.TYPES}  # by group and type


def description(message: str, field: str = ITSELF) -> str:
    """Return what is said of a type such as ``core.v1.Pod``, or of a field of it; nothing if that is nothing."""
    group, _, kind = message.split(".", 2)
    return DESCRIBED.get(f"{group}.{kind}", {}).get(field, "")
