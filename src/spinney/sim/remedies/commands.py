"""The commands that change what a gang is made from, and what is said where there is none."""

import json
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from spinney.sim.remedies.change import Patch, RemedyStep

OF_GANGS: Final = frozenset({"minimum", "relax", "queue", "preemptible", "tolerate"})
"""The levers that change the object of a gang, or its pods."""


def with_commands(
    steps: Sequence[RemedyStep], patches: Sequence[Patch], words: Sequence[str]
) -> tuple[RemedyStep, ...]:
    """Return steps with the commands that make them where a gang comes from, and with words for what has no command.

    They follow the last step that is made there.
    """
    last = max((number for number, step in enumerate(steps) if step.lever in OF_GANGS), default=None)
    if last is None or not (patches or words):
        return tuple(steps)
    anew = [f"{each.kind} {each.name} has to be created anew for that" for each in patches if each.recreate]
    told = msgspec.structs.replace(
        steps[last], text="; ".join([steps[last].text, *anew, *words]), command="\n".join(map(_command, patches))
    )
    return (*steps[:last], told, *steps[last + 1 :])


def _command(patch: Patch) -> str:
    how, what = ("merge", patch.merge) if patch.merge is not None else ("json", patch.operations)
    change = f"--type {how} -p '{_compact(what)}'"
    if not patch.recreate:
        return f"kubectl patch {patch.target} {change}"
    changed = f"kubectl get {patch.target} -o json | kubectl patch --local -f - {change} -o json"
    return f"{changed} | kubectl replace --force -f -"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))
