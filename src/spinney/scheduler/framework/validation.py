"""What counts as an answer of a plugin: checked where the answer is one, never node by node while all is well.

Each function returns the answer in the form the scheduler works with, or raises
:class:`~spinney.extensions.answers.InvalidAnswer`, which says what was found and what was expected.
"""

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from numbers import Real
from operator import index
from types import NoneType
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from spinney.api.names import MAX_ANNOTATIONS, bytes_of_annotations, qualified_name_faults
from spinney.cluster.table import Mask
from spinney.explain.amounts import counted
from spinney.extensions.answers import InvalidAnswer, instance_of, shown
from spinney.runtime.faults import printable
from spinney.scheduler.fairshare import Amounts
from spinney.scheduler.framework.events import CapacityVerdict
from spinney.scheduler.framework.nodes import NodeSet, Scores
from spinney.scheduler.framework.tasks import PodInfo

_NUMBERS: Final = frozenset("fiub")
_FLOATS: Final = np.dtype(np.float64)
_VERDICT_FIELDS: Final = (("ok", (bool, np.bool_), "True or False"), ("reason", str, "text"), ("message", str, "text"))
_a_verdict: Final = instance_of(CapacityVerdict, "a CapacityVerdict")
_a_reason: Final = instance_of((str, NoneType), "a reason or None")


def mask_of(answer: Any, nodes: NodeSet) -> Mask:
    """Return one truth value per node."""
    found = _column(answer, nodes, "one truth value per node")
    if found.dtype.kind != "b" and found.size:
        raise InvalidAnswer(_values(answer, found), "one truth value per node")
    return found.astype(np.bool_, copy=False)


def scores_of(answer: Any, nodes: NodeSet) -> Scores:
    """Return one score per node; whether all are finite is :func:`must_be_finite`'s to say."""
    if type(answer) is np.ndarray and answer.dtype is _FLOATS and answer.shape == nodes.rows.shape:
        return answer
    found = _column(answer, nodes, "one number per node")
    if found.dtype.kind not in _NUMBERS:
        raise InvalidAnswer(_values(answer, found), "one number per node")
    return found.astype(np.float64, copy=False)


def few_of(answer: Any, nodes: int) -> Sequence[float]:
    """Return one number or truth value per node of a few; whether all are finite is to be seen from their sum."""
    if type(answer) is list and len(answer) == nodes:  # most are
        return answer
    found = answer.tolist() if isinstance(answer, np.ndarray) else answer
    if not isinstance(found, list | tuple):
        raise InvalidAnswer(shown(answer), "a list with one value per node")
    if len(found) != nodes:
        raise InvalidAnswer(f"{len(found)} values", f"{nodes}, one per node")
    return found


def all_numbers(answers: list[Any]) -> Scores | None:
    """Return scores that nodes were given one by one; ``None`` if one of them is no number."""
    try:
        found = np.asarray(answers)
    except ValueError:  # one of them has a length
        return None
    return found.astype(np.float64, copy=False) if found.ndim == 1 and found.dtype.kind in _NUMBERS else None


def number(answer: Any) -> float:
    """Return a score."""
    found = answer if isinstance(answer, Real) else single(answer)
    if not isinstance(found, Real | np.bool_):
        raise InvalidAnswer(shown(answer), "a finite number")
    try:
        return float(found)
    except OverflowError:
        raise InvalidAnswer("a number too large for a float", "a finite number") from None


def single(answer: Any) -> Any:
    """Return the value in an array without dimensions, as numpy gives one for one node; anything else as it is."""
    return answer[()] if isinstance(answer, np.ndarray) and not answer.ndim else answer


def finite(answer: Any) -> float:
    """Return a score that is finite."""
    score = number(answer)
    if not isfinite(score):
        raise InvalidAnswer(str(score), "a finite number")
    return score


def must_be_finite(score: Scores, nodes: NodeSet) -> None:
    """Check the scores of some nodes; the first that is not finite is named."""
    odd = np.flatnonzero(~np.isfinite(score))
    if len(odd):
        others = f" and for {len(odd) - 1} other(s)" if len(odd) > 1 else ""
        found = f"{score[odd[0]]} for node {nodes[int(odd[0])].name}{others}"
        raise InvalidAnswer(found, "a finite number")


def sign(answer: Any) -> int:
    """Return which of two things a comparison puts first; truth values are none, for they put nothing first."""
    try:
        if not isinstance(answer, bool):
            return index(answer)
    except TypeError:
        pass  # said below, as of a truth value
    raise InvalidAnswer(shown(answer), "a whole number: negative, 0 or positive")


def count(answer: Any) -> int:
    """Return how many of something there are, or may be."""
    try:
        return index(answer)
    except TypeError:
        raise InvalidAnswer(shown(answer), "a whole number") from None


def comparable(answer: Any) -> Any:
    """Return a key to sort by; that two of them compare is seen when they do."""
    if isinstance(answer, float | np.floating) and answer != answer:  # noqa: PLR0124 - only NaN is so
        raise InvalidAnswer("nan", "something that compares")
    return answer


def distinction(answer: Any) -> tuple[object, ...]:
    """Return what tells a job apart: a tuple of what can be told apart itself."""
    if not isinstance(answer, tuple):
        raise InvalidAnswer(shown(answer), "a tuple")
    hash(answer)
    return answer


def truth(answer: Any) -> bool:
    """Tell whether a plugin agrees."""
    if answer is True or answer is False:
        return bool(answer)
    found = single(answer)
    if not isinstance(found, np.bool_):
        raise InvalidAnswer(shown(answer), "True or False")
    return bool(found)


def refusal(answer: Any) -> str | None:
    """Return why a plugin does not agree, the empty text if it does not say why, or ``None`` if it agrees."""
    if isinstance(answer, str):
        return printable(answer)
    return None if truth(answer) else ""


amounts: Final[Callable[[Any], Amounts]] = instance_of(Amounts, "Amounts")
bound: Final[Callable[[Any], Amounts | None]] = instance_of((Amounts, NoneType), "Amounts or None")


def reason(answer: Any) -> str | None:
    """Return what keeps a task from being placed, or ``None``."""
    found: str | None = _a_reason(answer)
    return found if found is None else printable(found)


def verdict(answer: Any) -> CapacityVerdict:
    """Return whether there is capacity, and why not."""
    found: CapacityVerdict = _a_verdict(answer)
    if found.ok is True:  # most are
        return found
    for field, kind, expected in _VERDICT_FIELDS:
        value = getattr(found, field)
        if not isinstance(value, kind):
            raise InvalidAnswer(f"a CapacityVerdict whose {field} is {shown(value)}", expected)
    texts = {"reason": printable(found.reason), "message": printable(found.message)}
    return msgspec.structs.replace(found, ok=bool(found.ok), **texts)


def annotations(answer: Any, present: Mapping[str, str]) -> Mapping[str, str]:
    """Return annotations that a pod can have beside those that are present."""
    if not isinstance(answer, Mapping) or not all(isinstance(each, str) for pair in answer.items() for each in pair):
        raise InvalidAnswer(shown(answer), "a mapping of text to text")
    found: dict[str, str] = {}
    for key, value in answer.items():
        name, text = printable(key), printable(value)  # no encoder knows the texts of numpy
        if faults := qualified_name_faults(name.lower()):
            raise InvalidAnswer(f"the annotation {shown(key)}", f"another key: it {faults[0]}")
        if text != value:
            raise InvalidAnswer(f"the annotation {name}: {shown(value)}", "a text that can be encoded")
        found[name] = text
    size = bytes_of_annotations({**present, **found}) if found else 0
    if size > MAX_ANNOTATIONS:
        raise InvalidAnswer(
            f"annotations with which the pod has {size} bytes of them", f"at most {MAX_ANNOTATIONS} bytes with its own"
        )
    return found


def victims(answer: Any) -> Sequence[PodInfo] | None:
    """Return tasks that would have to go, or ``None`` where there are no more of them."""
    if answer is None:
        return None
    expected = "scenarios, each a sequence of tasks"
    if not isinstance(answer, Sequence):
        raise InvalidAnswer(shown(answer), expected)
    for each in answer:
        if not isinstance(each, PodInfo):
            raise InvalidAnswer(f"a scenario with {shown(each)} in it", expected)
    return answer


def node_sets(answer: Any) -> Sequence[NodeSet] | None:
    """Return node sets; sets that are made on demand are not made for this."""
    expected = "a list of node sets, or None where the plugin has no say"
    if answer is None:
        return None
    if not isinstance(answer, Sequence) or isinstance(answer, str | NodeSet):
        raise InvalidAnswer(shown(answer), expected)
    if isinstance(answer, list | tuple):
        for each in answer:
            if not isinstance(each, NodeSet):
                raise InvalidAnswer(f"a list with {shown(each)} in it", expected)
    return answer


def _column(answer: Any, nodes: NodeSet, expected: str) -> npt.NDArray[Any]:
    """Return a value per node; a single value, which has no length, is that of every node."""
    try:
        found = np.asarray(answer)
    except ValueError:  # a list with lists of several lengths in it
        raise InvalidAnswer(shown(answer), expected) from None
    if found.shape == nodes.rows.shape:
        return found
    if found.ndim:
        given = counted(len(found), "value") if found.ndim == 1 else f"values of shape {found.shape}"
        raise InvalidAnswer(f"{given} for {counted(len(nodes), 'node')}", expected)
    return np.broadcast_to(found, nodes.rows.shape)


def _values(answer: Any, found: npt.NDArray[Any]) -> str:
    return f"values of type {found.dtype}" if isinstance(answer, list | tuple | np.ndarray) else shown(answer)
