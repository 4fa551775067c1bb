"""The session scheduler: its decisions alone, and beside the stock kube-scheduler on one API server."""
