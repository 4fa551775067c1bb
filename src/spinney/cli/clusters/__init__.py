"""The cluster, or the snapshot of one, that a command is about."""
