"""What the demo tells, from the first gang to the three next commands."""

import asyncio
import shlex
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from spinney.cli.clusters.choosing import KUBECONFIG
from spinney.cli.clusters.owning import claimed
from spinney.cli.demo.screen import Commands, Screen
from spinney.cli.demo.stage import Stage, a_stage
from spinney.cli.demo.workloads import INFERENCE_PODS, inference, training
from spinney.cli.terminal.output import progress
from spinney.dashboard.local import dashboard_of
from spinney.explain.amounts import counted
from spinney.kube.kubeconfig import in_home
from spinney.nodes import PodTimes
from spinney.server import HttpServer
from spinney.sim.embedded.shapes import gpu_cluster

_KUBECONFIG = in_home("~/.spinney/demo-kubeconfig")


async def tell(screen: Screen, *, keep: bool) -> None:
    """Tell the whole story; with ``keep`` leave the cluster to the reader until Ctrl-C."""
    times = PodTimes(start="200ms..1200ms", ready="100ms..600ms")
    async with AsyncExitStack() as parts:
        with progress("starting a cluster"):
            stage = await parts.enter_async_context(a_stage(gpu_cluster(32, 8, pods=times), screen))
            page = await parts.enter_async_context(dashboard_of(stage.cluster))
        clock = stage.cluster.runtime.clock
        began = clock.monotonic()
        with screen:
            screen.chapter("A GPU cluster")
            screen.say("32 nodes of 8 GPUs, 4 nodes to a rack, 4 racks to a block, all simulated in this process.")
            screen.say(f"The same in a browser, while it runs: {page}")
            screen.show(stage.scene())
            for chapter in (inference_comes_up, a_second_backend, training_does_not_fit, training_fits_a_block):
                await clock.sleep(screen.reading_time)
                await chapter(stage, screen)
        screen.picture(stage.scene())
        screen.chapter("What you saw")
        pods, gangs = len(list(stage.pods.values())), len(list(stage.gangs.values()))
        what, took = f"{counted(pods, 'pod')} in {counted(gangs, 'gang')}", clock.monotonic() - began
        screen.say(f"{what}, through two scheduler backends, in {took:.0f} seconds. {_SUMMARY}")
        if keep:
            await _keep(stage, screen, page)
        else:
            screen.offer("Next:", _next_commands())


async def inference_comes_up(stage: Stage, screen: Screen) -> None:
    """A PodCliqueSet becomes gangs that start whole, each group in one rack."""
    screen.chapter("A disaggregated inference service")
    screen.say("Router, prefill and decode groups; each group must share a rack. Pods are gated until all exist.")
    await stage.apply(inference("chat", "spinney-scheduler"))
    await stage.until(lambda: stage.runs("chat", INFERENCE_PODS), "the inference service to run")
    screen.say(f"All {INFERENCE_PODS} pods run. The second prefill replica is a gang of its own: it may come and go.")


async def a_second_backend(stage: Stage, screen: Screen) -> None:
    """The same workload reaches another scheduler through its backend, by name."""
    screen.chapter("The same service through KAI's PodGroups")
    screen.say("The workload is unchanged; only schedulerName is kai-scheduler now.")
    await stage.apply(inference("chat-kai", "kai-scheduler"))
    await stage.until(lambda: stage.runs("chat-kai", INFERENCE_PODS), "the second inference service to run")
    screen.say("The operator's KAI backend wrote what that scheduler reads (here Spinney's scheduler plays its part):")
    for group in await stage.pod_groups("chat-kai"):
        screen.say(f"   PodGroup {group.metadata.name} with {counted(len(group.spec.sub_groups), 'sub-group')}")


async def training_does_not_fit(stage: Stage, screen: Screen) -> None:
    """A gang that cannot be placed whole is not placed at all, and says why."""
    screen.chapter("A training job that does not fit")
    screen.say("6 workers of 8 GPUs, all in one rack. A rack has 4 nodes.")
    await stage.apply(training(workers=6, within="rack"))
    await stage.until(lambda: stage.refusal("train-0") is not None, "the scheduler's verdict on the training job")
    screen.say("Not one of the six was placed. The gang says why:")
    for sentence in (stage.refusal("train-0") or "").split("; "):
        screen.say(f"   {sentence}")


async def training_fits_a_block(stage: Stage, screen: Screen) -> None:
    """The same job, allowed to spread over a block, runs."""
    screen.chapter("The smallest change that lets it in")
    screen.say("No rack can ever hold six such nodes, but a block can: require a block instead of a rack.")
    await stage.delete("train")
    await stage.apply(training(workers=6, within="block"))
    await stage.until(lambda: stage.runs("train", 6), "the training job to run")
    screen.say("All six workers run, in one block.")


async def _keep(stage: Stage, screen: Screen, page: str) -> None:
    """Leave the cluster to the reader until Ctrl-C."""
    spinney = _called()
    with claimed(_KUBECONFIG) as claim:
        async with HttpServer(stage.cluster.server) as http:
            http.write_kubeconfig(claim.path)
            screen.offer(
                f"The cluster stays up until Ctrl-C, and its dashboard at {page} with it. In another terminal:",
                (
                    (
                        f"export KUBECONFIG={shlex.quote(str(claim.path))}",
                        "kubectl and spinney then talk to this cluster",
                    ),
                    (f"{spinney} top", "the picture above, live"),
                    (f"{spinney} why train", "one gang, and the state it is in"),
                ),
            )
            await asyncio.get_running_loop().create_future()


_SUMMARY = (
    "Pods were created gated, released only when their gang was complete, and placed together or not at all. The gang "
    "that could not be placed said what it lacked and what would help. The same processes run against a real cluster."
)


def _next_commands() -> Commands:
    spinney = _called()
    return (
        (f"{spinney} up --nodes 32x8", "a cluster of your own, in a terminal of its own"),
        (f"{spinney} apply --kubeconfig {KUBECONFIG} -f examples/first-workload.yaml", "a first gang on it"),
        (f"{spinney} why NAME", "why a pod or gang waits, on the cluster your kubectl uses; it only reads"),
    )


def _called() -> str:
    """Return how to call this command from here, as its caller did."""
    path = Path(sys.argv[0])
    if path.name not in ("spinney", "kubectl-spinney"):
        return "spinney"
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return "spinney"
