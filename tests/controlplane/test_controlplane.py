"""Starting and stopping a real control plane: what is ready, what is left behind, and how failure is told."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from spinney.runtime import SystemClock
from spinney.testing.controlplane import ControlPlane, GoMissing, ProcessFailed, find_binaries, gang_api
from spinney.testing.controlplane.process import Ports, ServerProcess
from spinney.testing.controlplane.tether import Tether


def kubectl(plane: ControlPlane, *arguments: str, kubeconfig: Path | None = None) -> str:
    """Run the plane's kubectl and return what it prints, errors included."""
    command = [str(plane.kubectl), "--kubeconfig", str(kubeconfig or plane.kubeconfig), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.real
def test_kubectl_works_with_the_kubeconfig(controlplane: ControlPlane) -> None:
    """The administrator's kubeconfig is private to its owner, and kubectl gets answers with it."""
    assert stat.S_IMODE(controlplane.kubeconfig.stat().st_mode) == 0o600
    assert "kube-node-lease" in kubectl(controlplane, "get", "namespaces", "-o", "name")


@pytest.mark.real
def test_rbac_decides_what_others_may_do(controlplane: ControlPlane) -> None:
    """A user without a role is known by name and may do nothing; one in the masters' group may do everything."""
    stranger = controlplane.kubeconfig_for("stranger")
    assert 'User "stranger" cannot list resource "pods"' in kubectl(controlplane, "get", "pods", kubeconfig=stranger)
    master = controlplane.kubeconfig_for("master", ("system:masters",))
    assert "No resources found" in kubectl(controlplane, "get", "nodes", kubeconfig=master)


@pytest.mark.real
def test_the_garbage_collector_runs(controlplane: ControlPlane) -> None:
    """Deleting an owner deletes what it owns: kube-controller-manager is at work."""
    kubectl(controlplane, "create", "deployment", "owner", "--image=pause", "--replicas=0")
    kubectl(controlplane, "rollout", "status", "deployment/owner", "--timeout=60s")
    kubectl(controlplane, "wait", "--for=create", "replicaset", "-l", "app=owner", "--timeout=60s")
    kubectl(controlplane, "delete", "deployment", "owner")
    kubectl(controlplane, "wait", "--for=delete", "replicaset", "-l", "app=owner", "--timeout=60s")
    assert "No resources found" in kubectl(controlplane, "get", "replicasets", "-l", "app=owner")


@pytest.mark.real
def test_a_scheduler_can_be_started_for_a_while(controlplane: ControlPlane) -> None:
    """kube-scheduler serves the profile it is given, and says so about a pod it cannot place."""
    profile = {"profiles": [{"schedulerName": "for-a-while"}]}
    overrides = '{"spec": {"schedulerName": "for-a-while"}}'
    with controlplane.scheduler(profile):
        kubectl(controlplane, "run", "unplaced", "--image=pause", f"--overrides={overrides}")
        kubectl(controlplane, "wait", "--for=condition=PodScheduled=false", "pod/unplaced", "--timeout=60s")
    assert "no nodes available to schedule pods" in kubectl(controlplane, "get", "pod", "unplaced", "-o", "yaml")
    kubectl(controlplane, "delete", "pod", "unplaced")


@pytest.mark.real
async def test_nothing_is_left_behind() -> None:
    """After the block, which may be async, nothing of the plane runs and its directory is gone; again does nothing."""
    async with ControlPlane(controller_manager=False) as plane:
        assert plane.url.startswith("https://127.0.0.1:")
        directory, pids = plane.directory, plane.pids
        assert len(pids) == 2
    plane.stop()
    assert not directory.exists()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.real
def test_a_start_that_fails_shows_the_log_and_cleans_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that will not start ends the start with the end of its log, and nothing stays behind."""
    plane = ControlPlane()
    monkeypatch.setattr(plane, "gangs", gang_api("1.35"))  # gates that 1.37 has removed
    with pytest.raises(ProcessFailed, match=r"kube-apiserver exited with code 1(?s:.*)unrecognized feature gate"):
        plane.start()
    assert plane.pids == ()


def test_an_unknown_minor_is_refused() -> None:
    """A minor there is no control plane of is refused with those there are."""
    with pytest.raises(ValueError, match=r"Kubernetes '1\.12': there are 1\.35, 1\.36, 1\.37"):
        ControlPlane("1.12")


def test_no_gate_is_named_to_a_minor_that_removed_it() -> None:
    """Kubernetes 1.37 exits when told of the gang gates it folded into others."""
    assert "GangScheduling" in gang_api("1.36").gates
    assert "GangScheduling" not in gang_api("1.37").gates
    assert "WorkloadAwarePreemption" not in gang_api("1.37").gates


def test_without_go_and_binaries_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine without Go and without built binaries, that is the error, and it is one of its own."""
    for tool in ("bash", "dirname", "cat", "sha256sum", "cut"):
        (tmp_path / tool).symlink_to(next(p for p in (Path("/usr/bin") / tool, Path("/bin") / tool) if p.exists()))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SPINNEY_CONTROLPLANE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    with pytest.raises(GoMissing, match="`go` is not on PATH"):
        find_binaries("1.37")


def test_given_assets_are_used_and_nothing_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory with every binary is used as it is, for the newest minor."""
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"):
        (tmp_path / name).touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    assert find_binaries("1.37").kubectl == tmp_path / "kubectl"


def test_a_program_that_exits_is_told_at_once(tmp_path: Path) -> None:
    """A program that ends before it is ready is an error with its exit code and its last words."""
    command = ["/bin/sh", "-c", "echo farewell; exit 7"]
    with Tether() as tether:
        process = ServerProcess("short", command, directory=tmp_path, clock=SystemClock(), tether=tether)
        with pytest.raises(ProcessFailed, match=r"short exited with code 7(?s:.*)farewell"):
            process.wait_until_ready("http://127.0.0.1:9/", within=60)


def test_ports_are_held_for_their_programs() -> None:
    """No port is given out twice while it is held."""
    ports = Ports()
    try:
        taken = [ports.take() for _ in range(50)]
        assert len(set(taken)) == 50
    finally:
        ports.release()
