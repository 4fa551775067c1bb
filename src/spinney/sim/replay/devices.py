"""Which GPUs of its node each pod holds, by number: a division of devices that the scheduler's choices allow."""

from collections import Counter
from collections.abc import Iterable, Sequence

from spinney.sim.replay.trace import WHOLE, Ask, Machine


class DeviceBook:
    """The GPUs of every machine and who shares them. Mutable."""

    def __init__(self, machines: Iterable[Machine]) -> None:
        self._idle = {machine.name: list(range(machine.gpus - 1, -1, -1)) for machine in machines}
        self._shared: dict[str, dict[str, tuple[int, int]]] = {}
        """By machine and group: the device, and how many share it."""

    def suffice(self, asks: Iterable[tuple[str, Ask, Sequence[str]]]) -> bool:
        """Tell whether pods can have their devices, each on its machine, shared ones by group."""
        wanted: Counter[str] = Counter()
        opened: set[tuple[str, str]] = set()
        for machine, ask, groups in asks:
            if ask.milli == WHOLE:
                wanted[machine] += ask.gpus
            else:
                opened |= {(machine, group) for group in groups if group not in self._shared.get(machine, {})}
        wanted.update(machine for machine, _ in opened)
        return all(count <= len(self._idle[machine]) for machine, count in wanted.items())

    def take(self, machine: str, ask: Ask, groups: Sequence[str]) -> tuple[int, ...]:
        """Give a pod its devices; pods of one group share one."""
        idle = self._idle[machine]
        if ask.gpus and ask.milli == WHOLE:
            return tuple(idle.pop() for _ in range(ask.gpus))
        shared = self._shared.setdefault(machine, {})
        found = []
        for group in groups:
            device, users = shared.get(group) or (idle.pop(), 0)
            shared[group] = (device, users + 1)
            found.append(device)
        return tuple(found)

    def give_back(self, machine: str, ask: Ask, devices: Sequence[int], groups: Sequence[str]) -> None:
        """Take back what :meth:`take` gave."""
        idle = self._idle[machine]
        if ask.gpus and ask.milli == WHOLE:
            idle.extend(devices)
            return
        shared = self._shared[machine]
        for group in groups:
            device, users = shared[group]
            if users > 1:
                shared[group] = (device, users - 1)
            else:
                del shared[group]
                idle.append(device)
