"""``kubectl logs``, and what else wants something of a program: what a simulated container has to say.

No program runs in a simulated pod, so its log holds what happened to the container: when it started, and how it ended.
A client that follows a log gets each line when it is written; the answer ends with the container or its pod. Who wants
to reach into a container (``kubectl exec``, ``attach``, ``port-forward``, a proxy) is refused, with the reason.
"""

from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta

from spinney.api.struct import JSON
from spinney.runtime.numbers import whole_number_in
from spinney.server.exchange.message import Response
from spinney.server.exchange.status import StatusError, bad_request
from spinney.server.operations.context import Context, Target
from spinney.server.operations.reading import get

_TEXT = {"content-type": "text/plain; charset=utf-8"}
_TRUE = ("true", "1")

Line = tuple[str, str]  # when, what


def serve_log(context: Context, target: Target, query: Mapping[str, str]) -> Response:
    """Answer with the log of one container; refuse as a kubelet does where there is none."""
    pod = get(context, target).decode()
    container = _container(pod, query.get("container", ""))
    lines = _selected(_lines(pod, container, previous=query.get("previous") in _TRUE), query, context)
    stamped = query.get("timestamps") in _TRUE
    text = b"".join(_text(line, stamped=stamped) for line in lines)
    limit = _number(query, "limitBytes")
    if limit is not None:
        return Response(200, _TEXT, text[:limit])
    if query.get("follow") not in _TRUE or not _state(pod, container).get("running"):
        return Response(200, _TEXT, text)
    return Response(200, _TEXT, _following(context, target, container, text, stamped=stamped))


async def _following(
    context: Context, target: Target, container: str, text: bytes, *, stamped: bool
) -> AsyncIterator[bytes]:
    """Yield what is there, and how this run of the container ends when it does."""
    collection = context.collection(target.kind)
    followed = get(context, target)
    restarts = _status(followed.decode(), container).get("restartCount")
    yield text
    while (found := collection.get(target.key)) is not None and found.uid == followed.uid:
        status = _status(found.decode(), container)
        if not (status.get("state") or {}).get("running") or status.get("restartCount") != restarts:
            ended = (status.get("state") or {}).get("terminated") or (status.get("lastState") or {}).get("terminated")
            yield b"".join(_text(line, stamped=stamped) for line in _life(container, ended or {})[1:])
            return
        changed = collection.history.changed()
        try:
            await changed
        finally:
            collection.history.forget(changed)


def _container(pod: JSON, asked: str) -> str:
    name, spec = pod["metadata"]["name"], pod.get("spec") or {}
    ordinary = [each["name"] for each in spec.get("containers") or ()]
    others = [each["name"] for key in ("initContainers", "ephemeralContainers") for each in spec.get(key) or ()]
    if asked:
        if asked not in (*ordinary, *others):
            raise bad_request(f"container {asked} is not valid for pod {name}")
        return asked
    if len(ordinary) == 1:
        return str(ordinary[0])
    raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(ordinary)}]")


def _status(pod: JSON, container: str) -> JSON:
    status = pod.get("status") or {}
    for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        for each in status.get(key) or ():
            if each.get("name") == container:
                found: JSON = each
                return found
    return {}


def _state(pod: JSON, container: str) -> JSON:
    return _status(pod, container).get("state") or {}


def _lines(pod: JSON, container: str, *, previous: bool) -> list[Line]:
    """Return the container's log; raise where a kubelet has none to give."""
    name = pod["metadata"]["name"]
    if previous:
        ended = (_status(pod, container).get("lastState") or {}).get("terminated")
        if not ended:
            raise bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
        return _life(container, ended)
    if not (pod.get("spec") or {}).get("nodeName"):
        return []  # no kubelet knows the pod yet
    state = _state(pod, container)
    if ended := state.get("terminated"):
        return _life(container, ended)
    if running := state.get("running"):
        return _life(container, running)
    reason = (state.get("waiting") or {}).get("reason", "ContainerCreating")
    raise bad_request(f'container "{container}" in pod "{name}" is waiting to start: {reason}')


def _life(container: str, state: JSON) -> list[Line]:
    started = str(state.get("startedAt") or "")
    lines = [(started, f"container {container} started (simulated: no program runs in it)")]
    if "exitCode" in state:
        ended = str(state.get("finishedAt") or started)
        lines.append((ended, f"container {container} ended with exit code {state['exitCode']}"))
    return lines


def _selected(lines: list[Line], query: Mapping[str, str], context: Context) -> list[Line]:
    seconds, count = _number(query, "sinceSeconds"), _number(query, "tailLines")
    if seconds is not None:
        since = context.runtime.clock.now() - timedelta(seconds=min(seconds, 10**9))
        lines = [line for line in lines if _is_since(line[0], since)]
    if count is not None:
        lines = lines[len(lines) - count :] if count < len(lines) else lines
    return lines


def _is_since(when: str, since: datetime) -> bool:
    try:
        return datetime.fromisoformat(when) >= since
    except (ValueError, TypeError):  # what was written to the status is no time
        return True


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    number = whole_number_in(text)
    if number is None:
        raise bad_request(f"{name}: Invalid value: {text!r}: must be a whole number, zero or more")
    return number


def _text(line: Line, *, stamped: bool) -> bytes:
    return (f"{line[0]} {line[1]}\n" if stamped else f"{line[1]}\n").encode()


INSIDE = ("attach", "exec", "portforward", "proxy")
"""The subresources that connect to a program."""


def nothing_inside(context: Context, target: Target) -> StatusError:
    """Say that there is no program to connect to; what is not there is a 404 as ever."""
    found = get(context, target)
    name = target.key.name
    match target.resource.plural:
        case "nodes":
            return bad_request(f"node {name} is simulated: there is no kubelet on it to connect to")
        case "services":
            return bad_request(f"service {name} leads to simulated pods: there is no program in them to connect to")
    if not (found.decode().get("spec") or {}).get("nodeName"):
        return bad_request(f"pod {name} does not have a host assigned")
    return bad_request(f"pod {name} runs on a simulated node: there is no program in it to connect to")
