"""Cases built in a line: one node, one queue, jobs of single-GPU tasks."""

from typing import Any

from spinney.api.struct import JSON

PLUGINS = [
    "predicates",
    "proportion",
    "priority",
    "elastic",
    "nodeavailability",
    "gpusharingorder",
    "gpupack",
    "resourcetype",
    "subgrouporder",
    "taskorder",
    "dynamicresources",
    "nodeplacement",
    "minruntime",
    "topology",
]


def a_node(name: str = "node0", *, gpus: int = 2, **fields: Any) -> JSON:
    """Build a node of whole GPUs."""
    return {
        "name": name,
        "allocatable": {"cpu_milli": 20000000, "memory_bytes": 20000000000, "gpus": gpus, "pods": 110, "mig": {}},
        "gpus_device_plugin": gpus,
        "gpus_dra": 0,
        "physical_gpus": gpus,
        "gpu_memory": 100,
        "mig_enabled": False,
        "mig_strategy": None,
        "labels": {"kai.scheduler/type": name},
        "taints": [],
        **fields,
    }


def a_queue(name: str = "queue0", *, quota: float = 1, limit: float = -1, rank: int = 0, **fields: Any) -> JSON:
    """Build a queue below the department ``default``."""
    unlimited = {"quota": -1, "limit": -1, "over_quota_weight": 1}
    return {
        "name": name,
        "parent": "default",
        "priority": 100,
        "creation_rank": rank,
        "gpu": {"quota": quota, "limit": limit, "over_quota_weight": 1},
        "cpu_milli": unlimited,
        "memory_bytes": unlimited,
        **fields,
    }


def a_task(name: str, *, state: str = "Pending", node: str | None = None, gpus: int = 1, **fields: Any) -> JSON:
    """Build a task that asks for whole GPUs, one core and a gigabyte."""
    return {
        "name": name,
        "state": state,
        "node": node,
        "pod_set": "default",
        "requests": {
            "cpu_milli": 1000,
            "memory_bytes": 1000000000,
            "gpu_kind": "whole" if gpus else "none",
            "gpus": gpus,
            "gpu_fraction": None,
            "gpu_memory": None,
            "mig": {},
            "dra_claims": [],
        },
        "gpu_groups": [],
        **fields,
    }


def a_job(name: str, *, tasks: list[JSON] | None = None, minimum: int | None = None, **fields: Any) -> JSON:
    """Build a job whose tasks are one gang; without tasks it has a single pending one."""
    tasks = [a_task(f"{name}-0")] if tasks is None else tasks
    return {
        "name": name,
        "namespace": "",
        "queue": "queue0",
        "priority": 50,
        "preemptible": True,
        "preemptibility_explicit": False,
        "created_minutes_ago": 1,
        "creation_rank": 0,
        "started_minutes_ago": 1 if any(task["state"] == "Running" for task in tasks) else None,
        "stale_for_seconds": None,
        "after_release": "back_to_pending",
        "best_effort": False,
        "root_group": {
            "name": "(root)",
            "topology_constraint": None,
            "groups": [],
            "pod_sets": [
                {
                    "name": "default",
                    "min_member": len(tasks) if minimum is None else minimum,
                    "topology_constraint": None,
                    "tasks": [task["name"] for task in tasks],
                }
            ],
        },
        "tasks": tasks,
        **fields,
    }


def an_expectation(status: str, node: str | None = None, *, gpus: float = 1, **fields: Any) -> JSON:
    """Build what is expected of a job or task."""
    return {
        "status": status,
        "node": node,
        "gpus_requested": gpus,
        "gpus_accepted": None,
        "cpu_milli_requested": None,
        "memory_bytes_requested": None,
        **fields,
    }


def a_case(
    identity: str = "small-0001",
    *,
    nodes: list[JSON] | None = None,
    queues: list[JSON] | None = None,
    jobs: list[JSON] | None = None,
    expect_jobs: dict[str, JSON] | None = None,
    expect_tasks: dict[str, JSON] | None = None,
    expect_nodes: dict[str, JSON] | None = None,
    limits: tuple[int, int, int] = (1, 0, 0),
    rounds: JSON | None = None,
    actions: list[str] | None = None,
    **fields: Any,
) -> JSON:
    """Build a case of one action in one session, unless told otherwise."""
    return {
        "id": identity,
        "features": [],
        "caveats": [],
        "actions": ["allocate"] if actions is None else actions,
        "rounds": {"mode": "single_session"} if rounds is None else rounds,
        "config": {
            "plugins": PLUGINS,
            "node_placement": {"gpu": "binpack", "cpu": "binpack"},
            "shared_gpu_order": "pack",
        },
        "nodes": [a_node()] if nodes is None else nodes,
        "topologies": [],
        "departments": [
            {
                **a_queue("default", quota=-1),
                "parent": None,
                "synthesized": True,
                "gpu": {"quota": -1, "limit": -1, "over_quota_weight": -1},
            }
        ],
        "queues": [a_queue()] if queues is None else queues,
        "jobs": [a_job("job")] if jobs is None else jobs,
        "expected": {
            "jobs": expect_jobs or {},
            "tasks": expect_tasks or {},
            "nodes": expect_nodes or {},
            "limits_per_round": dict(zip(("binds_max", "evictions_max", "pipelines_max"), limits, strict=True)),
        },
        **fields,
    }
