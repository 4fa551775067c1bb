"""What is known to differ between the embedded server and kube-apiserver, by the name the documentation gives it.

A request that meets a difference names it (``Exchange.known``), and is then required to differ: a difference that has
gone must be taken off the list. ``ONLY_REAL`` are fields and values that are left out wherever they stand.
"""

from collections.abc import Mapping

ONLY_REAL: Mapping[str, str] = {
    "nodeInfo": "empty node information",
    "daemonEndpoints": "empty node information",
    "node.alpha.kubernetes.io/ttl": "controllers that are not there",
}
IN_STREAMS = "marks before removal"  # which are taken out of the streams of events before they are compared
OF_FIELDS = "marks of whole fields"  # which are taken out of the sets of managed fields
EXPLAINED_IN = "docs/embedded-cluster.md"
HEADING = "## Known differences"
