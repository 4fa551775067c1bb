"""A predicate: pods that need a GPU only go to nodes that have one free.

register_plugin_builder("gpu-predicate", GpuPredicate)
"""

from spinney.scheduler import NodeInfo, Plugin, PodGroupInfo, PodInfo, Session


class GpuPredicate(Plugin):
    """Refuses nodes without an available GPU."""

    name = "gpu-predicate"

    def on_session_open(self, session: Session) -> None:
        """Register the predicate."""
        session.add_predicate_fn(has_free_gpu)


def has_free_gpu(task: PodInfo, job: PodGroupInfo, node: NodeInfo) -> str | None:
    """Return why the node will not do, or ``None`` if it will."""
    if task.requires_gpu and not node.has_available_gpus():
        return f"node {node.name} has no available GPUs"
    return None
