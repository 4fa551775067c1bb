"""The same kubectl commands on the embedded server and on a real control plane: people see the same text.

Commands are chosen so that no controller has a say. What differs from run to run (names of the run, ages, addresses,
uids) is masked before the outputs are compared.
"""

import asyncio
import re
import shlex
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from spinney.runtime import Runtime
from spinney.server import ApiServer, HttpServer, ServerOptions
from spinney.testing.controlplane import ControlPlane
from tests.clients.kubectl import Kubectl, kubectl_binary, served

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

_MAP = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","labels":{"p":"1"}},"data":{"a":"b"}}'
_CHANGED = _MAP.replace('"a":"b"', '"a":"c"')
_COMMANDS = """
create configmap cm1 --from-literal=a=b
create configmap cm1 --from-literal=a=b
create secret generic s1 --from-literal=a=b
create secret docker-registry s2 --docker-username=u --docker-password=p --docker-server=x
create deployment d1 --image=nginx --replicas=0
create cronjob c1 --image=busybox --schedule='0 0 1 1 *' -- true
create cronjob c2 --image=busybox --schedule=often -- true
create quota q1 --hard=count/secrets=10,services=5
wait quota/q1 --for=jsonpath={.status.used.services}=0 --timeout=60s
create role r1 --verb=get --resource=pods
create rolebinding rb1 --role=r1 --user=x
create serviceaccount sa1
create poddisruptionbudget pdb1 --selector=a=b --min-available=1
create service clusterip svc1 --tcp=80:80
create service nodeport svc2 --tcp=80:80
create service externalname svc3 --external-name=a.b
create ingress i1 --rule=a.b/c=svc1:80
run p1 --image=nginx --labels=a=b --env=X=1 --port=80
run p1 --image=nginx
run p2 --image=nginx --dry-run=server
get pods
get pods -o wide
get pods -o name
get pods -o jsonpath={.items[*].spec.containers[*].image}
get pods -o custom-columns=N:.metadata.name,I:.spec.containers[0].image
get pods --show-labels
get pods -L a --sort-by=.metadata.name
get pods -o yaml
get pod nope
get nothing
get svc,ing,cm,secret,sa,role,rolebinding,cj
get svc,ing,cm,secret,sa,role,rolebinding,cj -o wide
get svc svc2 -o yaml
get pods --field-selector=status.phase=Pending -o name
get pods --field-selector=bad=1
get pod p1 --subresource=status -o name
get cm --chunk-size=1 -o name
describe pod p1
describe quota q1
describe role r1
describe rolebinding rb1
describe cm cm1
describe secret s1
describe sa sa1
set image pod/p1 p1=nginx:2
label pod p1 c=d
label pod p1 c=e
annotate pod p1 c=d
expose pod p1 --port=80 --name=exp
patch pod p1 -p {"metadata":{"labels":{"x":"y"}}}
patch deploy d1 --type=json -p [{"op":"replace","path":"/spec/replicas","value":0}]
scale deployment/d1 --replicas=0
scale deployment/d1 --replicas=1 --current-replicas=7
autoscale deployment d1 --min=1 --max=3 --cpu=80%
wait pod/p1 --for=jsonpath={.status.phase}=Pending --timeout=60s
wait pod/p1 --for=condition=Ready --timeout=1s
wait pod/nope --for=condition=Ready --timeout=60s
logs nope
exec p1 -- ls
attach p1
port-forward p1 8080:80
top nodes
top pods
auth can-i create pods
explain pod.spec.nodeName.nothing
explain nothing
get --raw /readyz
delete cm cm1 --dry-run=server
delete pod p1 --grace-period=0 --force
delete pod p1
delete svc --all
"""
_WITH_INPUT = (
    ("create -f -", '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"daat":{}}'),
    ("create -f -", '{"apiVersion":"v1","kind":"Nonsense","metadata":{"name":"x"}}'),
    ("create -f -", '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"containers":[]}}'),
    ("create -f -", '{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"},"spec":{"template":{}}}'),
    (
        "create -f -",
        '{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"x"},'
        '"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"}]}}}}',
    ),
    ("apply -f -", _MAP),
    ("apply -f -", _MAP),
    ("diff -f -", _CHANGED),
    ("apply -f -", _CHANGED),
    ("apply --server-side -f -", _MAP),
    ("apply --server-side --force-conflicts -f -", _MAP),
    ("apply --prune -l p=1 --prune-allowlist=core/v1/ConfigMap -f -", _MAP.replace('"m"', '"n"')),
    ("replace -f -", _CHANGED),
    ("replace --force -f -", _MAP.replace('"m"', '"n"')),
    ("delete -f -", _MAP.replace('"m"', '"n"')),
)
_MASKS = (
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
    (r"20\d\d-\d\d-\d\d[T ][\d:.]+(Z| \+0000)|\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun), .*", "TIME"),
    (r"\b10\.(0|96)\.\d+\.\d+ *", "IP "),
    (r"(?<=:)3[0-2]\d{3}(?=/)|(?<=nodePort: )\d+", "PORT"),
    (r'(?<=resourceVersion: )"\d+"', "VERSION"),
    (r"(?<=kube-api-access-)\w{5}", "*"),
    (r"\b(\d+m)?\d+(\.\d+)?m?s\b *|(?<= )\d+m(?=\s|$) *", "AGE "),
    (r"/\S*/(LIVE|MERGED)-\d+/", "FILES/"),
    (r"https?://127\S+", "URL"),
    (r"CLUSTER-IP +|PORT\(S\) +|AGE +|TYPE +|-+\n", ""),
    (r" +", " "),
)

_READING = ("get", "describe", "wait")
_ATTEMPTS = 50
"""How often what changes nothing is asked while the answers differ: the real server's controllers take their time."""


@dataclass(frozen=True)
class _Sides:
    real: Kubectl
    embedded: Kubectl


@pytest.fixture
async def sides(controlplane: ControlPlane, tmp_path: Path) -> AsyncIterator[_Sides]:
    """A kubectl for either server, in a namespace of this test."""
    homes = [tmp_path / name for name in ("real", "embedded")]
    for home in homes:
        home.mkdir()
    runtime = Runtime.system()
    server = ApiServer(runtime, ServerOptions(track_all_managers=True))
    real = Kubectl(kubectl_binary(), controlplane.kubeconfig, homes[0])
    async with server.running(), HttpServer(server) as http:
        sides = _Sides(real, served(http, homes[1]))
        for kubectl in (sides.real, sides.embedded):
            await kubectl.run("create", "namespace", "kubectl-parity")
            await kubectl.run("wait", "--for=create", "-n", "kubectl-parity", "sa/default", "--timeout=60s")
        yield sides
        await real.run("delete", "namespace", "kubectl-parity", "--wait=false")
    runtime.executor.close()


async def _printed(kubectl: Kubectl, command: str, given: str) -> str:
    process = await kubectl.start("-n", "kubectl-parity", *shlex.split(command), KUBECTL_EXTERNAL_DIFF="diff -u -N")
    async with asyncio.timeout(60):
        output, _ = await process.communicate(given.encode())
    text = f"{output.decode()}exit {process.returncode}"
    for pattern, mask in _MASKS:
        text = re.sub(pattern, mask, text)
    return text


async def test_people_see_the_same(sides: _Sides) -> None:
    """Each command prints the same and ends with the same code on both servers."""
    commands = [(line.replace('"', r"\""), "") for line in _COMMANDS.strip().splitlines()]
    differing = []
    for command, given in [*commands, *_WITH_INPUT]:
        for _ in range(_ATTEMPTS if command.startswith(_READING) else 1):
            real, ours = await asyncio.gather(
                *(_printed(each, command, given) for each in (sides.real, sides.embedded))
            )
            if real == ours:
                break
        else:
            differing.append(f"$ kubectl {command}  {given}\n--- real\n{real}\n--- embedded\n{ours}")
    assert not differing, "\n".join(differing)
