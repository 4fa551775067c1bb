"""The coscheduler beside the stock kube-scheduler on one API server."""
