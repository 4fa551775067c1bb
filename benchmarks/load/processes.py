"""Our command line as a process, and what processes have used, as Linux tells: processor time and memory."""

import os
import sys
from pathlib import Path

SPINNEY = (sys.executable, "-c", "from spinney.cli import main; main(prog_name='spinney')")
_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """Return the processor time, user and system, a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def peak_memory(pid: int) -> float:
    """Return the most memory a process has held since it was started, in MiB."""
    return _status(pid, "VmHWM")


def resident_memory(pid: int) -> float:
    """Return the memory a process holds, in MiB."""
    return _status(pid, "VmRSS")


def _status(pid: int, field: str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) / 1024
    raise LookupError(f"/proc/{pid}/status has no {field}")
