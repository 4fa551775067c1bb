"""The bundle of clock, randomness and executor that every component is given."""

import random
import uuid
from dataclasses import dataclass

from spinney.runtime.clock import Clock, SystemClock, VirtualClock
from spinney.runtime.executor import Executor, InlineExecutor, ThreadExecutor


@dataclass(frozen=True)
class Runtime:
    """Time, chance and execution of one process."""

    clock: Clock
    random: random.Random
    executor: Executor

    @classmethod
    def system(cls) -> "Runtime":
        """Real time, real chance, a worker thread."""
        return cls(clock=SystemClock(), random=random.Random(), executor=ThreadExecutor())

    @classmethod
    def virtual(cls, seed: int = 0) -> "Runtime":
        """Virtual time and seeded chance in one thread; use inside :func:`~spinney.runtime.virtual.run_virtual`."""
        return cls(clock=VirtualClock(), random=random.Random(seed), executor=InlineExecutor())

    def uid(self) -> str:
        """Draw a new object UID (a version 4 UUID) from this runtime's randomness."""
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))
