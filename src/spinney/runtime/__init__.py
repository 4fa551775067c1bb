"""Time, chance and execution, passed in.

Nothing in Spinney reads the wall clock, draws a random number or starts a thread on its own: it is handed a
:class:`Runtime`. So a whole cluster can run in one thread on virtual time, and a seed replays it exactly.
"""

from spinney.runtime.clock import Clock, SystemClock, VirtualClock
from spinney.runtime.collection import collect_young, collection_held_off, settle_garbage_collector
from spinney.runtime.executor import Executor, InlineExecutor, ThreadExecutor
from spinney.runtime.runtime import Runtime
from spinney.runtime.virtual import Deadlock, VirtualTimeLoop, run_virtual, run_virtual_within

__all__ = [
    "Clock",
    "Deadlock",
    "Executor",
    "InlineExecutor",
    "Runtime",
    "SystemClock",
    "ThreadExecutor",
    "VirtualClock",
    "VirtualTimeLoop",
    "collect_young",
    "collection_held_off",
    "run_virtual",
    "run_virtual_within",
    "settle_garbage_collector",
]
