"""A check after every test: what it opened is closed again.

A socket, a pipe or a file that a test leaves open is closed by the garbage collector at some later time, and the
warning about it fails whichever test runs then. So the descriptors of the process are compared before and after
each test, once its fixtures and its event loop are gone, and the test that left one open fails. What a fixture
of a wider scope opens stays as long as the fixture does.
"""

import os
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

Descriptor = tuple[int, int, int]
"""What the system knows a descriptor by: its number, and the device and inode of what it stands for."""

_known = pytest.StashKey[set[Descriptor]]()
_PATIENCE = 60.0  # seconds
_KINDS = {stat.S_IFSOCK: "socket", stat.S_IFIFO: "pipe", stat.S_IFREG: "file", stat.S_IFCHR: "device"}


def _opened() -> set[Descriptor]:
    found = set()
    for number in (int(entry.name) for entry in Path("/dev/fd").iterdir()):
        try:
            state = os.fstat(number)
        except OSError:  # the one that the directory was read through
            continue
        found.add((number, state.st_dev, state.st_ino))
    return found


def _left(known: set[Descriptor]) -> set[Descriptor]:
    """Return what is open beyond ``known``; a server in another thread has time to see that its client is gone."""
    patience = time.monotonic() + _PATIENCE
    while left := _opened() - known:
        if threading.active_count() == 1 or time.monotonic() > patience:
            break
        time.sleep(0.01)
    return left


def _told(descriptor: Descriptor) -> str:
    number = descriptor[0]
    kind = _KINDS.get(stat.S_IFMT(os.fstat(number).st_mode), "descriptor")
    try:
        return f"{kind} {number} ({Path(f'/proc/self/fd/{number}').readlink()})"
    except OSError:  # not on Linux
        return f"{kind} {number}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Note what is open before a test."""
    item.config.stash[_known] = _opened()
    yield


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest) -> Iterator[None]:
    """Except what a fixture that outlives the test has opened."""
    before = _opened() if fixturedef.scope != "function" else set()
    result = yield
    if fixturedef.scope != "function":
        request.config.stash[_known] |= _opened() - before
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Fail a test that leaves something open."""
    yield
    if left := sorted(_left(item.config.stash[_known])):
        pytest.fail(f"left open: {', '.join(map(_told, left))}; close it before the test ends", pytrace=False)
