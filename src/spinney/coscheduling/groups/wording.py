"""Why a pod fits nowhere, in kube-scheduler's words: nodes counted by reason."""

import numpy as np

from spinney.cluster.filters import FilterResult
from spinney.cluster.pods import PodRecord
from spinney.cluster.table import NodeTable
from spinney.explain.counting import NodeNames, pod_report
from spinney.explain.rendering import kube_message


def nodes_counted(record: PodRecord, table: NodeTable, found: FilterResult) -> str:
    """Return "0/5 nodes are available: ..." for what the filters found."""
    names = NodeNames(table.names, np.asarray(table.rows()))
    return kube_message(pod_report(str(record.key), names, found.refusals, pre_filter=found.pre_filter))
