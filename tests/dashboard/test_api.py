"""A page over an embedded cluster: gangs come up and wait, events are resumed, remedies are told."""

import asyncio
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from spinney.api.core import NODE, POD
from spinney.api.grove import POD_CLIQUE_SET
from spinney.cli.demo.workloads import inference, training
from tests.dashboard.clusters import Page, a_page

WAITS = "podgang/default/train-0"
RUNS = "podgang/default/chat-0"


@pytest.fixture
async def page() -> AsyncIterator[Page]:
    """A cluster of 8 nodes, empty."""
    async with a_page() as found:
        yield found


async def apply(page: Page, manifest: Any) -> None:
    """Apply a set as a user would."""
    await page.client.apply(POD_CLIQUE_SET, manifest, "default", field_manager="test")


async def until(page: Page, gang: str, state: str) -> Any:
    """Follow events from the beginning until a gang is in a state, and the reason known for which it waits."""
    start = await page.get("api/state")
    for row in start["gangs"]:
        if _is(row, gang, state):
            return row
    async with page.events(start["revision"]) as events:
        async for event in events:
            for row in event.data.get("gangs", ()):
                if _is(row, gang, state):
                    return row
    raise AssertionError("the stream ended")


def _is(row: Any, gang: str, state: str) -> bool:
    told = state != "pending" or "unschedul" in row.get("reason", "")
    return row["key"] == gang and row["state"] == state and told


async def test_gangs_come_up_and_wait_before_the_viewers_eyes(page: Page) -> None:
    """Rows of gangs and nodes follow the cluster; members, story, reasons, remedies and objects can be asked for."""
    before = await page.get("api/state")
    assert [node["cells"] for node in before["nodes"]] == [8] * 8
    assert before["levels"] == ["topology.kubernetes.io/block", "topology.kubernetes.io/rack"]

    await apply(page, inference("chat", "spinney-scheduler"))
    runs = await until(page, RUNS, "running")
    await apply(page, training(workers=3, within="rack"))
    waits = await until(page, WAITS, "pending")

    state = await page.get("api/state")
    held = [each for node in state["nodes"] for each in node.get("held", ()) if each["gang"] == RUNS]
    assert sum(each["cells"] for each in held) == runs["gpus"] == 28
    assert {each["queue"] for each in held} == {"serving"}
    assert waits["gpus"] == 24
    assert waits["waitingSince"]
    assert [row["line"]["name"] for row in state["queues"]] == ["company", "serving", "training"]

    gang = await page.get(f"api/gangs/{RUNS}")
    words = [moment["what"] for moment in gang["moments"]]
    assert [word for word in words if word in ("created", "initialized", "scheduled", "running")] == [
        "created",
        "initialized",
        "scheduled",
        "running",
    ]
    assert len(gang["members"]) == 7
    assert all(member["node"] for member in gang["members"])

    why = await page.get(f"api/gangs/{WAITS}/why")
    helps = [change["text"] for remedy in why["answer"]["remedies"] for change in remedy["changes"]]
    assert "let it start with 2 of 3 pods; PodCliqueSet train has to be created anew for that" in helps
    racks = {tuple(each["path"]): (each["fits"], each["needed"]) for each in why["domains"]}
    assert len(racks) == 4
    assert all(needed == 3 and fits <= 2 for fits, needed in racks.values())

    await apply(page, training("alone", workers=2, within="host"))
    await until(page, "podgang/default/alone-0", "pending")
    why = await page.get("api/gangs/podgang/default/alone-0/why")
    hosts = {each["path"][-1]: (each["fits"], each["possible"]) for each in why["domains"]}
    assert len(hosts) == 8
    assert all(fits <= 1 and not possible for fits, possible in hosts.values()), "it fits on no host, though in a rack"

    async with page.session.get(f"{page.url}api/gangs/{WAITS}/objects") as answer:
        text = await answer.text()
        assert answer.content_type == "text/plain"
    assert text.index("kind: PodCliqueSet") < text.index("kind: PodGang") < text.index("kind: Pod\n")
    assert "managedFields" not in text


async def test_a_stream_that_was_cut_goes_on_where_it_was(page: Page) -> None:
    """Events that happened while a viewer was away are sent when it is back, once; a foreign id means: read again."""
    start = (await page.get("api/state"))["revision"]
    async with page.events(start) as events:
        await page.client.patch(NODE, "gpu-000", {"spec": {"unschedulable": True}})
        first = await anext(events)
    assert first.data["nodes"][0]["state"] == "cordoned"

    await page.client.patch(NODE, "gpu-001", {"spec": {"unschedulable": True}})
    async with page.events(first.id) as events:
        second = await anext(events)
        assert [node["name"] for node in second.data["nodes"]] == ["gpu-001"]
    async with page.events(start) as events:
        assert [(await anext(events)).id, (await anext(events)).id] == [first.id, second.id]
    async with page.events("another-7") as events:
        assert (await anext(events)).kind == "reset"


async def test_what_if_says_where_it_would_go_and_writes_nothing(page: Page) -> None:
    """A workload is placed on a copy of the cluster; a text that is none is refused with what is wrong with it."""
    manifest = """
apiVersion: v1
kind: Pod
metadata: {name: probe, labels: {kai.scheduler/queue: serving}}
spec:
  schedulerName: spinney-scheduler
  containers: [{name: main, image: x, resources: {limits: {nvidia.com/gpu: 8}}}]
"""
    async with page.session.post(f"{page.url}api/what-if", json={"manifests": manifest}) as answer:
        outcome = await answer.json()
    assert [(each["pod"], each["gpus"]) for each in outcome["placed"]] == [("default/probe", 8)]
    assert outcome["added"] == ["pod/default/probe"]
    assert not (await page.client.list(POD, "default")).items

    refusals = {
        "": "no object",
        "- 3": "found list",
        "kind: Pod": "cannot be simulated",
        "a: [": "line",
        "a: &a [*a, *a]": "",
        manifest.replace("name: probe", "name: A Probe"): "metadata.name: 'A Probe' must be a DNS-1123 subdomain",
        manifest.replace("name: probe", "name: p, namespace: A.b"): "must be a DNS-1123 label",
    }
    for text, reason in refusals.items():
        async with page.session.post(f"{page.url}api/what-if", json={"manifests": text}) as answer:
            assert answer.status == 422, text
            assert reason in (await answer.json())["error"], text
    long = io.BytesIO(json.dumps({"manifests": "x" * 2**20}).encode())
    sent = {"content-type": "application/json"}
    async with page.session.post(f"{page.url}api/what-if", data=long, headers=sent) as answer:
        assert answer.status == 413
        assert "at most 1048576 bytes" in (await answer.json())["error"]


async def test_what_if_says_that_a_workload_is_there_already(page: Page) -> None:
    """It is simulated as if made anew, and the answer says so: nothing told that its pods were left out."""
    manifest = inference("chat", "spinney-scheduler") | {
        "apiVersion": POD_CLIQUE_SET.api_version,
        "kind": POD_CLIQUE_SET.kind,
    }
    await apply(page, manifest)
    await until(page, RUNS, "running")
    async with page.session.post(f"{page.url}api/what-if", json={"manifests": json.dumps(manifest)}) as answer:
        outcome = await answer.json()

    assert outcome["note"].startswith("what the manifests name has ")
    assert "simulated as if made anew" in outcome["note"]


async def test_every_answer_forbids_what_the_page_does_not_need(page: Page) -> None:
    """Policy and headers are on the page, its files, the API, the stream and on errors; no answer sets a cookie."""
    paths = ["", "assets/app.js", "assets/app.css", "api/about", "api/state", "api/events", "api/nothing", "assets/.."]
    for path in paths:
        async with page.session.get(page.url + path) as answer:
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy, path
            assert "unsafe" not in policy, path
            assert answer.headers["x-content-type-options"] == "nosniff", path
            assert answer.headers["x-frame-options"] == "DENY", path
            assert answer.headers["referrer-policy"] == "no-referrer", path
            assert "set-cookie" not in answer.headers, path
            assert "access-control-allow-origin" not in answer.headers, path


async def test_long_answers_are_compressed(page: Page) -> None:
    """What goes over a slow line is sent short, to those who can read it so."""
    for accepted in ("gzip", "identity"):
        async with page.session.get(f"{page.url}assets/app.js", headers={"accept-encoding": accepted}) as answer:
            assert answer.headers.get("content-encoding", "identity") == accepted
            assert await answer.read()
    await apply(page, training("many", workers=8, within="block"))
    await until(page, "podgang/default/many-0", "pending")
    async with page.session.get(f"{page.url}api/gangs/podgang/default/many-0/objects") as answer:
        assert answer.headers["content-encoding"] in ("deflate", "gzip")
        assert "kind: PodCliqueSet" in await answer.text()


async def test_requests_through_another_site_are_refused(page: Page) -> None:
    """A foreign name for loopback, a page of another site, and a form that posts get nothing."""
    assert (await page.status("api/state", host="evil.example"))[0] == 421
    assert (await page.status("", host="evil.example"))[0] == 421
    assert (await page.status("api/state", **{"sec-fetch-site": "cross-site"}))[0] == 403
    async with page.session.post(f"{page.url}api/what-if", data={"manifests": "x"}) as answer:
        assert answer.status == 415
    for method in ("PUT", "PATCH", "DELETE", "POST"):
        async with page.session.request(method, f"{page.url}api/state") as answer:
            assert answer.status == 405


async def test_a_link_on_another_site_leads_to_the_page(page: Page) -> None:
    """A chat, a wiki or a login shows the page to whoever follows its link; what it reads then, it reads itself."""
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    async with page.session.get(page.url, headers=followed) as answer:
        assert answer.status == 200
        assert answer.content_type == "text/html"
    assert (await page.status("api/state", **followed))[0] == 403


async def test_names_that_mean_harm_are_only_names(page: Page) -> None:
    """An answer about a gang that is not there is JSON or plain text, whatever its name would be elsewhere."""
    for path in (
        "api/gangs/podgang/default/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "api/gangs/podgang/default/..%2F..%2Fsecrets/objects",
        "api/gangs/nothing/kube-system/x/why",
    ):
        async with page.session.get(page.url + path) as answer:
            assert answer.content_type in ("application/json", "text/plain")
            assert answer.status in (200, 404, 422)
            assert "kind:" not in await answer.text()


async def test_hostile_text_arrives_as_text(page: Page) -> None:
    """Labels and annotations of objects are carried whole, as JSON strings and as YAML, never as markup."""
    evil = "</script><img src=x onerror=alert(1)>"
    manifest = training("harm", workers=1, within="rack")
    manifest["metadata"]["annotations"] = {"note": evil}
    await apply(page, manifest)
    await until(page, "podgang/default/harm-0", "running")

    async with page.session.get(f"{page.url}api/gangs/podgang/default/harm-0/objects") as answer:
        assert answer.content_type == "text/plain"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert evil in await answer.text()


async def test_many_viewers_share_one_view(page: Page) -> None:
    """Every stream is sent the same event, made once."""
    start = (await page.get("api/state"))["revision"]

    async def first() -> str:
        async with page.events(start) as events:
            return (await anext(events)).id

    watching = [asyncio.create_task(first()) for _ in range(10)]
    await page.client.patch(NODE, "gpu-002", {"spec": {"unschedulable": True}})
    assert len(set(await asyncio.gather(*watching))) == 1


async def test_the_history_of_one_queue_can_be_asked_for(page: Page) -> None:
    """The page shows one queue over time, and is not sent hours of all others every ten seconds."""
    while not {"serving", "training"} <= (await page.get("api/queues/history")).keys():
        pass  # the first sample comes when everything has been read
    assert (await page.get("api/queues/history?queue=training")).keys() == {"training"}
    assert await page.get("api/queues/history?queue=nobody") == {}


async def test_a_number_too_long_to_be_read_is_none(page: Page) -> None:
    """Python reads no numbers of 5000 digits; they count as what is no number."""
    for path in ("api/cycles?after=", "api/queues/history?hours="):
        assert "error" not in await page.get(path + "9" * 5000)


async def test_cycles_tell_what_they_cost_and_decided(page: Page) -> None:
    """The scheduler's cycles come with time by plugin and what became of gangs; those already known are left out."""
    await apply(page, training("one", workers=1, within="rack"))
    await until(page, "podgang/default/one-0", "running")

    (told,) = await page.get("api/cycles")
    decided = [each for cycle in told["cycles"] for each in cycle.get("decisions", ())]
    assert ("placed", "podgang/default/one-0", "on 1 node") in {
        (each["what"], each["gang"], each["text"]) for each in decided
    }
    assert any(plugin == "action" for cycle in told["cycles"] for plugin, _, _ in cycle["spent"])
    newest = told["cycles"][-1]["number"]
    assert all(
        cycle["number"] > newest for cycle in (await page.get(f"api/cycles?after={newest}"))[0].get("cycles", ())
    )
