"""A stock kube-controller-manager on the embedded server: deployments and jobs become pods."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from spinney.runtime import Runtime
from spinney.server import ApiServer
from spinney.server.http import HttpServer
from spinney.testing.controlplane.binaries import GoMissing, find_binaries
from spinney.testing.controlplane.process import Process
from tests.server.api import PODS, Api

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

_CONTROLLERS = "deployment-controller,replicaset-controller,job-controller"
_TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}


@asynccontextmanager
async def _controlled(directory: Path) -> AsyncIterator[Api]:
    """A served embedded cluster with a stock kube-controller-manager 1.37 as its client."""
    try:
        binary = find_binaries("1.37").kube_controller_manager
    except GoMissing as missing:
        pytest.skip(f"NO KUBE-CONTROLLER-MANAGER: {missing}")
    runtime = Runtime.system()
    server = ApiServer(runtime)
    async with server.running(), HttpServer(server) as http:
        kubeconfig = directory / "kubeconfig"
        http.write_kubeconfig(kubeconfig)
        flags = [f"--kubeconfig={kubeconfig}", f"--controllers={_CONTROLLERS}", "--secure-port=0"]
        process = Process("kube-controller-manager", [binary, *flags], directory=directory, clock=runtime.clock)
        try:
            yield Api(server)
        finally:
            process.stop()
    runtime.executor.close()


async def test_deployments_and_jobs_become_pods(tmp_path: Path) -> None:
    """A deployment gets its replicas and a job its pod, created by the stock controllers."""
    async with _controlled(tmp_path) as api:
        spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": _TEMPLATE}
        await api.create("/apis/apps/v1/namespaces/default/deployments", {"metadata": {"name": "web"}, "spec": spec})
        template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}
        job = {"metadata": {"name": "train"}, "spec": {"template": template}}
        await api.create("/apis/batch/v1/namespaces/default/jobs", job)
        owners: dict[str, str] = {}
        async with api.watch(PODS) as watch:
            while len(owners) < 3:
                metadata = (await watch.next())["object"]["metadata"]
                owners[metadata["name"]] = metadata["ownerReferences"][0]["kind"]
    assert sorted(owners.values()) == ["Job", "ReplicaSet", "ReplicaSet"]
