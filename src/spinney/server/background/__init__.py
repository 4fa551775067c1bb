"""What the cluster does on its own: collecting garbage, ending namespaces and kinds, expiring events."""
