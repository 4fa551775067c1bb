"""Who was placed where, as a file that others can check a run with.

JSON: ``{"<pod>": {"node": "<node>", "gpus": [0, 3]}, ...}`` for every pod that was placed; where a job was placed more
than once, its last place counts.
"""

from pathlib import Path

import msgspec

from spinney.sim.replay.history import History
from spinney.sim.replay.objects import pod_name
from spinney.sim.replay.trace import Trace


def write_placements(path: Path, trace: Trace, history: History) -> int:
    """Write the file; return how many pods are in it."""
    found: dict[str, dict[str, object]] = {}
    for event in history.events:
        if event.what == "started":
            job = trace.jobs[event.job]
            for number, (node, devices) in enumerate(zip(event.nodes, event.devices, strict=True)):
                found[pod_name(job, number)] = {"node": node, "gpus": sorted(devices)}
    path.write_bytes(msgspec.json.encode(found))
    return len(found)
