"""The log of a simulated container: what happened to it, and the errors a kubelet would give."""

import asyncio
from typing import Any

import pytest

from spinney.server import Request
from tests.server.api import PODS, Api, a_binding, a_pod

_STARTED = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
_ENDED = {
    "terminated": {"exitCode": 3, "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:05Z"},
}
_START_LINE = "container c started (simulated: no program runs in it)\n"
_END_LINE = "container c ended with exit code 3\n"


async def _a_bound_pod(api: Api, state: Any = None, **more: Any) -> None:
    await api.create(PODS, a_pod())
    await api.create(f"{PODS}/p/binding", a_binding())
    if state is not None:
        await _report(api, state, **more)


async def _report(api: Api, state: Any, **more: Any) -> None:
    status = {"name": "c", "state": state, "restartCount": 0, "image": "i", "imageID": "", "ready": True, **more}
    await api.patch(f"{PODS}/p/status", {"status": {"containerStatuses": [status]}})


async def _log(api: Api, status: int = 200, **query: str) -> str:
    answer = await api.send("GET", f"{PODS}/p/log", query=query)
    assert answer.status == status, answer.body
    return str(answer.body["message"]) if status != 200 else answer.body.decode()


async def test_a_log_tells_how_the_container_fared(api: Api) -> None:
    """It says when the container started and how it ended, in as many lines as asked for."""
    await _a_bound_pod(api, _ENDED)
    assert await _log(api) == _START_LINE + _END_LINE
    assert await _log(api, container="c", tailLines="1") == _END_LINE
    assert await _log(api, tailLines="0") == ""
    assert await _log(api, limitBytes="9") == "container"
    assert await _log(api, tailLines="1", timestamps="true") == f"2026-01-01T00:00:05Z {_END_LINE}"


async def test_there_is_no_log_before_the_container(api: Api) -> None:
    """A pod without a node has an empty log; a container that has not started is an error that says what it awaits."""
    await api.create(PODS, a_pod())
    assert await _log(api) == ""
    await api.create(f"{PODS}/p/binding", a_binding())
    assert await _log(api, 400) == 'container "c" in pod "p" is waiting to start: ContainerCreating'
    await _report(api, {"waiting": {"reason": "ImagePullBackOff"}})
    assert (await _log(api, 400)).endswith("is waiting to start: ImagePullBackOff")


async def test_the_log_before_a_restart_is_kept(api: Api) -> None:
    """With ``previous`` the log is the last ended container's, and an error where there is none."""
    await _a_bound_pod(api, _STARTED)
    assert "not found" in await _log(api, 400, previous="true")
    await _report(api, _STARTED, lastState=_ENDED, restartCount=1)
    assert await _log(api, previous="true") == _START_LINE + _END_LINE


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"container": "x"}, "container x is not valid for pod p"),
        ({"tailLines": "-1"}, "tailLines"),
        ({"limitBytes": "all"}, "limitBytes"),
    ],
)
async def test_wrong_questions_are_refused(api: Api, query: dict[str, str], said: str) -> None:
    """A container that is not there, or a number that is none, is the client's mistake."""
    await _a_bound_pod(api, _STARTED)
    assert said in await _log(api, 400, **query)


async def test_one_of_several_containers_has_to_be_named(api: Api) -> None:
    """The error lists the containers to choose from."""
    containers = [{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]
    await api.create(PODS, a_pod(containers=containers))
    assert await _log(api, 400) == "a container name must be specified for pod p, choose one of: [a b]"


async def test_following_ends_with_the_container(api: Api) -> None:
    """Who follows a log gets the end of the container when it comes, and is let go then."""
    await _a_bound_pod(api, _STARTED)
    answer = await api.server.handle(Request("GET", f"{PODS}/p/log", {"follow": "true"}, {}))
    assert not isinstance(answer.body, bytes)
    stream = answer.body
    assert (await anext(stream)).decode() == _START_LINE
    rest = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    await api.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}})
    await asyncio.sleep(0)
    assert not rest.done()
    await _report(api, _ENDED)
    assert (await rest).decode() == _END_LINE
    assert [chunk async for chunk in stream] == []


@pytest.mark.parametrize("subresource", ["exec", "attach", "portforward", "proxy"])
async def test_nothing_connects_to_a_simulated_container(api: Api, subresource: str) -> None:
    """Exec and its like are refused with the reason: the pod is nowhere yet, or on a simulated node."""
    await api.create(PODS, a_pod())
    answer = await api.send("GET", f"{PODS}/p/{subresource}")
    assert (answer.status, answer.body["message"]) == (400, "pod p does not have a host assigned")
    await api.create(f"{PODS}/p/binding", a_binding())
    for method in ("GET", "POST"):
        answer = await api.send(method, f"{PODS}/p/{subresource}")
        assert (answer.status, answer.body["message"][:32]) == (400, "pod p runs on a simulated node: ")
