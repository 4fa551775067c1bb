"""The kinds that every Kubernetes cluster has, and what is special about each."""
